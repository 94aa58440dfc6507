"""Cursors in SASS documents as readable text, and answers as well."""

from collections.abc import Iterable

from lsprotocol.types import Position, Range

from gpa_lsp.editor.sass.library import SassView


def put_cursor(view: SassView, marked: str) -> Position:
    """The place of the ``^`` in some words of a line, e.g. ``FFMA R0, ^R2``; the first line with these words."""
    before, _, after = marked.partition("^")
    for number, line in enumerate(view.document.lines, start=1):
        column = line.find(before + after)
        if column >= 0:
            return view.positions.find_place(number, column + len(before))
    raise ValueError(f"no line has {before + after!r}")


def read_places(view: SassView, ranges: Iterable[Range]) -> list[str]:
    """Each range as address and the text in it: ``0030 R2``."""
    found = []
    for span in ranges:
        assert span.start.line == span.end.line
        text = view.document.lines[span.start.line]
        first, last = view.positions.read_column(span.start), view.positions.read_column(span.end)
        found.append(f"{text[2 : text.index('*/')]} {text[first:last]}")
    return found
