"""Where things are: source lines and inline frames, as types and not as bare integers.

Lines are 1-based, as in DWARF and in every editor's status bar; counting them from 0 is the protocol's way, and the server's business.
"""

import re
from collections import Counter
from collections.abc import Iterable

from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SourceLine:
    """One line of one file, as the compiler named it.

    Attributes:
        file: path as written in the line table, normalised (``a/../b`` folded), not resolved on this machine.
        line: 1-based; 0 means the compiler gave no line.
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Frame:
    """One level of an inline chain.

    Attributes:
        file: path as compiled, as in :class:`SourceLine`.
        line: 1-based; 0 means the compiler gave no line.
        function: mangled name of the function whose *body* holds this line: an inlined function, or for the outermost frame the function
            that was compiled. None when the line table does not name it.
    """

    file: str
    line: int
    function: str | None = None

    @property
    def source_line(self) -> SourceLine:
        """The place without the function."""
        return SourceLine(file=self.file, line=self.line)


InlineChain = tuple[Frame, ...]
"""Frames of one instruction, innermost first. Never empty: an instruction without a line has no chain at all (None)."""


def write_place(file: str, line: int | None, last_line: int | None = None) -> str:
    """A place as terminals and editors open it; without the number where the compiler gave no line.

    Args:
        file: as it is shown.
        line: 1-based; 0 or None where there is none.
        last_line: of several lines.

    >>> write_place("k.cu", 3), write_place("k.cu", 3, 7), write_place("k.cu", 3, 3), write_place("k.cu", 0)
    ('k.cu:3', 'k.cu:3-7', 'k.cu:3', 'k.cu')
    """
    if not line:
        return file
    return f"{file}:{line}" if last_line in (None, line) else f"{file}:{line}-{last_line}"


def shorten_paths(paths: Iterable[str]) -> dict[str, str]:
    """The shortest tails of paths that still tell them apart.

    >>> shorten_paths(["/a/x/k.cu", "/a/y/k.cu", "/b/m.h"])
    {'/a/x/k.cu': 'x/k.cu', '/a/y/k.cu': 'y/k.cu', '/b/m.h': 'm.h'}
    """
    tails = {path: [part for part in re.split(r"[/\\\\]", path) if part] or [path] for path in paths}
    short: dict[str, str] = {}
    length = 1
    while tails:
        shown = {path: "/".join(parts[-length:]) for path, parts in tails.items()}
        times = Counter(shown.values())
        for path, parts in list(tails.items()):
            if times[shown[path]] == 1 or length >= len(parts):
                short[path] = shown[path] if times[shown[path]] == 1 else path
                del tails[path]
        length += 1
    return {path: short[path] for path in paths}
