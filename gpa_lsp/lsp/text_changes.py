"""The client's edits, applied to the text we hold.

Our own and not pygls': that splits lines with ``str.splitlines``, which also breaks them at form feeds and Unicode separators; the protocol
knows three line ends.
"""

import re
from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from gpa_lsp.lsp.positions import UnitCounter

_LINE_END = re.compile(r"\r\n|\n|\r")

_FEW_CHANGES = 3
"""Up to so many, finding each place in the whole text is quicker than taking the text apart; editors with many cursors send hundreds."""


def apply_changes(text: str, changes: Sequence[Any], units: UnitCounter) -> str:
    """The text after a client's changes, which apply one after the other.

    Args:
        text: before.
        changes: ``TextDocumentContentChangePartial`` or ``…WholeDocument``.
        units: counts columns for the client.

    Positions behind a line's end mean its end, lines behind the last one the end of the text, and a range that ends before it starts is read
    the other way round: a client's slip must not cost the document.
    """
    if len(changes) > _FEW_CHANGES:
        return _apply_many(text, changes, units)
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            text = _replace(text, change, units)
        else:
            text = change.text
    return text


def _replace(text: str, change: types.TextDocumentContentChangePartial, units: UnitCounter) -> str:
    first, last = (_find_offset(text, position, units) for position in (change.range.start, change.range.end))
    return text[: min(first, last)] + change.text + text[max(first, last) :]


def _find_offset(text: str, position: types.Position, units: UnitCounter) -> int:
    """Characters before a position."""
    start = _find_line(text, position.line)
    if start is None:
        return len(text)
    match = _LINE_END.search(text, start)
    return start + _find_column(text[start : match.start() if match else len(text)], position.character, units)


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


def _find_line(text: str, line: int) -> int | None:
    """Characters before a 0-based line; None when there is no such line."""
    if "\r" not in text:  # the usual text: let the interpreter search
        start = 0
        for _ in range(line):
            start = text.find("\n", start) + 1
            if start == 0:
                return None
        return start
    if line == 0:
        return 0
    for number, match in enumerate(_LINE_END.finditer(text), start=1):
        if number == line:
            return match.end()
    return None


def _apply_many(text: str, changes: Sequence[Any], units: UnitCounter) -> str:
    """The same by lines, so that each change costs what it changes and not the whole text."""
    lines = _split(text)
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            _replace_lines(lines, change, units)
        else:
            lines = _split(change.text)
    return "".join(lines)


def _split(text: str) -> list[str]:
    """The lines with their ends; the last one has none."""
    ends = [match.end() for match in _LINE_END.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def _replace_lines(lines: list[str], change: types.TextDocumentContentChangePartial, units: UnitCounter) -> None:
    places = sorted(_find_place(lines, position, units) for position in (change.range.start, change.range.end))
    (first, start), (last, end) = places
    text = lines[first][:start] + change.text + lines[last][end:]
    if text.startswith("\n") and first and lines[first - 1].endswith("\r"):  # two line ends have become one
        first -= 1
        text = lines[first] + text
    is_at_end = last == len(lines) - 1
    lines[first : last + 1] = _split(text) if is_at_end else _split(text)[:-1]  # behind its line end there is nothing


def _find_place(lines: Sequence[str], position: types.Position, units: UnitCounter) -> tuple[int, int]:
    """The line and the characters before a position on it."""
    if position.line >= len(lines):
        return len(lines) - 1, len(lines[-1])
    line = lines[position.line]
    return position.line, _find_column(line.rstrip("\r\n"), position.character, units)
