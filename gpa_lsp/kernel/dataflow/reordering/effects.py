"""What each instruction of a function reads, writes and orders: what forbids that two of them change places.

Memory is taken apart by space, not by address: two accesses to one space may be to the same place unless both only read. Loads through the
read-only path (``LDG.….CONSTANT``, textures, constants) see memory that nobody changes while the kernel runs, so nothing orders them.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow, Instructions
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.code.control_flow.model import FlowGraph

_GLOBAL, _SHARED, _LOCAL, _SURFACE, _TENSOR = (1 << bit for bit in range(5))
EVERY_SPACE = _GLOBAL | _SHARED | _LOCAL | _SURFACE | _TENSOR  # All spaces that stores can change, as a mask
SPACE_COUNT = 5

# Spaces an access may touch; those that are missing (constants, textures, lanes) are never changed
_MASKS = {
    MemorySpace.GLOBAL: _GLOBAL,
    MemorySpace.GENERIC: _GLOBAL | _SHARED | _LOCAL,
    MemorySpace.SHARED: _SHARED,
    MemorySpace.LOCAL: _LOCAL,
    MemorySpace.SURFACE: _SURFACE,
    MemorySpace.TENSOR: _TENSOR,
}

SIDE_CODE = -1  # Stands for the number of an instruction in a step that is side code

_DOES_NOT_GO_ON = (Flow.CALL, Flow.INDIRECT_CALL, Flow.INDIRECT_BRANCH, Flow.RETURN, Flow.TRAP)

_READ_ONLY = "CONSTANT"  # Modifier of a load that goes through the read-only path


_CHANGES = (Access.STORE, Access.ATOMIC, Access.REDUCTION, Access.COPY)
_READS = (Access.LOAD, Access.ATOMIC, Access.COPY)

# Opcodes at which the threads of a block, cluster or warp exchange what they wrote
BLOCK_BARRIERS = frozenset({"BAR", "B2R", "R2B", "UCGABAR_ARV", "UCGABAR_WAIT", "WARPSYNC"})

# Opcodes that order accesses, or wait until asynchronous ones are done, whoever the other party is
FENCES = frozenset(
    {"MEMBAR", "FENCE", "ERRBAR", "CGAERRBAR", "DEPBAR", "LDGDEPBAR", "SYNCS", "ARRIVES", "WARPGROUP"}
    | {"ACQBULK", "PREEXIT", "ACQSHMINIT", "UTCBAR", "CCTL", "UTMACMDFLUSH", "UTMACCTL"}
)


class _Kind(Struct, frozen=True):
    """What a mnemonic does to memory: masks of spaces, and whether it is a fence or a block barrier."""

    loads: int
    stores: int
    is_load: bool
    is_barrier: bool
    is_fence: bool


@lru_cache(maxsize=8192)
def _find_kind(mnemonic: str) -> _Kind:
    opcode = describe_mnemonic(mnemonic)
    loads, stores = find_spaces(opcode)
    if loads and opcode.access is Access.LOAD and _READ_ONLY in mnemonic.split("."):
        loads = 0
    is_load = opcode.access in (Access.LOAD, Access.ATOMIC) and opcode.memory is not MemorySpace.CONSTANT
    return _Kind(loads, stores, is_load, opcode.name in BLOCK_BARRIERS, opcode.name in FENCES)


def find_spaces(opcode: Opcode) -> tuple[int, int]:
    """The changeable spaces an opcode may read and change, as masks.

    >>> find_spaces(describe_mnemonic("LDS")), find_spaces(describe_mnemonic("ATOMG.E.ADD")), find_spaces(describe_mnemonic("LDC"))
    ((2, 0), (1, 1), (0, 0))
    """
    if opcode.memory is None or opcode.access is None:
        return 0, 0
    mask = _MASKS.get(opcode.memory, 0)
    if opcode.access is Access.COPY:
        mask |= _SHARED
    return (mask if opcode.access in _READS else 0), (mask if opcode.access in _CHANGES else 0)


class Step(NamedTuple):
    """One instruction, or a piece of side code that is passed as a whole (:mod:`gpa_lsp.kernel.dataflow.reordering.course`)."""

    instruction: int  # number in the function; :data:`SIDE_CODE` for side code
    flow: int  # of :class:`~gpa_lsp.code.binary.model.Flow`; NONE for side code
    reads: tuple[int, ...]  # resource numbers, the guard's included
    writes: tuple[int, ...]  # resource numbers
    is_partial: bool  # what is written may also stay as it was (a guard, a branch around it)
    loads: int  # mask of spaces it may read that somebody may change
    stores: int  # mask of spaces it may change
    is_order: bool  # accesses may not pass it; ``loads`` and ``stores`` say to which spaces
    is_call: bool  # nothing is moved past it: control may not come back, or only after code that nobody looked at
    may_leave: bool  # control may go elsewhere here for good, so that what follows may not happen
    is_load: bool  # it brings a value from memory that is not a constant
    is_movable: bool  # it could be placed elsewhere: no jump and no barrier
    blocks: tuple[int, ...] = ()  # of side code its blocks


class CalledEffects(NamedTuple):
    """What calling a routine does: resource numbers it reads and writes, masks of spaces it loads from and stores to."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    loads: int
    stores: int


