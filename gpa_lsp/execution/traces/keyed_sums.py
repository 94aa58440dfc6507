"""Sums as a trace is read: integer columns by keys (:class:`KeyedSums`), requests by instruction, space and array (:class:`GroupSums`)."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.accesses.lane_addresses import MOST_ARRAYS, Integers, LanePattern, RequestColumns
from gpa_lsp.execution.emulator.model import Accesses
from gpa_lsp.execution.traces.model import MOST_SEGMENTS, AccessTotals

_SMALL_TABLE = 1 << 14


class KeyedSums:
    """Sums by key, over any number of additions; memory grows with the distinct keys only.

    Args:
        width: columns that are summed.
        most_keys: distinct keys at most; further ones are summed under -1, so that nothing is lost.

    Attributes:
        keys: int64[k], ascending.
        sums: int64[k, width].
    """

    def __init__(self, width: int, most_keys: int = 1 << 20) -> None:
        self._most_keys = most_keys
        self.keys: Integers = np.empty(0, dtype=np.int64)
        self.sums: Integers = np.empty((0, width), dtype=np.int64)

    def add(self, keys: Integers, columns: Integers) -> None:
        """Add rows.

        Args:
            keys: int64[n], not negative.
            columns: int64[n, width].
        """
        if len(keys) == 0:
            return
        groups, place = compress_keys(keys)
        self.merge(groups, sum_columns(place, columns, len(groups)))

    def merge(self, groups: Integers, sums: Integers) -> None:
        """Add rows whose keys are distinct and ascending; see :meth:`add`."""
        if np.array_equal(groups, self.keys):  # as piece after piece does
            self.sums = self.sums + sums
            return
        found, where = np.unique(np.concatenate([self.keys, groups]), return_inverse=True)
        if len(found) > self._most_keys:
            known = self.keys if len(self.keys) else found[: self._most_keys - 1]
            groups = np.where(np.isin(groups, known), groups, -1)
            found, where = np.unique(np.concatenate([self.keys, groups]), return_inverse=True)
        self.sums = sum_columns(where, np.concatenate([self.sums, sums]), len(found))
        self.keys = found


def compress_keys(keys: Integers) -> tuple[Integers, Integers]:
    """The distinct keys, ascending, and for each key its place among them; by a table where the keys lie near to each other.

    >>> [column.tolist() for column in compress_keys(np.array([7, 3, 7]))]
    [[3, 7], [1, 0, 1]]
    """
    lowest, highest = int(keys.min()), int(keys.max())
    if highest - lowest > 4 * len(keys) + _SMALL_TABLE:
        groups, place = np.unique(keys, return_inverse=True)
        return groups, place
    shifted = keys - lowest
    is_there = np.zeros(highest - lowest + 1, dtype=np.bool_)
    is_there[shifted] = True
    found: Integers = np.flatnonzero(is_there)
    return found + lowest, (np.cumsum(is_there) - 1)[shifted]


def sum_columns(place: Integers, columns: Integers, groups: int) -> Integers:
    """int64[groups, width], sums by place; exact below 2**53."""
    sums = [np.bincount(place, weights=column, minlength=groups) for column in columns.T]
    return np.stack(sums, axis=1).astype(np.int64)


def count_values(place: Integers, values: Integers, groups: int, base: int, *, times: Integers) -> Integers:
    """int64[groups, base], rows by place and value.

    Args:
        place: int64[n].
        values: int64[n], below ``base``.
        times: int64[n], how often each row is there, less than 2**53 together.

    >>> count_values(np.array([0, 1, 1]), np.array([2, 0, 0]), 2, 3, times=np.array([1, 1, 4])).tolist()
    [[0, 0, 1], [5, 0, 0]]
    """
    counts = np.bincount(place * base + values, weights=times, minlength=groups * base)
    return counts.reshape(groups, base).astype(np.int64, copy=False)


_SPACES = 8
_BINS = MOST_SEGMENTS + 1
_PATTERNS = len(LanePattern)
_MOST_STRIDE_BYTES = 1 << 26  # Longer strides are not told apart from no stride
_STRIDES = 2 * _MOST_STRIDE_BYTES
_LISTED_STRIDES = 8
_FIRST_ARRAY = 2  # Numbers in keys: 0 is no array, 1 is outside of all
_ARRAYS = MOST_ARRAYS + _FIRST_ARRAY
_TOTALS = 8
# Ends of the totals and of both histograms among the columns that are summed; patterns follow
_ENDS = (_TOTALS, _TOTALS + _BINS, _TOTALS + 2 * _BINS)


class AccessGroup(Struct, frozen=True, kw_only=True):
    """The requests of one instruction in one space, to all arrays or to one."""

    instruction: int  # index of the static instruction
    space: Space  # resolved
    # index of the buffer, or :data:`~gpa_lsp.execution.traces.model.OUTSIDE`; None for all of them together, and in spaces without arrays
    array: int | None
    totals: AccessTotals  # sums
    # requests by :class:`~gpa_lsp.execution.accesses.lane_addresses.LanePattern`, most frequent first
    patterns: tuple[tuple[LanePattern, int], ...]
    # (bytes, requests) of contiguous and strided requests, most frequent first; at most eight
    strides: tuple[tuple[int, int], ...]


def build_keys(accesses: Accesses, rows: Integers, array: Integers | None) -> Integers:
    """int64[n], the keys of the groups that rows belong to.

    Args:
        array: of each row, index of its buffer or outside; None where arrays are not told apart.
    """
    number: Integers | int = 0 if array is None else array + _FIRST_ARRAY
    keys: Integers = (accesses.instruction[rows].astype(np.int64) * _SPACES + accesses.space[rows]) * _ARRAYS + number
    return keys


class GroupSums:
    """Sums of one kind of group."""

    def __init__(self) -> None:
        self._sums = KeyedSums(_TOTALS + 2 * _BINS + _PATTERNS)
        self._strides = KeyedSums(1)

    def add(
        self,
        keys: Integers,
        width: npt.NDArray[np.uint8],
        found: RequestColumns,
        times: Integers | None = None,
    ) -> None:
        """Add requests, or parts of them.

        Args:
            keys: int64[n], of :func:`build_keys`.
            width: uint8[n], bytes per lane.
            times: int64[n], how often each is there; None for once.
        """
        if len(keys) == 0:
            return
        groups, place = compress_keys(keys)
        is_uniform = (found.distinct == 1) & (found.lanes > 1)
        times = np.ones(len(keys), dtype=np.int64) if times is None else times
        columns = (
            np.ones(len(keys), dtype=np.int64), found.lanes, found.lanes * width, found.used_bytes, found.lines,
            found.sectors, found.ideal_sectors, is_uniform.astype(np.int64),
        )  # fmt: skip
        histograms = [
            count_values(place, values, len(groups), base, times=times)
            for values, base in (
                (np.minimum(found.lines, MOST_SEGMENTS), _BINS),
                (np.minimum(found.sectors, MOST_SEGMENTS), _BINS),
                (found.pattern, _PATTERNS),
            )
        ]
        totals = sum_columns(place, np.stack(columns, axis=1) * times[:, None], len(groups))
        self._sums.merge(groups, np.concatenate([totals, *histograms], axis=1))
        has_stride = (found.stride_bytes != 0) & (np.abs(found.stride_bytes) < _MOST_STRIDE_BYTES)
        strides = keys[has_stride] * _STRIDES + found.stride_bytes[has_stride] + _MOST_STRIDE_BYTES
        self._strides.add(strides, times[has_stride, None])

    def finish(self) -> tuple[AccessGroup, ...]:
        """All groups, by instruction, space and array."""
        strides = self._read_strides()
        groups = []
        for key, columns in zip(self._sums.keys.tolist(), self._sums.sums, strict=True):
            if key < 0:
                continue
            rest, array = divmod(key, _ARRAYS)
            instruction, space = divmod(rest, _SPACES)
            sums, lines, sectors, patterns = np.split(columns, _ENDS)
            requests, lanes, requested, used, line_count, sector_count, ideal, uniform = sums.tolist()
            totals = AccessTotals(
                requests=requests, lanes=lanes, requested_bytes=requested, used_bytes=used, lines=line_count,
                sectors=sector_count, ideal_sectors=ideal, uniform=uniform, line_histogram=lines,
                sector_histogram=sectors,
            )  # fmt: skip
            groups.append(
                AccessGroup(
                    instruction=instruction,
                    space=Space(space),
                    array=None if array == 0 else array - _FIRST_ARRAY,
                    totals=totals,
                    patterns=tuple(
                        (LanePattern(one), count) for one, count in _sort_pairs(enumerate(patterns.tolist())) if count
                    ),
                    strides=tuple(_sort_pairs(strides.get(key, ()))[:_LISTED_STRIDES]),
                )
            )
        return tuple(groups)

    def _read_strides(self) -> dict[int, list[tuple[int, int]]]:
        """Group → (bytes, requests)."""
        strides: dict[int, list[tuple[int, int]]] = {}
        for key, (count,) in zip(self._strides.keys.tolist(), self._strides.sums.tolist(), strict=True):
            group, value = divmod(key, _STRIDES)
            strides.setdefault(group, []).append((value - _MOST_STRIDE_BYTES, count))
        return strides


def _sort_pairs(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of values and counts, most frequent first."""
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
