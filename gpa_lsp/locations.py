"""Where things are: source lines and inline frames, as types and not as bare integers.

Lines are 1-based, as in DWARF and in every editor's status bar; only ``lsp/positions.py`` knows 0-based lines.
"""

from dataclasses import dataclass


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
        file: as in :class:`SourceLine`.
        line: as in :class:`SourceLine`.
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
