"""The lanes of warp-level accesses, their addresses, and the lines, sectors and bytes that they touch.

Source: CUDAAdvisor (CGO 2018), section 4.2 (B), memory divergence: distinct lines per access.
"""

from collections.abc import Iterator
from enum import IntEnum
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES, WARP_LANES
from gpa_lsp.execution.emulator.engine.geometry import unpack_lanes
from gpa_lsp.execution.emulator.model import Accesses, Buffer, Trace
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord

FULL_MASK = 0xFFFFFFFF
CHUNK_ROWS = 1 << 13  # Rows whose addresses are looked at together: 2 MiB of them, what a core's cache holds

MOST_INSTRUCTIONS = 1 << 20
MOST_ARRAYS = (1 << 12) - 2  # A trace with more is refused: keys of sums hold both

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

_LANES = np.arange(WARP_LANES, dtype=np.int64)


class LaneColumns(NamedTuple):
    """The lanes of n rows as compiled loops take them; none of the columns can be written to."""

    mask: npt.NDArray[np.uint32]  # uint32[n], never 0
    first: Integers  # int64[n], place of the address of the row's first lane; the others follow, by ascending lane
    address: Integers  # int64[m]
    width: npt.NDArray[np.uint8]  # uint8[n], bytes per lane, never 0
    space: npt.NDArray[np.uint8]  # uint8[n], :class:`~gpa_lsp.code.ptx.model.Space`


class LaneList(ColumnRecord, frozen=True, kw_only=True):
    """The m lane-level accesses of some rows, row by row, by ascending lane."""

    row: Integers  # int64[m], the trace's row
    lane: Integers  # int64[m], 0..31
    address: npt.NDArray[np.uint64]  # uint64[m]


def count_lanes(masks: npt.NDArray[np.uint32]) -> Integers:
    """Number of bits set in each mask: int64[n].

    >>> count_lanes(np.array([0, 1, 0xFFFFFFFF], dtype=np.uint32)).tolist()
    [0, 1, 32]
    """
    counts: Integers = np.bitwise_count(masks).astype(np.int64)
    return counts


