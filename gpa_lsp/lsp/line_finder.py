"""Where the lines of the measured files are in the document the editor holds."""

from collections.abc import Sequence

from gpa_lsp.lsp.session import MeasuredFile
from gpa_lsp.report.line_map import LineMap, map_lines


class LineFinder:
    """Maps measured lines to the document's, comparing each distinct measured text once."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._maps: dict[int, tuple[MeasuredFile, LineMap]] = {}
        self._maps_by_text: dict[tuple[str, ...], LineMap] = {}

    def find(self, file: MeasuredFile, measured_line: int) -> int | None:
        """The current line of a measured one, both 1-based; None when it is gone."""
        if file.lines is None:
            return measured_line if measured_line <= len(self._lines) else None
        return self._map(file, file.lines).find_current(measured_line)

    def is_edited(self, file: MeasuredFile) -> bool:
        """The document is not what was measured."""
        return file.lines is not None and not self._map(file, file.lines).unchanged

    def _map(self, file: MeasuredFile, measured: tuple[str, ...]) -> LineMap:
        """By identity first: hashing a text for each of its lines would be quadratic. The file is kept, so that its identity stays its own."""
        known = self._maps.get(id(file))
        if known is not None:
            return known[1]
        found = self._maps_by_text.get(measured) or map_lines(measured, self._lines)
        self._maps[id(file)] = (file, found)
        self._maps_by_text[measured] = found
        return found
