"""Where the lines of the measured files are in the document the editor holds."""

from collections.abc import Mapping, Sequence
from itertools import count

from gpa_lsp.lsp.session import MeasuredFile
from gpa_lsp.report.line_map import LineMap, map_lines, split_lines


class LineFinder:
    """Maps measured lines to the document's, comparing each distinct measured text once.

    Args:
        lines: of the document as it is now.
        opened: text of the document as the client opened it, which stands in for a measured text we have no copy of; None when it is not open.
        shows_unverified: find lines also of files that may not be what was measured.
    """

    def __init__(self, lines: Sequence[str], *, opened: str | None = None, shows_unverified: bool = False) -> None:
        self._lines = lines
        self._opened = opened
        self._opened_lines: tuple[str, ...] | None = None
        self._shows_unverified = shows_unverified
        self._maps_back: dict[int, dict[int, int]] = {}
        self._maps: dict[int, tuple[MeasuredFile, LineMap]] = {}
        self._maps_by_text: dict[tuple[str, ...], LineMap] = {}

    def find(self, file: MeasuredFile, measured_line: int) -> int | None:
        """The current line of a measured one, both 1-based; None when it is gone, or nobody can tell where it is."""
        if not file.is_verified and not self._shows_unverified:
            return None
        line_map = self.map(file)
        if line_map is None:
            return measured_line if measured_line <= len(self._lines) else None
        return line_map.find_current(measured_line)

    def map_back(self, file: MeasuredFile) -> Mapping[int, int]:
        """Current line → measured line, both 1-based, of all lines :meth:`find` finds."""
        if not file.is_verified and not self._shows_unverified:
            return {}
        line_map = self.map(file)
        current = range(1, len(self._lines) + 1) if line_map is None else line_map.current_lines
        known = self._maps_back.get(id(line_map))
        if known is None:
            known = self._maps_back[id(line_map)] = dict(zip(current, count(1), strict=False))
            known.pop(0, None)  # lines that are gone
        return known

    def is_edited(self, file: MeasuredFile) -> bool:
        """The document is not what was measured."""
        line_map = self.map(file)
        return line_map is not None and not line_map.unchanged

    def map(self, file: MeasuredFile) -> LineMap | None:
        """All lines of a measured file; None when its text is not known.

        By identity first: hashing a text for each of its lines would be quadratic. The file is kept, so that its identity stays its own.
        """
        known = self._maps.get(id(file))
        if known is not None:
            return known[1]
        text = file.lines if file.lines is not None else self._split_opened()
        if text is None:
            return None
        found = self._maps_by_text.get(text) or map_lines(text, self._lines)
        self._maps[id(file)] = (file, found)
        self._maps_by_text[text] = found
        return found

    def _split_opened(self) -> tuple[str, ...] | None:
        if self._opened is not None and self._opened_lines is None:
            self._opened_lines = split_lines(self._opened)
        return self._opened_lines