def check_trace(trace: Trace) -> None:
    """See that a trace's indexes lead somewhere, before anything is looked up by them.

    Raises:
        InputError: a row names an instruction, a warp or an address the trace does not have, or has no lanes.
    """
    if len(trace.instructions) > MOST_INSTRUCTIONS or len(trace.buffers) > MOST_ARRAYS:
        raise InputError(
            f"a trace of {format_count(len(trace.instructions))} instructions and {format_count(len(trace.buffers))} arrays is too large",
            place=f"kernel {trace.kernel}",
            remedy=f"at most {format_count(MOST_INSTRUCTIONS)} instructions and {format_count(MOST_ARRAYS)} arrays can be analysed",
        )
    accesses, branches = trace.accesses, trace.branches
    for rows, name in ((accesses, "an access"), (branches, "a branch")):
        if len(rows) and int(rows.instruction.max()) >= len(trace.instructions):
            raise InputError(
                f"{name} names an instruction the trace does not have",
                place=f"kernel {trace.kernel}",
                remedy="record the trace again",
            )
    warps = -(-prod(trace.block_threads) // WARP_LANES)
    for column, name in ((accesses.warp, "an access"), (branches.warp, "a branch"), (trace.entries.warp, "an entry")):
        if len(column) and int(column.max()) >= warps:
            raise InputError(
                f"{name} names warp {int(column.max())} of {warps} in a block, counted from 0",
                place=f"kernel {trace.kernel}",
                remedy="record the trace again",
            )
    if not len(accesses):
        return
    lanes = count_lanes(accesses.lane_mask)
    if int(lanes.min()) == 0 or int(accesses.bytes.min()) == 0:
        raise InputError("an access has no lanes or no bytes", place=f"kernel {trace.kernel}", remedy="record it again")
    if int((accesses.first_address + lanes.astype(np.uint64)).max()) > len(accesses.addresses):
        raise InputError(
            "an access has fewer addresses than lanes", place=f"kernel {trace.kernel}", remedy="record the trace again"
        )


def split_rows(rows: Integers) -> Iterator[Integers]:
    """The rows in chunks of at most :data:`CHUNK_ROWS`."""
    for start in range(0, len(rows), CHUNK_ROWS):
        yield rows[start : start + CHUNK_ROWS]


def view_lanes(accesses: Accesses) -> LaneColumns:
    """The lanes of all rows."""
    return build_lanes(accesses.lane_mask, accesses.first_address, accesses.addresses, accesses.bytes, accesses.space)


def build_lanes(*columns: "npt.NDArray[Any]") -> LaneColumns:
    """Rows of the columns of :class:`LaneColumns`, in their order."""
    return LaneColumns(*(view_column(one.view(np.int64) if one.itemsize == 8 else one) for one in columns))


def view_column(column: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    """A column as compiled loops read it: contiguous and read-only, the one kind of array that they are compiled for."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


def list_lanes(accesses: Accesses, rows: Integers) -> LaneList:
    """The lane-level accesses of some rows."""
    counts = count_lanes(accesses.lane_mask[rows])
    place = np.arange(int(counts.sum())) + np.repeat(
        accesses.first_address[rows].astype(np.int64) - np.cumsum(counts) + counts, counts
    )
    lane = np.nonzero(unpack_lanes(accesses.lane_mask[rows]))[1]
    return LaneList(row=np.repeat(rows, counts), lane=lane, address=accesses.addresses[place])


def pack_lanes(accesses: Accesses, rows: Integers) -> npt.NDArray[np.uint64]:
    """uint64[n, 32], the addresses of the lanes of some rows; lanes that were not there repeat the first one's, which changes no set."""
    is_there = count_lanes(accesses.lane_mask[rows])[:, None] > _LANES
    addresses: npt.NDArray[np.uint64] = accesses.addresses[
        accesses.first_address[rows].astype(np.int64)[:, None] + _LANES * is_there
    ]
    return addresses


def spread_lanes(accesses: Accesses, rows: Integers) -> tuple[npt.NDArray[np.uint64], Marks]:
    """The addresses of some rows with a column per lane of the warp.

    Returns:
        uint64[n, 32] and bool[n, 32]: the address of each lane, and whether it is active; what is not active holds zero.
    """
    active = unpack_lanes(accesses.lane_mask[rows])
    addresses = np.zeros(active.shape, dtype=np.uint64)
    addresses[active] = list_lanes(accesses, rows).address
    return addresses, active


LINE_SHIFT = 7  # A line has 128 bytes
SECTOR_SHIFT = 5  # A sector has 32 bytes; a line has four
WORD_SHIFT = 2  # An element of a reuse distance is a word of 4 bytes


class LanePattern(IntEnum):
    """The pattern of one request; which one is decided in this order."""

    SINGLE = 0  # One lane
    BROADCAST = 1  # All lanes at one address
    CONTIGUOUS = 2  # Each lane begins where the lane before it ends
    STRIDED = 3  # Each lane is the same distance, not its own width, beyond the lane before it
    # Pieces of contiguous lanes: at least half of the distances between neighbours are their width (rows of a tile)
    CONTIGUOUS_PIECES = 4
    BROADCAST_PIECES = 5  # Groups of lanes at one address each: at least half of the distances are zero
    STRIDED_PIECES = 6  # At least half of the distances are the same as the first one
    SCATTERED = 7  # Anything else: a gather or scatter


# For people
PATTERN_WORDS = {
    LanePattern.SINGLE: "one lane",
    LanePattern.BROADCAST: "all lanes at one address",
    LanePattern.CONTIGUOUS: "contiguous",
    LanePattern.STRIDED: "strided",
    LanePattern.CONTIGUOUS_PIECES: "contiguous in pieces",
    LanePattern.BROADCAST_PIECES: "groups of lanes at one address",
    LanePattern.STRIDED_PIECES: "strided in pieces",
    LanePattern.SCATTERED: "scattered",
}


class RequestColumns(ColumnRecord, frozen=True, kw_only=True):
    """Memory touched by n warp-level accesses; all int64[n]."""

    lanes: Integers  # active ones
    lines: Integers  # distinct lines of 128 bytes. Every byte of an access counts, so an access across a boundary touches both sides.
    sectors: Integers  # distinct sectors of 32 bytes
    used_bytes: Integers  # distinct bytes
    distinct: Integers  # distinct addresses of first bytes
    pattern: Integers  # :class:`LanePattern`
    stride_bytes: Integers  # from a lane to the next one; 0 where the pattern has none

    @property
    def ideal_sectors(self) -> Integers:
        """int64[n], the fewest sectors that could hold the distinct bytes."""
        return -(-self.used_bytes // SECTOR_BYTES)

    def choose(self, rows: Integers) -> "RequestColumns":
        """Some of the rows."""
        return RequestColumns(**{name: getattr(self, name)[rows] for name in self.__struct_fields__})


ARRAY_SPACES = (Space.GLOBAL, Space.TEXTURE, Space.CONST)  # Spaces whose addresses are of arrays

CACHED_SPACES = (Space.GLOBAL, Space.TEXTURE, Space.LOCAL)  # Spaces whose accesses go through L1

INFINITE = -1  # In place of a distance of reuse: the unit was not there before
NOT_COUNTED = -2  # In place of one: the reference is none that has a distance (a store that erases)
OUTSIDE = -1  # In place of an array: none of the buffers holds the address


class ArrayIndex:
    """Finds arrays by address.

    Args:
        buffers: of the trace, in any order.

    Attributes:
        order: int64[n], the buffers by address.
        bases: uint64[n], their first addresses, ascending.
        ends: uint64[n], the addresses behind them.
    """

    def __init__(self, buffers: tuple[Buffer, ...]) -> None:
        self.order = np.array(sorted(range(len(buffers)), key=lambda one: buffers[one].base), dtype=np.int64)
        self.bases = np.array([buffers[one].base for one in self.order], dtype=np.uint64)
        self.ends = np.array([buffers[one].base + buffers[one].size_bytes for one in self.order], dtype=np.uint64)

    def find(self, addresses: npt.NDArray[np.uint64]) -> Integers:
        """int64 of the same shape: index into the buffers, or :data:`OUTSIDE`. The address of an access is its first byte's."""
        if len(self.order) == 0:
            return np.full(addresses.shape, OUTSIDE, dtype=np.int64)
        place = np.searchsorted(self.bases, addresses, side="right") - 1
        inside = (place >= 0) & (addresses < self.ends[place])
        return np.where(inside, self.order[place], OUTSIDE)


class ArrayParts(ColumnRecord, frozen=True, kw_only=True):
    """n parts of requests, each in one array.

    Arrays begin at multiples of 512 bytes, so the lines and sectors of the parts add up to those of the request.
    """

    row: Integers  # int64[n], of the trace, which a part is of
    array: Integers  # int64[n]; OUTSIDE for the lanes that are in none
    lanes: LaneColumns  # of the parts


def split_by_array(index: ArrayIndex, accesses: Accesses, rows: Integers) -> ArrayParts:
    """The parts of some requests."""
    lanes = list_lanes(accesses, rows)
    array = index.find(lanes.address)
    order = np.lexsort((array, lanes.row))  # those of an array stay in their order
    row, array = lanes.row[order], array[order]
    starts = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(array, prepend=OUTSIDE) != 0))
    masks = np.bitwise_or.reduceat(np.uint32(1) << lanes.lane[order].astype(np.uint32), starts)
    row, array = row[starts], array[starts]
    address = lanes.address[order]
    return ArrayParts(
        row=row, array=array, lanes=build_lanes(masks, starts, address, accesses.bytes[row], accesses.space[row])
    )
