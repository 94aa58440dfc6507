"""Sums of integer columns by keys that come up as a trace is read: :class:`KeyedSums`."""

import numpy as np

from gpa_lsp.execution.traces.lane_addresses import Integers
from gpa_lsp.foundation.native.shared_library import find_core

_SMALL_TABLE = 1 << 14


class KeyedSums:
    """Sums by key, over any number of additions; memory grows with the distinct keys only.

    Args:
        width: columns that are summed.
        most_keys: distinct keys at most; further ones are summed under -1, so that nothing is lost.
    """

    def __init__(self, width: int, most_keys: int = 1 << 20) -> None:
        self._most_keys = most_keys
        self._keys: Integers = np.empty(0, dtype=np.int64)
        self._sums: Integers = np.empty((0, width), dtype=np.int64)

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
        if np.array_equal(groups, self._keys):  # as piece after piece does
            self._sums = self._sums + sums
            return
        found, where = np.unique(np.concatenate([self._keys, groups]), return_inverse=True)
        if len(found) > self._most_keys:
            known = self._keys if len(self._keys) else found[: self._most_keys - 1]
            groups = np.where(np.isin(groups, known), groups, -1)
            found, where = np.unique(np.concatenate([self._keys, groups]), return_inverse=True)
        self._sums = sum_columns(where, np.concatenate([self._sums, sums]), len(found))
        self._keys = found

    @property
    def keys(self) -> Integers:
        """int64[k], ascending."""
        return self._keys

    @property
    def sums(self) -> Integers:
        """int64[k, width]."""
        return self._sums


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
    core = find_core()
    if core is not None:
        exact = np.empty((groups, columns.shape[1]), np.int64)
        given = np.ascontiguousarray(place, np.int64), np.ascontiguousarray(columns, np.int64)
        if core.has_done("sum_columns", *given, *columns.shape, groups, exact):
            return exact
    sums = [np.bincount(place, weights=column, minlength=groups) for column in columns.T]
    return np.stack(sums, axis=1).astype(np.int64)


def count_values(
    place: Integers, values: Integers, groups: int, base: int, *, times: Integers | None = None
) -> Integers:
    """int64[groups, base], rows by place and value.

    Args:
        place: int64[n].
        values: int64[n], below ``base``.
        times: int64[n], how often each row is there, less than 2**53 together; None for once.

    >>> count_values(np.array([0, 1, 1]), np.array([2, 0, 0]), 2, 3).tolist()
    [[0, 0, 1], [2, 0, 0]]
    """
    counts = np.bincount(place * base + values, weights=times, minlength=groups * base)
    return counts.reshape(groups, base).astype(np.int64, copy=False)
