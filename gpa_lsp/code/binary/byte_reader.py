"""Numbers and strings out of a stretch of bytes, one after the other."""

from pathlib import Path

from gpa_lsp.code.binary.allowance import DAMAGED
from gpa_lsp.foundation.errors import InputError

_LONGEST_NUMBER_BYTES = 10
_CUT_OFF = "the line table ends in the middle of an entry"


class ByteReader:
    """Reads numbers and strings at a moving position and never past its end.

    Args:
        data: the section.
        position: first offset to read.
        end: offset behind the last byte that may be read.
        path: the file, for errors.
        place: the section, for errors.
    """

    __slots__ = ("data", "end", "path", "place", "position")

    def __init__(self, data: bytes, *, position: int, end: int, path: Path | None, place: str) -> None:
        self.data = data
        self.position = position
        self.end = min(end, len(data))
        self.path = path
        self.place = place

    def fail(self, message: str) -> InputError:
        """An error that names the present position."""
        return InputError(message, path=self.path, place=f"{self.place} offset 0x{self.position:x}", remedy=DAMAGED)

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count > self.end - self.position:
            raise self.fail(_CUT_OFF)
        self.position += count
        return self.data[self.position - count : self.position]

    def byte(self) -> int:
        """The next byte as an unsigned number."""
        if self.position >= self.end:
            raise self.fail(_CUT_OFF)
        self.position += 1
        return self.data[self.position - 1]

    def unsigned(self) -> int:
        """The next ULEB128."""
        position = self.position
        # Almost all numbers of a line table are one byte long.
        if position < self.end and (byte := self.data[position]) < 0x80:
            self.position = position + 1
            return byte
        return self._variable()[0]

    def signed(self) -> int:
        """The next SLEB128."""
        position = self.position
        if position < self.end and (byte := self.data[position]) < 0x80:
            self.position = position + 1
            return byte - 0x80 if byte >= 0x40 else byte
        value, bits = self._variable()
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        """The next NUL-terminated string; bytes that are not UTF-8 come out as ``\\\\xNN``."""
        stop = self.data.find(b"\0", self.position, self.end)
        if stop < 0:
            raise self.fail("a file name does not end")
        found = self.data[self.position : stop].decode("utf-8", errors="backslashreplace")
        self.position = stop + 1
        return found

    def _variable(self) -> tuple[int, int]:
        """A LEB128 as (value, number of bits read)."""
        value = bits = 0
        for position in range(self.position, min(self.position + _LONGEST_NUMBER_BYTES, self.end)):
            byte = self.data[position]
            value |= (byte & 0x7F) << bits
            bits += 7
            if byte < 0x80:
                self.position = position + 1
                return value, bits
        raise self.fail("a number does not end")
