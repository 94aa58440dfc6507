"""How many lines, sectors and bytes the lanes of one warp access touch together.

Source: CUDAAdvisor (CGO 2018), section 4.2 (B), memory divergence: distinct lines per access.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.traces.lane_addresses import WARP_LANES, Integers, LaneMatrix, spread_lanes
from gpa_lsp.foundation.native.shared_library import find_core
from gpa_lsp.foundation.records import ColumnRecord

LINE_SHIFT = 7  # A line has 128 bytes
SECTOR_SHIFT = 5  # A sector has 32 bytes; a line has four
WORD_SHIFT = 2  # An element of a reuse distance is a word of 4 bytes
SECTOR_BYTES = 1 << SECTOR_SHIFT
LINE_BYTES = 1 << LINE_SHIFT

_WORD_BYTES = 1 << WORD_SHIFT
_LOCAL_ROW_BYTES = WARP_LANES * _WORD_BYTES


class Intervals(ColumnRecord, frozen=True, kw_only=True):
    """What each of n rows touches: k byte intervals, by ascending address."""

    starts: npt.NDArray[np.uint64]  # uint64[n, k], ascending in each row; repeated ones do not matter
    bytes: npt.NDArray[np.uint64]  # uint64[n, 1], of every interval of the row


class Touched(ColumnRecord, frozen=True, kw_only=True):
    """What n warp accesses touch; all int64[n]."""

    lines: Integers  # distinct lines of 128 bytes. Every byte of an access counts, so an access across a boundary touches both sides.
    sectors: Integers  # distinct sectors of 32 bytes
    used_bytes: Integers  # distinct bytes
    ideal_sectors: Integers  # the fewest sectors that could hold the distinct bytes
    distinct: Integers  # distinct addresses of first bytes


def build_intervals(matrix: LaneMatrix, bytes_per_lane: npt.NDArray[np.uint8]) -> Intervals:
    """The intervals of rows in any space but local memory."""
    return Intervals(starts=_sort_rows(matrix.addresses), bytes=bytes_per_lane[:, None].astype(np.uint64))


def build_local_intervals(matrix: LaneMatrix, bytes_per_lane: int) -> Intervals:
    """The intervals of rows in local memory, all of one width, as they lie in the memory of the warp.

    Local memory is interleaved: word ``w`` of lane ``l`` lies at byte ``128·w + 4·l`` of the warp's frame, so that lanes which access the same
    offset touch one line.

    Source: CUDA C++ Programming Guide, "Device Memory Accesses", Local Memory.
    """
    addresses, active = spread_lanes(matrix)
    words = max(1, bytes_per_lane // _WORD_BYTES)
    lanes = np.arange(WARP_LANES, dtype=np.uint64)
    parts = [
        (((addresses >> np.uint64(WORD_SHIFT)) + np.uint64(word)) * np.uint64(_LOCAL_ROW_BYTES))
        + lanes * np.uint64(_WORD_BYTES)
        + (addresses & np.uint64(_WORD_BYTES - 1))
        for word in range(words)
    ]
    first_lane = matrix.lanes[:, :1]
    starts = np.concatenate(
        [np.where(active, part, np.take_along_axis(part, first_lane, axis=1)) for part in parts], axis=1
    )
    width = np.full((len(starts), 1), min(bytes_per_lane, _WORD_BYTES), dtype=np.uint64)
    return Intervals(starts=_sort_rows(starts), bytes=width)


def measure_intervals(intervals: Intervals) -> Touched:
    """Count what the intervals of each row cover together.

    Because the intervals of a row are of one length and ascending, an interval adds what lies beyond the one before it; no set is built.
    """
    starts = intervals.starts
    core = find_core()
    if core is not None:
        lines, sectors, used, distinct = np.empty((4, len(starts)), np.int64)
        row_starts, widths = np.ascontiguousarray(starts), np.ascontiguousarray(intervals.bytes)
        if core.has_done("measure_intervals", row_starts, widths, *starts.shape, lines, sectors, used, distinct):
            ideal = -(-used // SECTOR_BYTES)
            return Touched(lines=lines, sectors=sectors, used_bytes=used, ideal_sectors=ideal, distinct=distinct)
    gaps = starts[:, 1:] - starts[:, :-1]
    width = intervals.bytes[:, 0].astype(np.int64)
    used = width + np.minimum(gaps, intervals.bytes).sum(axis=1).astype(np.int64)
    return Touched(
        lines=count_new_segments(intervals, LINE_SHIFT).sum(axis=1),
        sectors=count_new_segments(intervals, SECTOR_SHIFT).sum(axis=1),
        used_bytes=used,
        ideal_sectors=-(-used // SECTOR_BYTES),
        distinct=1 + np.count_nonzero(gaps, axis=1),
    )


def count_new_segments(intervals: Intervals, shift: int) -> Integers:
    """int64[n, k], segments of ``2**shift`` bytes that each interval touches and none before it in its row does."""
    first = (intervals.starts >> np.uint64(shift)).view(np.int64)
    last = ((intervals.starts + (intervals.bytes - np.uint64(1))) >> np.uint64(shift)).view(np.int64)
    new = last - first + 1
    new[:, 1:] = last[:, 1:] - np.maximum(last[:, :-1], first[:, 1:] - 1)
    return new


def list_segments(intervals: Intervals, shift: int) -> tuple[Integers, Integers]:
    """Every distinct segment of every row.

    Returns:
        int64[m] and int64[m]: number of the row, ascending, and the segment (address divided by its size), ascending in its row.
    """
    core = find_core()
    if core is not None:
        starts, widths = np.ascontiguousarray(intervals.starts), np.ascontiguousarray(intervals.bytes)
        room = starts.size
        while True:
            rows, segments = np.empty((2, room), np.int64)
            found = core.call("list_segments", starts, widths, *starts.shape, shift, room, rows, segments)
            if found <= room:
                return rows[:found], segments[:found]
            room = found
    new = count_new_segments(intervals, shift)
    last = ((intervals.starts + (intervals.bytes - np.uint64(1))) >> np.uint64(shift)).view(np.int64)
    row, column = np.nonzero(new)
    counts = new[row, column]
    ends = last[row, column]
    if int(counts.max(initial=0)) <= 1:
        return row, ends
    before = np.cumsum(counts) - counts
    step = np.arange(int(counts.sum())) - np.repeat(before, counts)
    return np.repeat(row, counts), np.repeat(ends - counts + 1, counts) + step


def _sort_rows(addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    core = find_core()
    if core is not None:
        ordered = np.array(addresses, np.uint64, order="C")
        core.call("sort_rows", ordered, *ordered.shape)
        return ordered
    falls = (addresses[:, 1:] < addresses[:, :-1]).any(axis=1)
    if not falls.any():
        return addresses
    result = addresses.copy()
    result[falls] = np.sort(addresses[falls], axis=1)
    return result


_LEAST_IN_PIECES = 0.5  # Pieces: from this share of equal distances between neighbouring lanes on


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


class Patterns(ColumnRecord, frozen=True, kw_only=True):
    """Patterns of n requests."""

    pattern: Integers  # int64[n], :class:`LanePattern`
    stride_bytes: Integers  # int64[n], from a lane to the next one; 0 where the pattern has none


def find_patterns(matrix: LaneMatrix, bytes_per_lane: npt.NDArray[np.uint8]) -> Patterns:
    """The patterns of some requests.

    Distances are taken between active lanes that follow each other and divided by the lanes between them, so that a stride is not lost where a
    mask has holes. Lanes that lie side by side whatever is between them are contiguous, and of two lanes one is a stride from the other.
    """
    core = find_core()
    if core is not None:
        patterns, strides = np.empty((2, len(matrix.counts)), np.int64)
        columns = (np.ascontiguousarray(one) for one in (matrix.addresses, matrix.lanes, matrix.counts, bytes_per_lane))
        if core.has_done("find_patterns", *columns, len(matrix.counts), patterns, strides):
            return Patterns(pattern=patterns, stride_bytes=strides)
    distance = np.diff(matrix.addresses.view(np.int64), axis=1)
    gap = np.diff(matrix.lanes, axis=1)
    counts = matrix.counts
    is_there = np.arange(1, WARP_LANES) < counts[:, None]
    first = distance[:, 0]
    first_gap = np.maximum(gap[:, 0], 1)
    stride = first // first_gap
    equal = np.count_nonzero((distance == stride[:, None] * gap) & is_there, axis=1)
    many = np.maximum(counts - 1, 1)
    width = bytes_per_lane.astype(np.int64)
    beside = np.count_nonzero((distance == width[:, None]) & is_there, axis=1) == many
    stride = np.where(beside, width, np.where(counts == 2, first, stride))
    is_all = (equal == many) | beside | (counts == 2)
    is_most = equal >= _LEAST_IN_PIECES * many
    conditions = [
        counts == 1,
        is_all & (stride == 0),
        is_all & (stride == width),
        is_all,
        is_most & (stride == width),
        is_most & (stride == 0),
        is_most,
    ]
    pattern = np.select(conditions, list(range(len(conditions))), default=LanePattern.SCATTERED).astype(np.int64)
    has_stride = (
        (pattern == LanePattern.CONTIGUOUS)
        | (pattern == LanePattern.STRIDED)
        | (pattern == LanePattern.CONTIGUOUS_PIECES)
        | (pattern == LanePattern.STRIDED_PIECES)
    )
    return Patterns(pattern=pattern, stride_bytes=np.where(has_stride, stride, 0))
