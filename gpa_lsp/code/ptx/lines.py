"""``.file``, ``.loc`` and the names of inlined functions → chains of frames.

A ``.loc`` with ``inlined_at`` names a place that an earlier ``.loc`` of the same function gave, so chains are built from what is known of that
place; the latest ``.loc`` of a place counts. Source: PTX ISA 9.0, sections 11.5.3 and 11.5.4.
"""

import re
from collections.abc import Mapping

from gpa_lsp.code.ptx.operands import incomplete
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import Frame, InlineChain, join_source_path

MOST_FRAMES = 64  # Inline levels that are kept, the innermost ones; no compiler inlines so deeply

_LOC = re.compile(
    r"\.loc\s++(\d{1,9})\s++(\d{1,9})\s++(\d{1,9})(?!\d)"
    r"(?:\s*+(?:,\s*+)?function_name\s++([\w$.]++)\s*+(?:\+\s*+(\d{1,9})\s*+)?,\s*+inlined_at\s++(\d{1,9})\s++(\d{1,9})\s++(\d{1,9})(?!\d))?",
    re.ASCII,
)
_LABEL = re.compile(r"^[ \t]*+([A-Za-z_$%.][\w$.]*+)[ \t]*+:", re.MULTILINE | re.ASCII)
_BYTES = re.compile(r"\.b8\s+([\d,\sxXa-fA-F]+)", re.ASCII)


class DebugNames:
    """The strings of ``.section .debug_str``, by label.

    Args:
        section: the text between the section's braces; empty when there is none.
    """

    def __init__(self, section: str) -> None:
        self._section = section
        self._bytes: bytes | None = None
        self._offsets: dict[str, int] = {}

    def find(self, label: str, offset: int) -> str | None:
        """The string at a label; None where there is none."""
        if self._bytes is None:
            self._bytes = self._read()
        start = self._offsets.get(label)
        if start is None or start + offset >= len(self._bytes):
            return None
        end = self._bytes.find(b"\0", start + offset)
        name = self._bytes[start + offset : end if end >= 0 else len(self._bytes)]
        return name.decode("utf-8", errors="backslashreplace") or None

    def _read(self) -> bytes:
        pieces = bytearray()
        parts = _LABEL.split(self._section)
        for part in range(len(parts)):
            if part % 2:
                self._offsets[parts[part]] = len(pieces)
                continue
            for listed in _BYTES.findall(parts[part]):
                values = (number.strip() for number in listed.split(","))
                pieces.extend(_read_byte(value) for value in values if value)
        return bytes(pieces)


def _read_byte(text: str) -> int:
    try:
        return int(text, 0) & 0xFF if len(text) <= 18 else 0
    except (
        ValueError
    ):  # such as 017, or two numbers without a comma: names are for people, a damaged one is no reason to stop
        return 0


class LineReader:
    """Follows the ``.loc`` directives of one function.

    Args:
        function: its mangled name.
        files: number → path, of the module.
        names: of inlined functions.

    Attributes:
        column: 1-based, of the innermost place that was read last; 0 where it has none.
    """

    def __init__(self, function: str, files: Mapping[int, str], names: DebugNames) -> None:
        self.column = 0
        self._function = function
        self._files = files
        self._names = names
        self._paths: dict[int, str] = {}
        self._at: dict[tuple[int, int, int], InlineChain] = {}
        self._known: dict[tuple[str, int], InlineChain] = {}

    def read(self, directive: str) -> InlineChain | None:
        """The chain that a ``.loc`` gives what follows; None where it gives no line.

        Where it gives line 0 for inlined code, the place it was inlined at is what is left.
        """
        match = _LOC.match(directive)
        if match is None:
            raise InputError(f"{directive.strip()[:80]!r} names no line", remedy="write .loc FILE LINE COLUMN")
        place = (int(match[1]), int(match[2]), int(match[3]))
        outer: InlineChain = ()
        self.column = place[2] if place[1] else 0
        if match[4] is not None:
            outer_place = (int(match[6]), int(match[7]), int(match[8]))
            self.column = self.column if place[1] else outer_place[2]
            known = self._at.get(outer_place)
            outer = self._begin(outer_place, self._function, ()) if known is None else known
        # Chains are shared: ``outer`` is kept alive by the chains built on it, so that its id tells it.
        key = (directive, id(outer))
        chain = self._known.get(key)
        if chain is None:
            name = self._function if match[4] is None else self._names.find(match[4], int(match[5] or 0))
            chain = self._begin(place, name, outer)
            self._known[key] = chain
        self._at[place] = chain
        return chain or None

    def _begin(self, place: tuple[int, int, int], function: str | None, outer: InlineChain) -> InlineChain:
        number, line, _ = place
        if line == 0:
            return outer
        path = self._paths.get(number)
        if path is None:
            if number not in self._files:
                raise incomplete(f".loc names file {number}, which no .file lists")
            path = self._paths[number] = join_source_path("", self._files[number])
        return (Frame(file=path, line=line, function=function), *outer)[:MOST_FRAMES]
