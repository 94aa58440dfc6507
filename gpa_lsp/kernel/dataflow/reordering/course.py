"""Courses: code that is executed in one order, step by step, in which instructions could change places.

The course of a basic block is its instructions. The course of a loop is the code of every iteration: the blocks on every path to the jump back,
with *side code* between them (branches, inner loops) as one step each. Code that an iteration may skip has no place of its own in it.

A step's reads, writes and orderings forbid some exchanges with others. Memory is distinguished by space, not by address: two accesses to one space
may be to the same place unless both only read. Loads through the read-only path (``LDG.….CONSTANT``, textures, constants) see memory that does
not change while the kernel runs, so they are not ordered.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from itertools import pairwise, repeat, takewhile
from operator import or_
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow, Instructions
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.code.control_flow.graph import reverse_edges, solve_backwards
from gpa_lsp.code.control_flow.model import FlowGraph, Loop

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

# Opcodes that order accesses, or wait until asynchronous ones are done, with any other party
FENCES = frozenset(
    {"MEMBAR", "FENCE", "ERRBAR", "CGAERRBAR", "DEPBAR", "LDGDEPBAR", "SYNCS", "ARRIVES", "WARPGROUP"}
    | {"ACQBULK", "PREEXIT", "ACQSHMINIT", "UTCBAR", "CCTL", "UTMACMDFLUSH", "UTMACCTL"}
)


@lru_cache(maxsize=8192)
def _find_kind(mnemonic: str) -> tuple[int, int, bool, bool, bool]:
    """Effects of a mnemonic on memory: masks of spaces it loads from and stores to; whether it loads a value, is a block barrier, is a fence."""
    opcode = describe_mnemonic(mnemonic)
    loads, stores = find_spaces(opcode)
    if loads and opcode.access is Access.LOAD and _READ_ONLY in mnemonic.split("."):
        loads = 0
    is_load = opcode.access in (Access.LOAD, Access.ATOMIC) and opcode.memory is not MemorySpace.CONSTANT
    return loads, stores, is_load, opcode.name in BLOCK_BARRIERS, opcode.name in FENCES


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
    loads: int  # mask of changeable spaces it may read
    stores: int  # mask of spaces it may change
    is_order: bool  # accesses may not pass it; ``loads`` and ``stores`` say to which spaces
    is_call: bool  # nothing is moved past it: control may not come back, or only after code that is not looked at
    may_leave: bool  # control may go elsewhere here for good, so that what follows may not happen
    is_load: bool  # it brings a value from memory that is not a constant
    is_movable: bool  # it could be placed elsewhere: no jump and no barrier
    blocks: tuple[int, ...] = ()  # of side code its blocks


# Effects of calling a routine: resource numbers it reads and writes, masks of spaces it loads from and stores to
CalledEffects = tuple[tuple[int, ...], tuple[int, ...], int, int]


def find_steps(instructions: Instructions, graph: FlowGraph, stored_elsewhere: int) -> tuple[Step, ...]:
    """The effects of each of a function's instructions.

    A block barrier orders accesses to the spaces that may have been stored to before it: without a store there is nothing to exchange.
    A fence orders accesses to all spaces.
    """
    kinds = np.array([_find_kind(mnemonic) for mnemonic in instructions.mnemonics], dtype=np.int64)
    loads, stores, *is_kind = kinds[instructions.mnemonic_index].T
    is_load, is_barrier, is_fence = (one > 0 for one in is_kind)
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
    """A function's steps with the effects of its calls."""
    found = list(steps)
    for row, (reads, writes, loads, stores) in called.items():
        every = tuple({*steps[row].reads, *reads})
        found[row] = steps[row]._replace(reads=every, writes=writes, loads=loads, stores=stores, is_call=False)
    return tuple(found)


