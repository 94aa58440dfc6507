"""Arrays that are moved with the addresses that others hold of them: :class:`MovedMemory`."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

_POINTER_BYTES = 8

Bytes = npt.NDArray[np.uint8]


class MovedMemory:
    """Where arrays lay, and where they lie now.

    Memory holds addresses where one of its words, aligned, is that of the first byte of an array: addresses inside one are too easily numbers. In
    memory that holds addresses, those inside count, too.

    Args:
        moves: address → bytes, and the new address.
    """

    def __init__(self, moves: Mapping[int, tuple[int, int]]) -> None:
        bases = sorted(moves)
        self._bases = np.array(bases, np.uint64)
        self._sizes = np.array([moves[base][0] for base in bases], np.uint64)
        self._added = np.array([moves[base][1] for base in bases], np.uint64) - self._bases

    def move_content(self, data: Bytes) -> Bytes:
        """An array with its addresses moved; itself where it holds none."""
        words = data[: data.nbytes // _POINTER_BYTES * _POINTER_BYTES].view(np.uint64)
        return self.move_parameters(data) if bool(np.isin(words, self._bases).any()) else data

    def move_parameters(self, data: Bytes) -> Bytes:
        """The same where addresses inside arrays are expected."""
        whole = data.nbytes // _POINTER_BYTES * _POINTER_BYTES
        if not len(self._bases) or not whole:
            return data
        words = data[:whole].view(np.uint64)
        place = np.searchsorted(self._bases, words, side="right").astype(np.int64) - 1
        known = np.maximum(place, 0)
        inside = (place >= 0) & (words - self._bases[known] < self._sizes[known])
        moved = np.where(inside, words + self._added[known], words)
        return np.concatenate([moved.view(np.uint8), data[whole:]])
