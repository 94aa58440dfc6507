"""The only place that knows that editors count lines from 0 and columns in code units of an encoding they negotiate.

Everywhere else a line is 1-based and a column does not exist.
"""

import re
from typing import Protocol

from lsprotocol.types import Position, Range
from msgspec import Struct

_ASCII = re.compile("[\\x00-\\x7f]+")


class UnitCounter(Protocol):
    """Counts the code units (UTF-8, UTF-16 or UTF-32) the client measures columns in."""

    def client_num_units(self, string: str, /) -> int:
        """Code units of ``string`` in the negotiated encoding."""
        ...


class Positions(Struct, frozen=True, kw_only=True):
    """Translates lines of one document into the client's positions."""

    lines: tuple[str, ...]  # the document's lines without their ends
    units: UnitCounter  # counts columns

    def find_start(self, line: int) -> Position:
        """Column 0 of a 1-based line: where a code lens is drawn without being indented."""
        return Position(line=line - 1, character=0)

    def find_end(self, line: int) -> Position:
        """Find the end of a line's code, before trailing white space, so that hints stand close to it."""
        return Position(line=line - 1, character=self._count_units(self.lines[line - 1].rstrip()))

    def find_text(self, line: int) -> Range:
        """A line without its indentation and the white space behind it."""
        text = self.lines[line - 1]
        indentation = len(text) - len(text.lstrip())
        end = self.find_end(line)
        start = Position(line=line - 1, character=min(self._count_units(text[:indentation]), end.character))
        return Range(start=start, end=end)

    def find_place(self, line: int, column: int) -> Position:
        """A character of a 1-based line, as a position.

        Args:
            line: 1-based.
        """
        return Position(line=line - 1, character=self._count_units(self.lines[line - 1][:column]))

    def find_span(self, line: int, start: int, end: int) -> Range:
        """Some characters of a 1-based line, as columns before the first and behind the last of them."""
        return Range(start=self.find_place(line, start), end=self.find_place(line, end))

    def read_column(self, position: Position) -> int:
        """Characters before a client's position on its line; a position behind the line's end, or on a line that is not there, is the end."""
        if not 0 <= position.line < len(self.lines):
            return 0
        text = self.lines[position.line]
        if text.isascii():
            return min(max(position.character, 0), len(text))
        units = 0
        for column, character in enumerate(text):
            if units >= position.character:
                return column
            units += self.units.client_num_units(character)
        return len(text)

    def _count_units(self, text: str) -> int:
        if text.isascii():
            return len(text)
        others = _ASCII.sub("", text)  # a character at a time is what the counter does, and most are one unit anyhow
        return len(text) - len(others) + self.units.client_num_units(others)


def read_line(position: Position) -> int:
    """The 1-based line of a client's position."""
    return position.line + 1


def read_lines(span: Range) -> tuple[int, int]:
    """First and last 1-based line a client's range touches; a range that ends at column 0 does not touch that line.

    >>> read_lines(Range(Position(0, 0), Position(2, 0)))
    (1, 2)
    """
    last = span.end.line + 1
    if span.end.character == 0 and span.end.line > span.start.line:
        last -= 1
    return span.start.line + 1, last


def span_line(line: int) -> Range:
    """A 1-based line of a document whose text is not at hand, as an empty range at its start."""
    start = Position(line=max(line - 1, 0), character=0)
    return Range(start=start, end=start)
