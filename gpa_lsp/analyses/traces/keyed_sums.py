"""Sums of integer columns by keys that come up as a trace is read: :class:`KeyedSums`."""

import numpy as np

from gpa_lsp.analyses.traces.lane_addresses import Integers


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
        found, place = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        if len(found) > self._most_keys:
            known = self._keys if len(self._keys) else found[: self._most_keys - 1]
            keys = np.where(np.isin(keys, known), keys, -1)
            found, place = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        sums = np.zeros((len(found), self._sums.shape[1]), dtype=np.int64)
        old = len(self._keys)
        sums[place[:old]] = self._sums
        order = np.argsort(place[old:], kind="stable")
        rows = place[old:][order]
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        sums[rows[starts]] += np.add.reduceat(columns[order], starts, axis=0)
        self._keys, self._sums = found, sums

    def count(self, keys: Integers) -> None:
        """Add 1 to the first column of every key."""
        found, counts = np.unique(keys, return_counts=True)
        self.add(found, counts[:, None].astype(np.int64))

    @property
    def keys(self) -> Integers:
        """int64[k], ascending."""
        return self._keys

    @property
    def sums(self) -> Integers:
        """int64[k, width]."""
        return self._sums
