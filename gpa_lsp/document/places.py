"""Source places as they are shown: the local path where the file exists, and the line's text where it can be trusted."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path, PurePath

from gpa_lsp.document.layout import ELLIPSIS
from gpa_lsp.foundation.files import read_bounded
from gpa_lsp.foundation.locations import Frame, shorten_paths, write_place
from gpa_lsp.foundation.ownership import choose_frame, shorten_library_path
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.source_paths import SourceLocator

_MAX_SOURCE_BYTES = 16 << 20


def show_path(path: PurePath | str, folder: Path | None) -> str:
    """A path of this machine, relative where it lies below a folder."""
    known = PurePath(path)
    if folder is not None and known.is_absolute() and known.is_relative_to(folder):
        return str(known.relative_to(folder))
    return str(path)


def show_line(file: str, line: int | None, folder: Path | None) -> str:
    """``file:line`` of a source; a library's file that lies elsewhere by its name alone.

    >>> show_line("/p/a.cu", 3, Path("/p")), show_line("/usr/local/cuda/include/cub/block/block_scan.cuh", 9, Path("/p"))
    ('a.cu:3', 'block_scan.cuh:9')
    """
    shown = show_path(file, folder)
    return write_place(shorten_library_path(file) if shown == file else shown, line)


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
        """The file on this machine; None where it is missing."""
        if self._locator is None:
            return None
        return self._locator.locate(file, kernel.embedded_sources.get(file), kernel.instructions.chains)

    def show_file(self, kernel: KernelReport, file: str) -> str:
        """Path to print: relative below the folder, absolute where it exists, as compiled otherwise."""
        found = self.locate(kernel, file)
        return file if found is None else self.show_path(found)

    def show_path(self, path: PurePath) -> str:
        """A path of this machine, relative when it is below the folder."""
        return show_path(path, self._folder)

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


class PageNames(PlaceNames):
    """Places on pages that are read on other machines: files are named by the shortest distinct ends of their paths.

    Args:
        read: the text of a line, empty where it must not be shown; None for what the profile carries.
    """

    def __init__(self, read: Callable[[KernelReport, str, int], str] | None = None) -> None:
        super().__init__()
        self._read = read
        self._short: dict[int, dict[str, str]] = {}

    def show_file(self, kernel: KernelReport, file: str) -> str:
        """Short name of a file."""
        if id(kernel) not in self._short:
            frames = (frame for chain in kernel.instructions.chains for frame in chain)
            self._short[id(kernel)] = shorten_paths({file, *(frame.file for frame in frames)})
        return self._short[id(kernel)].get(file, file)

    def read_line(self, kernel: KernelReport, file: str, line: int) -> str | None:
        """The text of a line, as the page may show it."""
        return super().read_line(kernel, file, line) if self._read is None else self._read(kernel, file, line)


def _is_older(path: Path, unix_s: int | None) -> bool:
    try:
        return unix_s is not None and path.stat().st_mtime <= unix_s
    except OSError:
        return False


class InstructionPlaces:
    """Places of one kernel's instructions.

    Args:
        kernel: the kernel.
        places: how sources are shown.
    """

    def __init__(self, kernel: KernelReport, places: PlaceNames) -> None:
        self._kernel = kernel
        self._places = places

    def choose_frame(self, row: int) -> Frame | None:
        """Frame that names an instruction: the innermost of the user's own that exists here; None without lines."""
        columns = self._kernel.instructions
        chain = int(columns.chain_index[row])
        if chain < 0:
            return None
        return choose_frame(columns.chains[chain], self._is_here)

    def show(self, row: int) -> Sequence[str]:
        """Inline chain of an instruction, innermost first: ``path:line`` for the frame that can be opened, short names for others.

        Of a long chain the ends and the frame that can be opened are shown. Without lines it is the offset, with the function's name
        where it is not the kernel's own.
        """
        own = self.choose_frame(row)
        if own is None:
            return (self.show_offset(row),)
        chain = self._kernel.instructions.chains[self._kernel.instructions.chain_index[row]]
        kept = sorted({0, chain.index(own), len(chain) - 1})
        parts: list[str] = []
        for position, index in enumerate(kept):
            if position and index > kept[position - 1] + 1:
                parts.append(ELLIPSIS)
            parts.append(self._show_frame(chain[index], is_own=index == chain.index(own)))
        return tuple(parts)

    def show_offset(self, row: int) -> str:
        """The offset of an instruction, ``0x40``, or ``scale+0x40`` in another function than the kernel's own."""
        columns = self._kernel.instructions
        function = columns.functions[columns.function_index[row]]
        offset = f"0x{int(columns.pc_offsets[row]):x}"
        return offset if function == self._kernel.mangled_name else f"{shorten_name(demangle(function))}+{offset}"

    def name_file(self, file: str) -> str:
        """Path of a local file; for one that is missing, the shortest distinct end of its path."""
        is_here = self._places.locate(self._kernel, file) is not None
        return self._places.show_file(self._kernel, file) if is_here else self._short_names.get(file, file)

    def _show_frame(self, frame: Frame, *, is_own: bool) -> str:
        if is_own and self._is_here(frame.file):
            return self._places.show_line(self._kernel, frame.file, frame.line)
        name = self._short_names[frame.file]
        return write_place(name, frame.line)

    def _is_here(self, file: str) -> bool:
        return self._places.locate(self._kernel, file) is not None

    @cached_property
    def _short_names(self) -> dict[str, str]:
        return shorten_paths({frame.file for chain in self._kernel.instructions.chains for frame in chain})
