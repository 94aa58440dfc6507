"""The constant banks of a launch: :class:`ConstantBanks`."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.foundation.records import ColumnRecord


class UnknownConstantError(Exception):
    """A constant that nobody gave a value: the driver's own, or one beyond its bank."""


class Bank(ColumnRecord, frozen=True, kw_only=True):
    """One bank."""

    data: npt.NDArray[np.uint8]  # uint8[n]
    known: npt.NDArray[np.bool_]  # bool[n], bytes that have a value


class ConstantBanks:
    """Banks by number.

    Args:
        banks: those that there are.
    """

    def __init__(self, banks: Mapping[int, Bank]) -> None:
        self._banks = dict(banks)

    def read_word(self, bank: int, offset: int) -> int:
        """Four bytes.

        Raises:
            UnknownConstantError: they have no value.
        """
        found = self._banks.get(bank)
        if found is None or offset + 4 > len(found.data) or not found.known[offset : offset + 4].all():
            raise UnknownConstantError(f"the constant c[0x{bank:x}][0x{offset:x}] has no value that is known")
        return int.from_bytes(found.data[offset : offset + 4].tobytes(), "little")

    def gather(
        self, bank: int, offsets: npt.NDArray[np.int64], width: int
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """uint8[…, width] at some offsets, and whether all bytes of each are known."""
        found = self._banks.get(bank)
        size = 0 if found is None else len(found.data)
        places = offsets[..., None] + np.arange(width)
        inside = (places >= 0) & (places < size)
        if found is None:
            return np.zeros(places.shape, np.uint8), np.zeros(offsets.shape, np.bool_)
        near = np.where(inside, places, 0)
        known: npt.NDArray[np.bool_] = np.all(inside & found.known[near], axis=-1)
        return found.data[near], known
