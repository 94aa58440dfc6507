"""The texts of a report's sources, as they were when the profile was taken."""

from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.foundation.files import read_bounded
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import Doubt, find_doubt
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.source_paths import SourceLocator, fits_lines

_MAX_SOURCE_BYTES = 16 << 20

ABSENT = "The profile does not hold this file (ncu --import-source yes), and it was not found on the machine that wrote this page."
CHANGED = "The file is not what the kernel was compiled from: its length or its lines differ."
UNVERIFIED = "Unverified: the file has been saved since the kernel was measured, so lines may have moved."
UNWANTED = "This page was written without the texts of sources."
UNREADABLE = "The file could not be read."


class SourceTexts:
    """Reader of source texts: those embedded in a profile first, then files of this machine, where there is a locator."""

    def __init__(self, locator: SourceLocator | None, *, is_wanted: bool = True) -> None:
        self._locator = locator
        self._is_wanted = is_wanted
        self._split: dict[str, Sequence[str]] = {}
        self._read: dict[Path, Sequence[str]] = {}

    def read(self, kernel: KernelReport, file: str) -> tuple[Sequence[str] | None, str]:
        """Lines of a file, or None, and a sentence why they are missing or may have changed; the sentence is empty where they are verified."""
        if not self._is_wanted:
            return None, UNWANTED
        embedded = kernel.embedded_sources.get(file)
        if embedded is not None:
            if embedded not in self._split:
                self._split[embedded] = split_lines(embedded)
            return self._split[embedded], ""
        path = None if self._locator is None else self._locator.locate(file, chains=kernel.instructions.chains)
        if path is None:
            return None, ABSENT
        return self._read_here(path, kernel, file)

    def read_line(self, kernel: KernelReport, file: str | None, line: int | None) -> str:
        """One line without surrounding white space, to be quoted; empty where it is unknown or may have changed."""
        if file is None or not line:
            return ""
        lines, doubt = self.read(kernel, file)
        return lines[line - 1].strip() if lines is not None and not doubt and 0 < line <= len(lines) else ""

    def _holds(self, kernel: KernelReport, file: str, lines: Sequence[str]) -> bool:
        """Whether a file whose size was not recorded can be what was compiled."""
        return self._locator is None or self._locator.may_hold(file, lines, kernel.instructions.chains)

    def _read_here(self, path: Path, kernel: KernelReport, file: str) -> tuple[Sequence[str] | None, str]:
        """Lines of a local file: None where its length differs, doubtful where it was saved since the measurement."""
        try:
            found = path.stat()
            if found.st_size > _MAX_SOURCE_BYTES:
                return None, UNREADABLE
            doubt = find_doubt(found, (kernel.measured_unix_s or 0) * 1_000_000_000, kernel.source_sizes.get(file))
            if doubt is Doubt.OTHER_LENGTH:
                return None, CHANGED
            lines = self._read.get(path)
            if lines is None:
                lines = self._read[path] = split_lines(read_bounded(path, _MAX_SOURCE_BYTES).decode("utf-8", "replace"))
        except OSError:
            return None, UNREADABLE
        if doubt is None:
            is_it = file in kernel.source_sizes or self._holds(kernel, file, lines)
            return (lines, "") if is_it else (None, CHANGED)
        measured = [row.line for row in kernel.lines if row.file == file and row.line]
        return (lines, UNVERIFIED) if fits_lines(lines, measured) else (None, CHANGED)