def find_steps(instructions: Instructions, graph: FlowGraph, stored_elsewhere: int) -> tuple[Step, ...]:
    """The effects of each of a function's instructions.

    A block barrier orders accesses to the spaces that something may have changed before it: without a store there is nothing to exchange.
    A fence orders accesses to all spaces.
    """
    kinds = [_find_kind(mnemonic) for mnemonic in instructions.mnemonics]
    loads, stores, is_load, is_barrier, is_fence = (
        np.array([getattr(kind, name) for kind in kinds])[instructions.mnemonic_index]
        for name in ("loads", "stores", "is_load", "is_barrier", "is_fence")
    )
    stored_before = np.array(_spread_stores(graph, stores, stored_elsewhere))[graph.block_of_instruction]
    ordered = np.where(is_fence, EVERY_SPACE, np.where(is_barrier, stored_before, 0))
    is_order = is_barrier | is_fence
    flow = instructions.flow
    columns = {
        "instruction": range(len(instructions)),
        "flow": flow.tolist(),
        "reads": instructions.reads.split(),
        "writes": instructions.writes.split(),
        "is_partial": (instructions.guard >= 0).tolist(),
        "loads": (loads | ordered).tolist(),
        "stores": (stores | ordered).tolist(),
        "is_order": is_order.tolist(),
        "is_call": np.isin(flow, _DOES_NOT_GO_ON).tolist(),
        "may_leave": (flow == Flow.EXIT).tolist(),
        "is_load": is_load.tolist(),
        "is_movable": ((flow == Flow.NONE) & ~is_order).tolist(),
        "blocks": repeat(()),
    }
    return tuple(map(Step._make, zip(*(columns[name] for name in Step._fields), strict=False)))


def insert_calls(steps: tuple[Step, ...], called: Mapping[int, CalledEffects]) -> tuple[Step, ...]:
    """A function's steps with what its calls do."""
    if not called:
        return steps
    found = list(steps)
    for row, effects in called.items():
        step = steps[row]
        found[row] = step._replace(
            reads=tuple({*step.reads, *effects.reads}),
            writes=effects.writes,
            loads=effects.loads,
            stores=effects.stores,
            is_call=False,
        )
    return tuple(found)


def summarise_routine(steps: Sequence[Step]) -> CalledEffects | None:
    """What a call of a routine does, by its instructions in the order of their addresses.

    A register counts as read where no instruction before writes it; as written, and not as kept, wherever one does: calling conventions leave
    nothing of use there.

    Returns:
        None where the routine calls others, orders accesses or may not come back.
    """
    reads: set[int] = set()
    writes: set[int] = set()
    loads = stores = 0
    for step in steps:
        if step.is_order or step.may_leave or (step.is_call and step.flow != Flow.RETURN):
            return None
        reads.update(set(step.reads) - writes)
        writes.update(step.writes)
        loads |= step.loads
        stores |= step.stores
    return CalledEffects(tuple(reads), tuple(writes), loads, stores)


def find_stored_spaces(instructions: Instructions) -> int:
    """Mask of the spaces that some instruction of a function may change."""
    mask = 0
    for mnemonic in instructions.mnemonics:
        mask |= _find_kind(mnemonic).stores
    return mask


def _spread_stores(graph: FlowGraph, stores: npt.NDArray[np.int64], elsewhere: int) -> list[int]:
    """For each block the spaces that may have been changed when it ends; a search per space, linear in the edges."""
    by_block: npt.NDArray[np.int64] = np.zeros(graph.block_count, dtype=np.int64)
    np.bitwise_or.at(by_block, graph.block_of_instruction, stores)
    found = [elsewhere] * graph.block_count
    for space in (1 << bit for bit in range(SPACE_COUNT)):
        if elsewhere & space:
            continue
        waiting = np.flatnonzero(by_block & space).tolist()
        for block in waiting:
            found[block] |= space
        while waiting:
            for successor in graph.successors(waiting.pop()).tolist():
                if not found[successor] & space:
                    found[successor] |= space
                    waiting.append(successor)
    return found
