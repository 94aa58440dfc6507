"""Where the lines of the measured files are in the document the editor holds."""

from collections.abc import Sequence

from gpa_lsp.lsp.session import MeasuredFile
from gpa_lsp.report.line_map import LineMap, map_lines


class LineFinder:
    """Maps measured lines to the document's, comparing each distinct measured text once.

    Args:
        lines: of the document as it is now.
        opened: of the document as the client opened it, which stands in for a measured text we have no copy of; None when it is not open.
        shows_unverified: find lines also of files that may not be what was measured.
    """

    def __init__(
        self, lines: Sequence[str], *, opened: Sequence[str] | None = None, shows_unverified: bool = False
    ) -> None:
        self._lines = lines
        self._opened = opened
        self._shows_unverified = shows_unverified
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
        measured = file.lines if file.lines is not None else self._opened
        if measured is None:
            return None
        text = tuple(measured)
        found = self._maps_by_text.get(text) or map_lines(text, self._lines)
        self._maps[id(file)] = (file, found)
        self._maps_by_text[text] = found
        return found
