"""Tables of NUL-terminated strings, read by offset."""

from pathlib import Path

from gpa_lsp.code.binary.allowance import DAMAGED, Allowance
from gpa_lsp.foundation.errors import InputError

_LONGEST_STRING_BYTES = 1 << 16
# Strings may share their bytes with others (a name that ends another one), so a table may yield more than its size, but not much more
_REUSE_OF_STRINGS = 8


class StringTable:
    """NUL-terminated strings in a section, read by offset.

    Args:
        data: the section's bytes.
        path: the file, for errors.
        place: the section, for errors.
    """

    __slots__ = ("_allowance", "_data", "_path", "_place", "_read")

    def __init__(self, data: bytes, *, path: Path | None, place: str) -> None:
        self._data = data
        self._path = path
        self._place = place
        self._allowance = Allowance(_REUSE_OF_STRINGS * len(data), path=path, place=place)
        self._read: dict[int, str] = {}

    def read(self, offset: int) -> str:
        """The string at an offset; bytes that are not UTF-8 come out as ``\\\\xNN``.

        Raises:
            InputError: the offset is outside, or the string does not end.
        """
        known = self._read.get(offset)
        if known is not None:
            return known
        if not 0 <= offset < len(self._data):
            raise InputError(
                f"string offset 0x{offset:x} is outside the table", path=self._path, place=self._place, remedy=DAMAGED
            )
        end = self._data.find(b"\0", offset, offset + _LONGEST_STRING_BYTES)
        if end < 0:
            raise InputError(
                f"the string at 0x{offset:x} does not end", path=self._path, place=self._place, remedy=DAMAGED
            )
        self._allowance.spend(end - offset)
        text = self._data[offset:end].decode("utf-8", errors="backslashreplace")
        self._read[offset] = text
        return text
