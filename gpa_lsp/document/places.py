"""How source places are shown: the path that exists here where there is one, and the line's own text where it can be trusted."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.regular_files import read_bounded
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.source_paths import SourceLocator

_MAX_SOURCE_BYTES = 16 << 20


class PlaceNames:
    """Names and texts of the source lines a report mentions.

    Args:
        locator: finds files on this machine; None shows every path as compiled and reads no file.
        folder: shown paths below it are relative to it; usually the current directory.
    """

    def __init__(self, locator: SourceLocator | None = None, folder: Path | None = None) -> None:
        self._locator = locator
        self._folder = folder
        self._local_lines: dict[Path, Sequence[str]] = {}
        self._embedded_lines: dict[str, Sequence[str]] = {}

    def locate(self, kernel: KernelReport, file: str) -> Path | None:
        """The file on this machine; None when it is not here."""
        if self._locator is None:
            return None
        return self._locator.locate(file, kernel.embedded_sources.get(file), kernel.instructions.chains)

    def show_file(self, kernel: KernelReport, file: str) -> str:
        """The path to print: relative below the folder, absolute where it exists, as compiled otherwise."""
        found = self.locate(kernel, file)
        return file if found is None else self.show_path(found)

    def show_path(self, path: PurePath) -> str:
        """A path of this machine, relative when it is below the folder."""
        if self._folder is None or not path.is_absolute():
            return str(path)
        try:
            return str(path.relative_to(self._folder))
        except ValueError:
            return str(path)

    def show_line(self, kernel: KernelReport, file: str, line: int) -> str:
        """``file:line``; without the number where the compiler gave none."""
        return write_place(self.show_file(kernel, file), line)

    def read_line(self, kernel: KernelReport, file: str, line: int) -> str | None:
        """The text of a line as it was profiled, without surrounding white space or tabs; None where it is unknown.

        The embedded source is believed first. A file on this machine is believed only when it has not changed since the measurement:
        the text of another line would be worse than none.
        """
        embedded = kernel.embedded_sources.get(file)
        if embedded is not None:
            if embedded not in self._embedded_lines:
                self._embedded_lines[embedded] = embedded.splitlines()
            lines = self._embedded_lines[embedded]
        else:
            path = self.locate(kernel, file)
            if path is None or not _is_older(path, kernel.measured_unix_s):
                return None
            lines = self._read_local(path)
        return lines[line - 1].replace("\t", " ").strip() if 0 < line <= len(lines) else None

    def _read_local(self, path: Path) -> Sequence[str]:
        if path not in self._local_lines:
            try:
                text = read_bounded(path, _MAX_SOURCE_BYTES).decode("utf-8", "replace")
            except OSError:
                text = ""
            self._local_lines[path] = text.splitlines()
        return self._local_lines[path]


def _is_older(path: Path, unix_s: int | None) -> bool:
    try:
        return unix_s is not None and path.stat().st_mtime <= unix_s
    except OSError:
        return False
