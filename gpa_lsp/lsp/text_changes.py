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


def apply_changes(text: str, changes: Sequence[Any], units: UnitCounter) -> str:
    """The text after a client's changes, which apply one after the other.

    Args:
        text: before.
        changes: ``TextDocumentContentChangePartial`` or ``…WholeDocument``.
        units: counts columns for the client.

    Positions behind a line's end mean its end, lines behind the last one the end of the text, and a range that ends before it starts is read
    the other way round: a client's slip must not cost the document.
    """
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
    line = text[start : match.start() if match else len(text)]
    if line.isascii():
        return start + min(max(position.character, 0), len(line))
    counted = 0
    for column, character in enumerate(line):
        if counted >= position.character:
            return start + column
        counted += units.client_num_units(character)
    return start + len(line)


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
