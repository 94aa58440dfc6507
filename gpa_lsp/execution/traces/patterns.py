"""In what pattern the lanes of a warp lie: contiguous, strided, broadcast, in pieces, or scattered."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.traces.lane_addresses import WARP_LANES, Integers, LaneMatrix
from gpa_lsp.foundation.native.shared_library import find_core
from gpa_lsp.foundation.records import ColumnRecord

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
