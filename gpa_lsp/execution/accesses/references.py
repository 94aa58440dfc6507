"""References to lines, sectors or words, in the assumed order of the warps.

A warp-level request refers to each distinct unit it touches once, by ascending address: what a coalescing unit sends to a cache. Warps are
interleaved *round robin*: each makes one request of any space in its turn; within a turn blocks go by ascending number and warps by ascending
number. Approximation: barriers and latencies do not hold warps back, so a warp with fewer requests before a barrier runs ahead of the others.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.accesses.lane_addresses import (
    Integers,
    LaneColumns,
    Marks,
    RequestColumns,
    count_lanes,
    split_rows,
)
from gpa_lsp.execution.accesses.request_kinds import EqualRows, find_equal_rows
from gpa_lsp.execution.emulator.model import Accesses
from gpa_lsp.foundation.records import ColumnRecord

UNBOUNDED = 1 << 62  # References, where there is no limit

_WARP_BITS = 16
_LOCAL_BASE = 1 << 62  # Local memory lies above every virtual address, a frame per warp
_FRAME_BITS = 24  # A thread has 512 KiB of local memory at most, a warp 16 MiB


class References(ColumnRecord, frozen=True, kw_only=True):
    """m references of some rows, in the order of the rows."""

    size: Integers  # int64[n], of each row that was looked at; fewer than were asked for where there were too many references
    unit: Integers  # int64[m], address divided by the size of a unit


def name_warps(accesses: Accesses) -> Integers:
    """int64[n], one number per warp of the grid, ascending with block and warp."""
    return (accesses.block.astype(np.int64) << _WARP_BITS) | accesses.warp


class WarpOrders(ColumnRecord, frozen=True, kw_only=True):
    """n rows of a trace, of which some are chosen, in the orders of their warps."""

    turns: Integers  # int64[n], how many requests, of any space, the row's warp had made before
    by_warp: Integers  # int64[k], the chosen ones, warp by warp
    by_block: Integers  # int64[k], the same, block by block, and round robin within one


class NumberedWarps(ColumnRecord, frozen=True, kw_only=True):
    """The warps of n rows, by numbers."""

    number: "npt.NDArray[np.int32]"  # int32[n], of the warp of each row
    key: Integers  # int64[k], of each warp: its block, and its number there in the last 16 bits

    @property
    def block(self) -> Integers:
        """int64[k], of each warp."""
        return self.key >> _WARP_BITS

    @property
    def place(self) -> Integers:
        """int64[k], of each warp in its block."""
        return self.key & ((1 << _WARP_BITS) - 1)


def order_warps(accesses: Accesses, warps: NumberedWarps, is_chosen: Marks) -> WarpOrders:
    """Rows in the orders of their warps.

    Args:
        is_chosen: bool[n], rows of it.
    """
    rows, turns = np.flatnonzero(is_chosen), number_turns(warps)
    rank = np.empty(len(warps.key), np.int64)
    rank[np.argsort(warps.key)] = np.arange(len(rank))
    rank = rank[warps.number[rows]]
    return WarpOrders(
        turns=turns,
        by_warp=rows[order_rows(rank)],  # those of a warp are in its order
        by_block=rows[order_rows(accesses.block[rows], turns[rows], rank)],
    )


def number_turns(warps: NumberedWarps) -> Integers:
    """int64[n], how many requests, of any space, the row's warp had made before."""
    return _count_before(warps.number, len(warps.key), np.ones(len(warps.number), np.bool_))


def count_before(owners: EqualRows, marks: Marks) -> Integers:
    """int64[n], marked rows with the same number before each row."""
    return _count_before(owners.number.astype(np.int32), len(owners.first), marks)


def _count_before(numbers: "npt.NDArray[np.int32]", count: int, marks: Marks) -> Integers:
    from gpa_lsp.execution.accesses.request_loops import count_marked  # llvmlite takes .1 s to import

    found = np.empty(len(numbers), np.int64)
    count_marked(numbers, marks, np.zeros(count, np.int64), found)
    return found


def list_references(lanes: LaneColumns, rows: Integers, shift: int, most: int = UNBOUNDED) -> References:
    """The references of some rows; those to local memory count from the start of the warp's frame.

    Args:
        rows: int64[n], in the order of the references.
        shift: units are of ``2**shift`` bytes, at least a word.
        most: references after which no further chunk of rows is looked at.
    """
    from gpa_lsp.execution.accesses.request_loops import MOST_STARTS, list_units  # llvmlite takes .1 s to import

    rows = np.ascontiguousarray(rows, np.int64)
    sizes, units = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    total = 0
    for chunk in split_rows(rows):
        words = lanes.width[chunk].astype(np.int64) // 4 + 1  # of a lane
        room = 2 * int((count_lanes(lanes.mask[chunk]) * words).sum()) + MOST_STARTS
        size, unit = np.empty(len(chunk), np.int64), np.empty(room, np.int64)
        used = list_units(lanes, chunk, shift, size, unit)
        sizes.append(size)
        units.append(unit[:used].copy())
        total += used
        if total > most:
            break
    return References(size=np.concatenate(sizes), unit=np.concatenate(units))


def measure_requests(lanes: LaneColumns, rows: Integers) -> RequestColumns:
    """The columns of some rows, int64[n]. What is touched of local memory lies in the frame of the warp."""
    from gpa_lsp.execution.accesses.request_loops import MOST_STARTS, measure_rows  # llvmlite takes .1 s to import

    found = np.empty((len(RequestColumns.__struct_fields__), len(rows)), np.int64)
    measure_rows(lanes, np.ascontiguousarray(rows, np.int64), np.empty(MOST_STARTS, np.int64), found)
    return RequestColumns(**dict(zip(RequestColumns.__struct_fields__, found, strict=True)))


