"""Memory that some warps share, as one array of bytes: :class:`FlatMemory`."""

from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


class OutsideError(Exception):
    """An access to what is no memory."""


class FlatMemory:
    """Bytes that are read and written at places, of which some have no known value.

    What lies outside has none; writes to it are dropped, as a launch description may give an array as smaller than it was.

    Args:
        data: uint8[n], n a multiple of 16.
        name: for messages.

    Attributes:
        data: the bytes.
        unknown: bool, by word, whether it has no known value; None while all have one.
    """

    def __init__(self, data: npt.NDArray[np.uint8], name: str) -> None:
        self.data = data
        self.unknown: Marks | None = None
        self._size = len(data)
        self._name = name
        self._views: dict[int, npt.NDArray[Any]] = {
            size: data[: len(data) // size * size].view(f"<u{size}") for size in (1, 2, 4)
        }

    def check(self, places: Places, width: int) -> None:
        """See that accesses of some bytes each are aligned.

        Raises:
            OutsideError: one is not.
        """
        if width > 1 and len(places) and np.bitwise_or.reduce(places) & (width - 1):
            raise OutsideError(f"an access to {self._name} is not aligned to its {width} bytes")

    def _find_outside(self, places: Places, size: int = 1) -> Marks | None:
        """bool[n]; None where nothing is."""
        if not len(places) or (int(places.min()) >= 0 and int(places.max()) + size <= self._size):
            return None
        return (places < 0) | (places + size > self._size)

    def read(self, places: Places, size: int) -> npt.NDArray[np.uint32]:
        """uint32[n] of 1, 2 or 4 bytes each, extended by zeros; zeros outside."""
        outside = self._find_outside(places, size)
        if outside is None:
            found: npt.NDArray[np.uint32] = self._views[size][places // size].astype(np.uint32)
            return found
        return np.where(outside, np.uint32(0), self._views[size][np.where(outside, 0, places) // size]).astype(
            np.uint32
        )

    def write(self, places: Places, values: npt.NDArray[np.uint32], size: int) -> None:
        """Write the low 1, 2 or 4 bytes of each value; of equal places the last one stays."""
        outside = self._find_outside(places, size)
        if outside is not None:
            places, values = places[~outside], values[~outside]
        self._views[size][places // size] = values.astype(self._views[size].dtype)

    def find_unknown(self, places: Places) -> Marks | None:
        """bool[n], the word around a place has no known value; None where all have one."""
        outside = self._find_outside(places)
        if outside is None:
            return None if self.unknown is None else self.unknown[places >> 2]
        if self.unknown is None:
            return outside
        found: Marks = outside | self.unknown[np.where(outside, 0, places) >> 2]
        return found

    def mark(self, places: Places, unknown: Marks) -> None:
        """Note whether what was written has a known value."""
        if self.unknown is None:
            if not unknown.any():
                return
            self.unknown = np.zeros(self._size // 4 + 1, np.bool_)
        outside = self._find_outside(places)
        if outside is not None:
            places, unknown = places[~outside], unknown[~outside]
        self.unknown[places >> 2] = unknown