def summarise_routine(steps: Sequence[Step]) -> CalledEffects | None:
    """Effects of a call of a routine, from its instructions in address order; None where it calls others, orders accesses or may not return.

    A register counts as read where no instruction before writes it; as written, and not as kept, wherever one does: calling conventions leave
    nothing of use there.
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
    return tuple(reads), tuple(writes), loads, stores


def find_stored_spaces(instructions: Instructions) -> int:
    """Mask of the spaces that some instruction of a function may change."""
    return reduce(or_, (_find_kind(mnemonic)[1] for mnemonic in instructions.mnemonics), 0)


def _spread_stores(graph: FlowGraph, stores: npt.NDArray[np.int64], elsewhere: int) -> list[int]:
    """Spaces that may have been changed when each block ends."""
    own: npt.NDArray[np.int64] = np.full(graph.block_count, elsewhere, dtype=np.int64)
    np.bitwise_or.at(own, graph.block_of_instruction, stores)
    by_block: list[int] = own.tolist()
    before = reverse_edges(graph.list_successors())
    return solve_backwards(before, lambda block, found: reduce(or_, found, by_block[block]), 0)


# Loops with more jumps back have no course of their own: every jump costs a walk through the loop
_MOST_JUMPS_BACK = 16

# Steps up the post-dominator tree in search of the next block; a block not found by then counts as one that may be skipped
_FARTHEST_POST_DOMINATOR = 64


class Course(Struct, frozen=True, kw_only=True):
    """A piece of code in the order of its execution."""

    steps: tuple[Step, ...]  # in that order
    is_loop: bool  # the last step is followed by the first one
    position: dict[int, int]  # instruction number → step
    calls: tuple[int, ...]  # steps that are calls, ascending
    ways_out: tuple[int, ...]  # steps that are calls, or at which control may leave, ascending
    orders: tuple[int, ...]  # steps that order accesses, ascending

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def is_movable(self) -> npt.NDArray[np.bool_]:
        """bool[m], by step."""
        return np.array([step.is_movable for step in self.steps], dtype=np.bool_)

    def sum_over_steps(self, values: npt.NDArray[np.float64], graph: FlowGraph) -> npt.NDArray[np.float64]:
        """float64[m], the values of each step's instructions added up, from float64[n] by instruction of the function."""
        sums = values[[max(step.instruction, 0) for step in self.steps]]
        for position, step in enumerate(self.steps):
            if step.instruction == SIDE_CODE:
                sums[position] = values[list_instructions(graph, step.blocks)].sum()
        return sums

    def expand(self, positions: npt.NDArray[np.int64], graph: FlowGraph) -> npt.NDArray[np.int64]:
        """int64[k], the instruction numbers of some steps, those of side code included."""
        parts = [np.zeros(0, dtype=np.int64)]
        for position in positions.tolist():
            step = self.steps[position]
            if step.instruction == SIDE_CODE:
                parts.append(list_instructions(graph, step.blocks))
            else:
                parts.append(np.array([step.instruction], dtype=np.int64))
        return np.concatenate(parts)


def list_instructions(graph: FlowGraph, blocks: Sequence[int]) -> npt.NDArray[np.int64]:
    """int64[k], the instruction numbers of some blocks."""
    chosen = np.asarray(blocks, dtype=np.int64)
    first = graph.first_instruction[chosen].astype(np.int64)
    sizes = graph.last_instruction[chosen] - first + 1
    before = np.cumsum(sizes) - sizes
    return np.repeat(first - before, sizes) + np.arange(int(sizes.sum()))


def build_block_course(graph: FlowGraph, steps: Sequence[Step], block: int) -> Course:
    """The course of one basic block."""
    first, last = int(graph.first_instruction[block]), int(graph.last_instruction[block])
    return _make_course(steps[first : last + 1], is_loop=False)


def build_loop_course(graph: FlowGraph, steps: Sequence[Step], number: int) -> Course | None:
    """The course of one iteration of a loop; None where its blocks have no fixed order (irreducible loops, many jumps back)."""
    spine = find_spine(graph, number)
    if not spine:
        return None
    sides = _group_sides(graph, number, spine)
    found: list[Step] = []
    for block, following in pairwise([*spine, spine[0]]):
        first, last = int(graph.first_instruction[block]), int(graph.last_instruction[block])
        found += steps[first : last + 1]
        if not _always_follows(graph, block, following):
            found[-1] = found[-1]._replace(may_leave=True)
        if sides[block]:
            found.append(_summarise(graph, steps, sides[block]))
    return _make_course(found, is_loop=True)


