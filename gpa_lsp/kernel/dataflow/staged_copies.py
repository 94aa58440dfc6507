"""Copies from global to shared memory: through registers (a load, and a store of its result), and asynchronous ones in flight; and loads that
a warp has in flight at once.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import NO_BARRIER, ResourceKind
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Pipe
from gpa_lsp.code.binary.sass import read_operands
from gpa_lsp.code.binary.uses import OperandKind, parse_operand
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, count_access_bytes, is_volatile, mark_accesses
from gpa_lsp.kernel.dataflow.reordering.placement import Track, find_placements
from gpa_lsp.kernel.dataflow.reordering.slack import Hold, SlackFinder
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import find_scopes

COPY_BYTES = (4, 8, 16)  # Sizes of one asynchronous copy of a thread

ASYNC_FENCES = frozenset({"LDGDEPBAR", "ARRIVES"})  # Opcodes that stand for all asynchronous copies before them

_WAIT = "DEPBAR"
_PENDING = re.compile(r"0x[0-9a-f]+")


class StagedCopy(Struct, frozen=True, kw_only=True):
    """A store to shared memory of values that were all just loaded from global memory."""

    store_row: int  # the store
    load_rows: tuple[int, ...]  # the loads, ascending
    loop: int  # number of the innermost loop around both; -1 outside loops
    bytes_moved: int  # by one thread


def find_staged_copies(kernel: KernelRows) -> tuple[StagedCopy, ...]:
    """The copies through registers, by address of their stores.

    A load counts when only such stores read its result, it has a size that can be copied asynchronously, and is not volatile. Copies
    whose next load needs the present one, or must stay behind a barrier, are left out: they cannot be started ahead.
    """
    stores = mark_accesses(kernel, (MemorySpace.SHARED,), (Access.STORE,))
    loads = mark_accesses(kernel, GLOBAL_SPACES, (Access.LOAD,))
    placements, finder, scopes = find_placements(kernel), SlackFinder(kernel), find_scopes(kernel)
    used: dict[int, set[int]] = {}
    found = []
    for row in np.flatnonzero(stores).tolist():
        place = placements.find(row)
        if place is None:
            continue
        sources = _find_data_sources(kernel, place.track, place.step)
        rows = tuple(sorted({place.track.row_of(step) for step in sources}))
        if not rows or not all(loads[source] and not is_volatile(kernel.mnemonic(source)) for source in rows):
            continue
        sizes = [count_access_bytes(kernel.mnemonic(source)) for source in rows]
        if id(place.track) not in used:
            used[id(place.track)] = _find_used(place.track, stores)
        length = len(place.track.course)
        is_used = not used[id(place.track)].isdisjoint(source % length for source in sources)
        if is_used or not all(size in COPY_BYTES for size in sizes):
            continue
        loop = scopes.loop_of(row)
        same_loop = all(scopes.loop_of(source) == loop for source in rows)
        if same_loop and all(_can_start_ahead(finder, source, row) for source in rows):
            found.append(StagedCopy(store_row=row, load_rows=rows, loop=loop, bytes_moved=sum(sizes)))
    return tuple(found)


def _find_data_sources(kernel: KernelRows, track: Track, step: int) -> tuple[int, ...]:
    """The steps that made the stored value; those that made the address are left out."""
    row = track.row_of(step)
    data = _find_data_registers(kernel, row)
    if not data:
        return ()
    # In a loop a value may be loaded in the turn before it is stored.
    at = step + len(track.course) if track.course.is_loop else step
    steps, length = track.course.steps, len(track.course)
    writers = [source for source in track.dependences.sources[at] if data.intersection(steps[source % length].writes)]
    written = {resource for source in writers for resource in steps[source % length].writes}
    return tuple(writers) if data <= written else ()


def _find_data_registers(kernel: KernelRows, row: int) -> set[int]:
    """The general registers a store stores."""
    instructions = kernel.function_of(row).instructions
    if instructions is None:
        return set()
    index = kernel.index_of(row)
    address: set[int] = set()
    for operand in (parse_operand(token) for token in read_operands(instructions.texts[index])):
        if operand.kind is OperandKind.ADDRESS:
            address.update(operand.expand(1))
    return {number for number in instructions.reads.of(index) if number >> 8 == ResourceKind.REGISTER} - address


def _find_used(track: Track, stores: npt.NDArray[np.bool_]) -> set[int]:
    """The steps whose results an instruction other than a store to shared memory reads."""
    length = len(track.course)
    found: set[int] = set()
    for step, direct in enumerate(track.dependences.sources):
        if direct and not stores[track.row_of(step)]:
            found.update(source % length for source in direct)
    return found


def _can_start_ahead(finder: SlackFinder, load: int, store: int) -> bool:
    turn = finder.find_next_turn(load, store)
    return turn is None or (not turn.is_recurrent and turn.order not in (Hold.BARRIER, Hold.CALL))


def mark_async_copies(kernel: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: instructions that start, or stand for, asynchronous copies from global memory."""
    return kernel.mark_by_opcode(
        lambda opcode: (
            (opcode.access is Access.COPY and opcode.memory is MemorySpace.GLOBAL) or opcode.name in ASYNC_FENCES
        ),
    )


def mark_bulk_copies(kernel: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: instructions with which one thread starts the copy of a whole tile (TMA)."""
    return kernel.mark_by_opcode(
        lambda opcode: (
            opcode.access is Access.COPY and opcode.memory is MemorySpace.GLOBAL and opcode.pipe is Pipe.UNIFORM
        ),
    )


def find_groups_pending(kernel: KernelRows) -> Mapping[int, int]:
    """Loop → groups of copies that may still be in flight behind its wait; the fewest where it waits in several places."""
    waits = kernel.mark_by_opcode(lambda opcode: opcode.name == _WAIT)
    found: dict[int, int] = {}
    for row in np.flatnonzero(waits).tolist():
        instructions = kernel.function_of(row).instructions
        if instructions is None:
            continue
        operands = read_operands(instructions.texts[kernel.index_of(row)])
        allowed = [int(operand, 16) for operand in operands if _PENDING.fullmatch(operand)]
        if allowed:
            loop = find_scopes(kernel).loop_of(row)
            found[loop] = min(found.get(loop, allowed[0]), allowed[0])
    return found


_BARRIERS = 6
_COUNTED_WAIT = re.compile(r"DEPBAR\.LE SB(\d), 0x([0-9a-f]+)")
_TURNS = 2  # A load may be waited for in the next pass through a loop


def count_loads_in_flight(kernel: KernelRows, rows: Sequence[int]) -> int:
    """The most loads from global memory that a warp has in flight while it executes some rows.

    Args:
        kernel: its rows.
        rows: of a loop, or of a whole kernel, ascending. They are taken in this order: an approximation where they branch.
    """
    is_load = mark_accesses(kernel, GLOBAL_SPACES, (Access.LOAD,))
    control = kernel.control
    pending = [0] * _BARRIERS
    most = 0
    for row in [*rows] * _TURNS:
        mask = int(control.wait_mask[row])
        for barrier in range(_BARRIERS):
            if mask >> barrier & 1:
                pending[barrier] = 0
        counted = _COUNTED_WAIT.search(kernel.texts[row])
        if counted is not None and int(counted[1]) < _BARRIERS:
            barrier = int(counted[1])
            pending[barrier] = min(pending[barrier], int(counted[2], 16))
        barrier = int(control.write_barrier[row])
        if is_load[row] and barrier != NO_BARRIER and barrier < _BARRIERS:
            pending[barrier] += 1
            most = max(most, sum(pending))
    return most
