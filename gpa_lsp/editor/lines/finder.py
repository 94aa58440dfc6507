"""Current places of measured lines in the document that the editor holds."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count

from gpa_lsp.editor.lines.anchors import choose_anchor, find_definitions
from gpa_lsp.editor.settings import UnverifiedChoice
from gpa_lsp.foundation.files import Stamp
from gpa_lsp.report.line_map import LineMap, map_lines, split_lines
from gpa_lsp.report.measured_files import MeasuredFile


def may_show_unverified(file: MeasuredFile, choice: UnverifiedChoice) -> bool:
    """Whether lines are shown of a file that may not be what was measured."""
    return choice is UnverifiedChoice.ALL or (choice is UnverifiedChoice.FITTING and file.fits)


class LineFinder:
    """Maps measured lines to the document's, comparing each distinct measured text once.

    Args:
        lines: of the document as it is now.
        saved: what the document held when it was like the file on disk, latest last, by the file's stamp then; stands in for a measured text we
            have no copy of, as long as it is of the same state of the file.
        unverified: which files that may not be what was measured are taken for it.
    """

    def __init__(
        self,
        lines: Sequence[str],
        *,
        saved: Mapping[Stamp | None, str] | None = None,
        unverified: UnverifiedChoice = UnverifiedChoice.FITTING,
    ) -> None:
        self._lines = lines
        self._saved = saved or {}
        self._saved_lines: dict[str, tuple[str, ...]] = {}
        self._unverified = unverified
        self._maps_back: dict[int, dict[int, int]] = {}
        self._maps: dict[int, tuple[MeasuredFile, LineMap]] = {}
        self._maps_by_text: dict[tuple[str, ...], LineMap] = {}

    def find(self, file: MeasuredFile, measured_line: int) -> int | None:
        """The current line of a measured one, both 1-based; None when it is gone, or nobody can tell where it is."""
        line_map = self.map(file) if self._may_show(file) else None
        return None if line_map is None else line_map.find_current(measured_line)

    @cached_property
    def definitions(self) -> Mapping[str, tuple[int, ...]]:
        """Functions of the document that can be kernels: name → 1-based lines of their definitions, ascending."""
        return find_definitions("\n".join(self._lines))

    def find_kernel(self, readable_name: str, file: MeasuredFile, body: Iterable[int | None] = ()) -> int | None:
        """Find the current line of a kernel's definition, see :func:`choose_anchor`; None where that cannot be told.

        Args:
            file: the text that was measured.
            body: lines of it in which the kernel has code, the topmost first.
        """
        current = (self.find(file, line) for line in body if line is not None)
        first_line = next((line for line in current if line is not None), None)
        return choose_anchor(self.definitions, readable_name, first_line)

    def knows(self, file: MeasuredFile) -> bool:
        """Whether lines of a file are found at all: its text is known, and is what was measured, or the user wants them all the same."""
        return self._may_show(file) and self.map(file) is not None

    def _may_show(self, file: MeasuredFile) -> bool:
        return file.is_verified or may_show_unverified(file, self._unverified)

    def map_back(self, file: MeasuredFile) -> Mapping[int, int]:
        """Current line → measured line, both 1-based, of all lines :meth:`find` finds."""
        line_map = self.map(file) if self._may_show(file) else None
        if line_map is None:
            return {}
        known = self._maps_back.get(id(line_map))
        if known is None:
            known = self._maps_back[id(line_map)] = dict(zip(line_map.current_lines, count(1), strict=False))
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
        text = file.lines if file.lines is not None else self._split_saved(file)
        if text is None:
            return None
        found = self._maps_by_text.get(text) or map_lines(text, self._lines)
        self._maps[id(file)] = (file, found)
        self._maps_by_text[text] = found
        return found

    def _split_saved(self, file: MeasuredFile) -> tuple[str, ...] | None:
        text = self._saved.get(file.stamp)
        if text is None and self._unverified is UnverifiedChoice.ALL:
            text = next(reversed(list(self._saved.values())), None)
        if text is None:
            return None
        if text not in self._saved_lines:
            self._saved_lines[text] = split_lines(text)
        return self._saved_lines[text]
