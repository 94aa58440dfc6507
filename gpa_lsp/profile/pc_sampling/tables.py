"""A FlatBuffer's tables, read where they lie: numbers, strings and vectors by the position of their field. Nothing outside the buffer is looked at.

Source: FlatBuffers, "Internals": a table begins with the distance back to its list of field offsets; offsets are 32 bits and point forward.
"""

import struct
from collections.abc import Iterator

from gpa_lsp.basis.errors import InputError

_REMEDY = "write it again"


class Configuration:
    """Positions of fields in the table of settings, which the last field of the first field of the root leads to."""

    HOLDER = 0
    SETTINGS = 5
    PERIOD = 0
    ALL_INDICES = 7
    ALL_NAMES = 8


class Data:
    """Positions of fields in the root."""

    TOTAL_SAMPLES = 3
    DROPPED_SAMPLES = 4
    RECORDS = 8
    FOREIGN_SAMPLES = 9
    IS_BUFFER_FULL = 10


class PcRecord:
    """Positions of fields in the table of an instruction."""

    CUBIN = 1
    OFFSET = 2
    FUNCTION_NAME = 4
    FUNCTION_INDEX = 5
    REASONS = 6
    CORRELATION = 7


class FlatTable:
    """A table of a buffer.

    Args:
        content: of the buffer.
        at: where the table begins.
    """

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self._at = at
        self._list = at - self._read("<i", at)
        self._size = self._read("<H", self._list)

    @classmethod
    def find_root(cls, content: bytes) -> "FlatTable":
        """The root table."""
        if len(content) < 4:
            raise InputError("is cut short", place="offset 0x0", remedy=_REMEDY)
        return cls(content, struct.unpack_from("<I", content)[0])

    def _read(self, form: str, at: int) -> int:
        if not 0 <= at <= len(self._content) - struct.calcsize(form):
            raise InputError("a table leads out of its buffer", place=f"offset {at:#x}", remedy=_REMEDY)
        return int(struct.unpack_from(form, self._content, at)[0])

    def _find(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        distance = self._read("<H", self._list + entry)
        return self._at + distance if distance else None

    def read_number(self, field: int, form: str = "<Q") -> int:
        """A number; 0 where it is not there."""
        at = self._find(field)
        return 0 if at is None else self._read(form, at)

    def read_table(self, field: int) -> "FlatTable | None":
        """A table; None where it is not there."""
        at = self._find(field)
        return None if at is None else FlatTable(self._content, at + self._read("<I", at))

    def _find_vector(self, field: int, item_bytes: int) -> tuple[int, int]:
        """Where the items of a vector begin, and how many there are."""
        at = self._find(field)
        if at is None:
            return 0, 0
        start = at + self._read("<I", at)
        count = self._read("<I", start)
        if start + 4 + count * item_bytes > len(self._content):
            raise InputError("a list leads out of its buffer", place=f"offset {start:#x}", remedy=_REMEDY)
        return start + 4, count

    def list_tables(self, field: int) -> Iterator["FlatTable"]:
        """The tables of a vector."""
        start, count = self._find_vector(field, 4)
        for at in range(start, start + 4 * count, 4):
            yield FlatTable(self._content, at + self._read("<I", at))

    def list_numbers(self, field: int) -> list[int]:
        """The 32-bit numbers of a vector."""
        start, count = self._find_vector(field, 4)
        return list(struct.unpack_from(f"<{count}I", self._content, start))

    def list_pairs(self, field: int) -> list[tuple[int, int]]:
        """Pairs of 32-bit numbers of a vector."""
        start, count = self._find_vector(field, 8)
        numbers = struct.unpack_from(f"<{2 * count}I", self._content, start)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def read_text(self, field: int) -> str:
        """A string; empty where it is not there."""
        start, count = self._find_vector(field, 1)
        return self._content[start : start + count].decode("utf-8", "replace")

    def list_texts(self, field: int) -> list[str]:
        """The strings of a vector."""
        start, count = self._find_vector(field, 4)
        found = []
        for at in range(start, start + 4 * count, 4):
            text = at + self._read("<I", at)
            size = self._read("<I", text)
            found.append(self._content[text + 4 : text + 4 + size].decode("utf-8", "replace"))
        return found
