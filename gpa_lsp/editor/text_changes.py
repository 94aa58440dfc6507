"""The client's edits, applied to the text we hold.

Our own and not pygls': that splits lines with ``str.splitlines``, which also breaks them at form feeds and Unicode separators; the protocol
knows three line ends.
"""

import re
from collections.abc import Sequence

from lsprotocol.types import Position, Range, TextDocumentContentChangeEvent, TextDocumentContentChangePartial

from gpa_lsp.editor.lines.positions import UnitCounter

_LINE_END = re.compile(r"\r\n|\n|\r")


class EditedText:
    """A document's text under a client's edits.

    While edits come it is held by lines, so that a keystroke costs what it changes, wherever in the text it is; in one piece when somebody reads
    it. Either form is made when it is asked for and kept until the text changes.

    Args:
        text: at first.
        units: counts columns for the client.
    """

    __slots__ = ("_lines", "_text", "_units")

    def __init__(self, text: str, units: UnitCounter) -> None:
        self._text: str | None = text
        self._lines: list[str] | None = None
        self._units = units

    def read(self) -> str:
        """The text as it is now."""
        if self._text is None:
            self._text = "".join(self._lines or ())
        return self._text

    def apply(self, changes: Sequence[TextDocumentContentChangeEvent]) -> None:
        """Apply a client's changes, one after the other.

        Positions behind a line's end mean its end, lines behind the last one the end of the text, and a range that ends before it starts is read
        the other way round: a client's slip must not cost the document.
        """
        for change in changes:
            if isinstance(change, TextDocumentContentChangePartial):
                self._replace(change.range, change.text)
            else:
                self._text, self._lines = change.text, None

    def _replace(self, span: Range, new_text: str) -> None:
        if self._lines is None:
            self._lines = _split(self.read())
        self._text = None
        lines = self._lines
        places = sorted(_find_place(lines, position, self._units) for position in (span.start, span.end))
        (first, start), (last, end) = places
        text = lines[first][:start] + new_text + lines[last][end:]
        if text.startswith("\n") and first and lines[first - 1].endswith("\r"):  # two line ends have become one
            first -= 1
            text = lines[first] + text
        is_at_end = last == len(lines) - 1
        lines[first : last + 1] = (
            _split(text) if is_at_end else _split(text)[:-1]
        )  # behind its line end there is nothing


def apply_changes(text: str, changes: Sequence[TextDocumentContentChangeEvent], units: UnitCounter) -> str:
    """The text after a client's changes, as :meth:`EditedText.apply` takes them; for a text that is not edited again and again."""
    edited = EditedText(text, units)
    edited.apply(changes)
    return edited.read()


def _split(text: str) -> list[str]:
    """The lines with their ends; the last one has none."""
    ends = [match.end() for match in _LINE_END.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def _find_place(lines: Sequence[str], position: Position, units: UnitCounter) -> tuple[int, int]:
    """The line and the characters before a position on it."""
    if position.line >= len(lines):
        return len(lines) - 1, len(lines[-1])
    number = max(position.line, 0)
    return number, _find_column(lines[number].rstrip("\r\n"), position.character, units)


def _find_column(line: str, character: int, units: UnitCounter) -> int:
    """Characters before a column in the client's units; in the middle of one it is behind that, and the end where there are not as many."""
    if line.isascii():
        return min(max(character, 0), len(line))
    counted = 0
    for column, one in enumerate(line):
        if counted >= character:
            return column
        counted += units.client_num_units(one)
    return len(line)
