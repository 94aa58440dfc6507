"""Numbers and strings from the bytes of a file that may be damaged, and limits on what one reading may produce."""

from pathlib import Path
from typing import Self

from gpa_lsp.foundation.errors import InputError

# Tables of a file may name the same long string a million times, or chain every line to every other. A sound file stays far below a small
# multiple of its own size; a reader that passes it stops with an error instead of filling the memory.


def damaged(message: str, *, path: Path | None, place: str | None) -> InputError:
    """An error that only a truncated or altered file causes."""
    remedy = "the file is damaged: take a fresh copy or build it again"
    return InputError(message, path=path, place=place, remedy=remedy)


class Allowance:
    """Counts down what one reading may still produce.

    Args:
        limit: units (bytes, frames) that may be spent in all.
        path: the file, for the error.
        place: where in it, for the error.

    >>> allowance = Allowance(10, path=None, place="section .strtab")
    >>> allowance.spend(7)
    >>> allowance.spend(7)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gpa_lsp.foundation.errors.InputError: section .strtab: the table expands to many times its own size; the file is damaged: take a fresh copy ...
    """

    __slots__ = ("_left", "_path", "_place")

    def __init__(self, limit: int, *, path: Path | None, place: str) -> None:
        self._left = limit
        self._path = path
        self._place = place

    def spend(self, amount: int) -> None:
        """Take ``amount`` from what is left.

        Raises:
            InputError: it is used up.
        """
        self._left -= amount
        if self._left < 0:
            raise damaged("the table expands to many times its own size", path=self._path, place=self._place)


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
            raise damaged(f"string offset 0x{offset:x} is outside the table", path=self._path, place=self._place)
        end = self._data.find(b"\0", offset, offset + _LONGEST_STRING_BYTES)
        if end < 0:
            raise damaged(f"the string at 0x{offset:x} does not end", path=self._path, place=self._place)
        self._allowance.spend(end - offset)
        text = self._data[offset:end].decode("utf-8", errors="backslashreplace")
        self._read[offset] = text
        return text


_LONGEST_NUMBER_BYTES = 10
_CUT_OFF = "the line table ends in the middle of an entry"


class ByteReader:
    """Reads numbers and strings of a section at a moving position and never past its end; path and place are for errors."""

    __slots__ = ("data", "end", "path", "place", "position")

    def __init__(self, data: bytes, *, position: int, end: int, path: Path | None, place: str) -> None:
        self.data = data
        self.position = position
        self.end = min(end, len(data))
        self.path = path
        self.place = place

    def fail(self, message: str) -> InputError:
        """An error that names the present position."""
        return damaged(message, path=self.path, place=f"{self.place} offset 0x{self.position:x}")

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


_CHUNK_BYTES = 1 << 20


class FileBytes:
    """Slices and searches a file without loading it whole.

    Not a memory map: a program that is rebuilt while it is open would then end this process with a bus error, where reading only comes
    back short.

    Args:
        path: a regular file; others (pipes, devices) could block for ever and are refused.

    Raises:
        InputError: it cannot be read.
    """

    __slots__ = ("_file", "_length", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if path.exists() and not path.is_file():
                raise InputError("this is not a regular file", path=path, remedy="give the path of a file")
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise self._unreadable(error) from error
        self._length = self._file.seek(0, 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, piece: slice) -> bytes:
        """The bytes of a slice with a step of 1."""
        start, stop, _ = piece.indices(self._length)
        parts: list[bytes] = []
        try:
            self._file.seek(start)
            while start < stop and (part := self._file.read(stop - start)):
                parts.append(part)
                start += len(part)
        except OSError as error:
            raise self._unreadable(error) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def find(self, wanted: bytes, start: int, stop: int) -> int:
        """Offset of the first occurrence that lies within ``start`` and ``stop``, -1 when there is none."""
        while start < stop:
            chunk = self[start : min(start + _CHUNK_BYTES, stop)]
            found = chunk.find(wanted)
            if found >= 0:
                return start + found
            if len(chunk) < _CHUNK_BYTES:
                return -1
            start += len(chunk) - len(wanted) + 1
        return -1

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(
            f"the file cannot be read ({error.strerror or error})",
            path=self.path,
            remedy="check the path and the permissions",
        )