def _make_course(steps: Sequence[Step], *, is_loop: bool) -> Course:
    position = {step.instruction: place for place, step in enumerate(steps) if step.instruction != SIDE_CODE}
    return Course(
        steps=tuple(steps),
        is_loop=is_loop,
        position=position,
        calls=tuple(place for place, step in enumerate(steps) if step.is_call),
        ways_out=tuple(place for place, step in enumerate(steps) if step.is_call or step.may_leave),
        orders=tuple(place for place, step in enumerate(steps) if step.is_order),
    )


def find_spine(graph: FlowGraph, number: int) -> tuple[int, ...]:
    """The blocks directly in a loop (in no inner one) that every full iteration passes, in order; empty where unknown."""
    loop = graph.loops[number]
    if loop.is_irreducible or len(loop.back_edge_sources) > _MOST_JUMPS_BACK:
        return ()
    walks = [_walk_up(graph, number, loop, source) for source in loop.back_edge_sources]
    common = set(walks[0]).intersection(*walks[1:])
    return tuple(block for block in reversed(walks[0]) if block in common)


def _walk_up(graph: FlowGraph, number: int, loop: Loop, source: int) -> list[int]:
    """The blocks directly in the loop that dominate a block, from there up to the header; inner loops are stepped over at their headers."""
    found = []
    block = source
    while block >= 0:
        inner = _find_outermost_inside(graph, number, block)
        if inner is not None:
            block = int(graph.immediate_dominator[graph.loops[inner].header])
            continue
        found.append(block)
        if block == loop.header:
            return found
        block = int(graph.immediate_dominator[block])
    return []


def _find_outermost_inside(graph: FlowGraph, number: int, block: int) -> int | None:
    """The loop directly inside loop ``number`` that holds the block; None when it is in no inner loop."""
    inner = tuple(takewhile(lambda loop: loop != number, graph.loops_around(block)))
    return inner[-1] if inner else None


def _group_sides(graph: FlowGraph, number: int, spine: Sequence[int]) -> dict[int, list[int]]:
    """Block of the spine → the other blocks of the loop that are entered from it, inner loops included."""
    nearest = {block: block for block in spine}
    members = graph.blocks_of_loop(number).tolist()
    sides: dict[int, list[int]] = {block: [] for block in spine}
    for block in members:
        path = []
        owner = spine[0]
        for at in graph.dominators_of(block):
            if at in nearest:
                owner = nearest[at]
                break
            path.append(at)
        nearest.update((passed, owner) for passed in path)
        if block not in sides:
            sides[owner].append(block)
    return sides


def _always_follows(graph: FlowGraph, block: int, following: int) -> bool:
    """Whether control that passes ``block`` always comes to ``following``."""
    climb = graph.post_dominators_of(block)
    next(climb, None)  # the block itself
    return any(passed == following for passed, _ in zip(climb, range(_FARTHEST_POST_DOMINATOR), strict=False))


def _summarise(graph: FlowGraph, steps: Sequence[Step], blocks: Sequence[int]) -> Step:
    """All of some blocks as one step."""
    reads: set[int] = set()
    writes: set[int] = set()
    loads = stores = 0
    is_order = is_call = may_leave = is_load = False
    for index in list_instructions(graph, blocks).tolist():
        step = steps[index]
        reads.update(step.reads)
        writes.update(step.writes)
        loads |= step.loads
        stores |= step.stores
        is_order = is_order or step.is_order
        is_call = is_call or step.is_call
        may_leave = may_leave or step.may_leave
        is_load = is_load or step.is_load
    return Step(
        instruction=SIDE_CODE,
        flow=Flow.NONE,
        reads=tuple(reads),
        writes=tuple(writes),
        is_partial=True,
        loads=loads,
        stores=stores,
        is_order=is_order,
        is_call=is_call,
        may_leave=may_leave,
        is_load=is_load,
        is_movable=not is_order and not is_call,
        blocks=tuple(blocks),
    )
