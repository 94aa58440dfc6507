"""Memory that some warps share, as one array of bytes: :class:`FlatMemory`."""

from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


class OutsideError(Exception):
    """An access to what is no memory."""


class FlatMemory:
    """Bytes that are read and written at places, of which some have no known value.

    Args:
        data: uint8[n], n a multiple of 16.
        name: for messages.
    """

    def __init__(self, data: npt.NDArray[np.uint8], name: str) -> None:
        self._data = data
        self._name = name
        self._unknown: npt.NDArray[np.bool_] | None = None
        self._views: dict[int, npt.NDArray[Any]] = {
            size: data[: len(data) // size * size].view(f"<u{size}") for size in (1, 2, 4)
        }

    def check(self, places: Places, width: int) -> None:
        """See that accesses of some bytes each are inside, and aligned.

        Raises:
            OutsideError: one is not.
        """
        if not len(places):
            return
        if int(places.min()) < 0 or int(places.max()) + width > len(self._data):
            raise OutsideError(f"an access lies outside of {self._name}")
        if width > 1 and np.bitwise_or.reduce(places) & (min(width, 4) - 1):
            raise OutsideError(f"an access to {self._name} is not aligned to its {width} bytes")

    def read(self, places: Places, size: int) -> npt.NDArray[np.uint32]:
        """uint32[n] of 1, 2 or 4 bytes each, extended by zeros."""
        found: npt.NDArray[np.uint32] = self._views[size][places // size].astype(np.uint32)
        return found

    def write(self, places: Places, values: npt.NDArray[np.uint32], size: int) -> None:
        """Write the low 1, 2 or 4 bytes of each value; of equal places the last one stays."""
        self._views[size][places // size] = values.astype(self._views[size].dtype)

    def find_unknown(self, places: Places) -> npt.NDArray[np.bool_] | None:
        """bool[n], the word around a place has no known value; None where all have one."""
        return None if self._unknown is None else self._unknown[places >> 2]

    def mark(self, places: Places, unknown: npt.NDArray[np.bool_]) -> None:
        """Note whether what was written has a known value."""
        if self._unknown is None:
            if not unknown.any():
                return
            self._unknown = np.zeros(len(self._data) // 4 + 1, np.bool_)
        self._unknown[places >> 2] = unknown