def find_frames(accesses: Accesses, rows: Integers) -> Integers:
    """int64[n], the first byte of the frame of local memory of each row's warp; 0 for rows of other memory.

    A number per warp, as small as a product of the largest block and warp allows; folded where 62 bits do not hold them.
    """
    found, is_local = np.zeros(len(rows), np.int64), accesses.space[rows] == Space.LOCAL
    inner, width = rows[is_local], max(int(accesses.warp.max(initial=0)) + 1, 64)
    frames = (accesses.block[inner].astype(np.int64) * width + accesses.warp[inner]) % (1 << 37)
    found[is_local] = _LOCAL_BASE + (frames << _FRAME_BITS)
    return found


def order_rows(*columns: "npt.NDArray[Any]") -> Integers:
    """The rows by the first column, those equal in it by the second …; those equal in all of them stay in their order.

    Args:
        columns: integers, n each, at least one.

    Returns:
        int64[n], places.

    >>> order_rows(np.array([1, 0, 1, 0]), np.array([5, 2, 3, 2])).tolist()
    [1, 3, 2, 0]
    """
    from gpa_lsp.execution.accesses.request_loops import DIGIT_BITS, sort_digit  # llvmlite takes .1 s to import

    count = len(columns[0])
    order, room, key, bits = np.arange(count), np.empty(count, np.int64), np.zeros(count, np.int64), 0

    def sort() -> None:
        nonlocal order, room
        for shift in range(0, bits, DIGIT_BITS):
            sort_digit(key, shift, order, np.zeros((1 << DIGIT_BITS) + 1, np.int64), room)
            order, room = room, order

    for column in reversed(columns if count else ()):  # as long as 64 bits hold them, columns are sorted together
        lowest = int(column.min())
        span = (int(column.max()) - lowest).bit_length()
        if bits + span > 63:
            sort()
            key, bits = np.zeros(count, np.int64), 0
        key |= (column.astype(np.int64) - lowest) << bits
        bits += span
    sort()
    return order


def number_warps(blocks: "npt.NDArray[np.uint32]", warps: "npt.NDArray[np.uint16]") -> NumberedWarps:
    """Give each warp a number.

    Args:
        blocks: uint32[n], of the rows.
        warps: uint16[n], within its block.
    """
    keys = blocks.astype(np.int64) << _WARP_BITS | warps
    found = find_equal_rows(keys)
    return NumberedWarps(number=found.number.astype(np.int32), key=keys[found.first])


def order_turns(warps: "npt.NDArray[np.int32]", turns: Integers, groups: Integers, ranks: Integers) -> Integers:
    """Order rows by group of warps, and round robin in each: by turn, then by rank of the warp.

    Args:
        warps: int32[n], the warp of each row.
        turns: int64[n], of the rows; not negative.
        groups: int64[k], of the warps; not negative.
        ranks: int64[k], of the warps in their groups; not negative.

    Returns:
        int64[n], places. Rows that are equal in all stay in their order.

    >>> warps, turns = np.array([0, 0, 1, 2], np.int32), np.array([0, 1, 0, 0])
    >>> order_turns(warps, turns, np.array([1, 1, 0]), np.array([1, 0, 0])).tolist()
    [3, 2, 0, 1]
    """
    return order_rows(groups[warps], turns, ranks[warps])


class Distances(ColumnRecord, frozen=True, kw_only=True):
    """Reuse distances of n references."""

    # int64[n], distinct units referenced since the last reference to the same unit; INFINITE for a first one, NOT_COUNTED for one
    # that erases
    distance: Integers
    is_streaming: Marks  # bool[n], a first reference whose unit is not referenced again, or is erased before it is
    previous: Integers  # int64[n], the place of the reference before to the same unit of the same group, erasing or not; -1 for none


def measure_distances(units: Integers, groups: Integers, erases: Marks | None = None) -> Distances:
    """The reuse distance of every reference.

    Args:
        units: int64[n], what is referenced, not negative; in the order of the references.
        groups: int64[n], never falling: sequences of their own, one after the other. Nothing is reused across them.
        erases: bool[n], references that only erase their unit (a store under write-evict): the next reference to it is a first one, and until
            then it counts in no other distance. None for none.

    >>> text = np.frombuffer(b"ABCCDEFAAAB", dtype=np.uint8).astype(np.int64)
    >>> measure_distances(text, np.zeros(11, dtype=np.int64)).distance.tolist()
    [-1, -1, -1, 0, -1, -1, -1, 5, 0, 0, 5]
    """
    from gpa_lsp.execution.accesses import reuse_loops  # llvmlite takes .1 s to import

    count = len(units)
    known = reuse_loops.number_lists(np.ones(count, np.int64), np.ascontiguousarray(units, np.int64))
    found = Distances(
        distance=np.empty(count, np.int64), is_streaming=np.empty(count, np.bool_), previous=np.empty(count, np.int64)
    )
    ends = np.flatnonzero(np.diff(groups, append=-1)) + 1
    reuse_loops.measure_units(
        known.lists,
        reuse_loops.Sequences(known.number, ends, known.number),
        np.zeros(0, np.bool_) if erases is None else np.ascontiguousarray(erases),
        reuse_loops.open_recency(known.lists, len(known.units), count),
        reuse_loops.UnitColumns(found.distance, found.is_streaming, found.previous, np.full(len(known.units), -1)),
    )
    return found


def find_hits(units: Integers, capacity: int) -> Marks:
    """Whether each reference hits in a cache of ``capacity`` units with least-recently-used replacement, empty at first: bool[n].

    Args:
        units: int64[n], not negative, in the order of the references.
    """
    distance = measure_distances(units, np.zeros(len(units), np.int64)).distance
    return (distance >= 0) & (distance < capacity)
