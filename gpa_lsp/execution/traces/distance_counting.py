"""Exact reuse distances of a sequence of references, in O(n log n) column operations: :func:`measure_distances`.

With ``prev`` the place of the load a reference finds its unit at, the number of distinct units between the two is the number of loads between
them, less those whose unit is met again, or erased, before the reference: those are the earlier references with a larger ``prev``. Counting
them is counting inversions of a permutation, done bit by bit from the highest (a wavelet tree that is never kept).
"""

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.traces.lane_addresses import Integers, Marks
from gpa_lsp.foundation.native.shared_library import find_core
from gpa_lsp.foundation.records import ColumnRecord

INFINITE = -1  # In place of a distance: the unit was not there before
NOT_COUNTED = -2  # In place of a distance: the reference is none that has one (a store that erases)

_PART_BITS = 16  # Groups of up to 65,536 are counted one after the other, so that they stay in a core's cache
_SMALL_BITS = 4
_SMALL = 1 << _SMALL_BITS  # Groups of so many are counted by comparing all with all


class Distances(ColumnRecord, frozen=True, kw_only=True):
    """What n references find."""

    # int64[n], distinct units referenced since the last reference to the same unit; :data:`INFINITE` for a first one, :data:`NOT_COUNTED` for one
    # that erases
    distance: Integers
    is_streaming: Marks  # bool[n], a first reference whose unit is not referenced again, or is erased before it is


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
    count = len(units)
    core = find_core()
    if core is not None:
        distance, is_streaming = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_)
        sequence, group = np.ascontiguousarray(units, np.int64), np.ascontiguousarray(groups, np.int64)
        erasing = None if erases is None else np.ascontiguousarray(erases, np.bool_)
        if core.has_done("measure_distances", sequence, group, erasing, count, distance, is_streaming):
            return Distances(distance=distance, is_streaming=is_streaming)
    counted = np.ones(count, dtype=np.bool_) if erases is None else ~erases
    distance = np.where(counted, INFINITE, NOT_COUNTED).astype(np.int64)
    if count == 0:
        return Distances(distance=distance, is_streaming=np.zeros(0, dtype=np.bool_))
    previous = find_previous(units, groups)
    previous[(previous >= 0) & ~counted[previous]] = -1
    ends = np.flatnonzero(previous >= 0)
    starts = previous[ends]
    has_end = np.zeros(count, dtype=np.bool_)
    has_end[starts] = True
    inner = count_larger_before((np.cumsum(has_end) - 1)[starts])
    loads_before = np.cumsum(counted) - counted
    between = loads_before[ends] - loads_before[starts] - 1
    is_load = counted[ends]
    distance[ends[is_load]] = (between - inner)[is_load]
    reused = np.zeros(count, dtype=np.bool_)
    reused[starts[is_load]] = True
    return Distances(distance=distance, is_streaming=(distance == INFINITE) & ~reused)


def count_larger_before(permutation: Integers) -> Integers:
    """For each element of a permutation of 0..m-1, how many larger ones stand before it.

    >>> count_larger_before(np.array([2, 0, 3, 1])).tolist()
    [0, 1, 0, 2]
    """
    count = len(permutation)
    if count < 2:
        return np.zeros(count, dtype=np.int64)
    padded = -(-count // _SMALL) * _SMALL
    values = np.arange(padded, dtype=np.int32)
    values[:count] = permutation
    counts = np.zeros(padded, dtype=np.int32)
    top = (padded - 1).bit_length()
    for bit in range(top - 1, _PART_BITS - 1, -1):
        values, counts = _divide(values, counts, bit)
    for start in range(0, padded, 1 << _PART_BITS):
        part = slice(start, start + (1 << _PART_BITS))
        inner, found = values[part], counts[part]
        for bit in range(min(_PART_BITS, top) - 1, _SMALL_BITS - 1, -1):
            inner, found = _divide(inner, found, bit)
        values[part], counts[part] = inner, found + _compare_all(inner)
    by_value = np.empty(padded, dtype=np.int64)
    by_value[values] = counts
    return by_value[permutation]


def _divide(
    values: npt.NDArray[np.int32], counts: npt.NDArray[np.int32], bit: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Sort groups of equal higher bits by one more bit, keeping the order, and count for the zeros the ones before them.

    Groups are as large as they can be, because the values are a permutation: every group but the last has 2**bit ones, so that places follow
    from places.
    """
    half = np.int32(1 << bit)
    place = np.arange(len(values), dtype=np.int32)
    ones = (values >> np.int32(bit)) & np.int32(1)
    before = np.cumsum(ones, dtype=np.int32)
    before -= ones
    before -= (place >> np.int32(bit + 1)) << np.int32(bit)
    zeros = np.int32(1) - ones
    # zeros move down by the ones before them; ones move to the upper half, behind the ones before them
    target = np.where(ones, (place & ~(2 * half - 1)) + half + before, place - before)
    before *= zeros
    before += counts
    new_values, new_counts = np.empty_like(values), np.empty_like(counts)
    new_values[target] = values
    new_counts[target] = before
    return new_values, new_counts


def _compare_all(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """For each value the larger ones before it in its group of 16."""
    groups = np.ascontiguousarray(values.reshape(-1, _SMALL).T)
    counts = np.zeros(groups.shape, dtype=np.int8)
    for distance in range(1, _SMALL):
        counts[distance:] += groups[:-distance] > groups[distance:]
    return counts.T.reshape(-1).astype(np.int32)


def find_previous(units: Integers, groups: Integers) -> Integers:
    """int64[n], the place of the reference before to the same unit of the same group; -1 for none."""
    count = len(units)
    core = find_core()
    if core is not None:
        previous = np.empty(count, dtype=np.int64)
        sequence, group = np.ascontiguousarray(units, np.int64), np.ascontiguousarray(groups, np.int64)
        if core.has_done("find_previous", sequence, group, count, previous):
            return previous
    place_bits = max(1, (count - 1).bit_length())
    lowest = int(units.min())
    if (int(units.max()) - lowest).bit_length() + place_bits > 63:
        units = np.unique(units, return_inverse=True)[1].astype(np.int64)
        lowest = 0
    keys = ((units - lowest) << place_bits) | np.arange(count, dtype=np.int64)
    keys.sort()
    places = keys & ((1 << place_bits) - 1)
    same = (keys[1:] >> place_bits) == (keys[:-1] >> place_bits)
    same &= groups[places[1:]] == groups[places[:-1]]
    previous = np.full(count, -1, dtype=np.int64)
    previous[places[1:][same]] = places[:-1][same]
    return previous
