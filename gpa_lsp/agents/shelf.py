"""The reports below a folder, each read when it is asked for, and ids of their kernels."""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError, ProblemSeverity
from gpa_lsp.kernel.names import list_named
from gpa_lsp.profile.read import list_suffixes
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pipeline import load
from gpa_lsp.report.source_paths import SourceLocator

_MOST_LOOKED_AT = 20_000  # Folder entries: a search ends soon in any folder

_MOST_REPORTS = 50
_MOST_KEPT = 4  # Reports in memory; others are read again, which the user's cache makes quick

_ID_CHARS = 6


class ShelvedKernel(Struct, frozen=True, kw_only=True):
    """A kernel of a report."""

    id: str  # for further questions; the same as long as the report lies where it lies
    path: Path  # of the report
    report: Report  # it is in
    kernel: KernelReport  # itself


class Shelf:
    """Reports and sources below one folder. Nothing outside of it is read, links included.

    Args:
        folder: where the agent works.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.locator = SourceLocator([self.folder], [], max_files=_MOST_LOOKED_AT)
        self._read: OrderedDict[tuple[Path, int, int], Report] = OrderedDict()

    def find_file(self, name: str) -> Path:
        """A file or folder that somebody named.

        Raises:
            InputError: it is not below the folder, or not there.
        """
        if "\0" in name:
            raise InputError("a name with a null character names no file", remedy="name a file below the folder")
        path = Path(os.path.realpath(self.folder / name))
        if not path.is_relative_to(self.folder):
            raise InputError(f"{name} is not below {self.folder.name}/", remedy="name a file below the folder")
        if not os.path.exists(path):  # noqa: PTH110 - unlike a path's own question it takes names that no file can have
            raise InputError(f"{name} is not there", remedy="list_kernels lists the reports there are")
        return path

    def show(self, path: Path) -> str:
        """A path as an agent names it."""
        return path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.name

    def list_reports(self, inside: str | None = None) -> list[Path]:
        """Reports below the folder or one of its own, the newest first; at most fifty.

        Raises:
            InputError: there is no such file or folder here.
        """
        start = self.folder if inside is None else self.find_file(inside)
        if start.is_file():
            return [start]
        found = sorted(self._search(start), key=lambda one: (-one[1], one[0]))
        return [path for path, _ in found[:_MOST_REPORTS]]

    def read(self, path: Path) -> Report:
        """A report, analysed."""
        status = path.stat()
        key = path, status.st_size, status.st_mtime_ns
        if key not in self._read:
            self._read[key] = load([path], locator=self.locator)
            while len(self._read) > _MOST_KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return self._read[key]

    def expect(self, path: Path) -> Report:
        """A report with kernels.

        Raises:
            InputError: it cannot be read, or has none.
        """
        report = self.read(path)
        if not report.kernels:
            why = next((one for one in report.problems if one.severity is ProblemSeverity.ERROR), None)
            message = "it has no kernel" if why is None else why.message
            raise InputError(f"{self.show(path)}: {message}", remedy=why.remedy if why is not None else None)
        return report

    def list_kernels(self, path: Path) -> Iterator[ShelvedKernel]:
        """Those of a report, the one that took longest first."""
        report = self.read(path)
        for kernel in report.kernels:
            name = f"{self.show(path)}\0{kernel.mangled_name}\0{kernel.device.name}"
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_CHARS]
            yield ShelvedKernel(id=f"k{digest}", path=path, report=report, kernel=kernel)

    def find_kernel(self, wanted: str | None, inside: str | None = None) -> ShelvedKernel:
        """The kernel of an id, or of a name: then of the newest report that has one, the one that took longest.

        Args:
            wanted: id, name or part of a name; None for the kernel that took longest in the newest report.

        Raises:
            InputError: there is none.
        """
        paths = self.list_reports(inside)
        for path in paths:
            found = list(self.list_kernels(path))
            if wanted is not None:
                named = [one for one in found if one.id == wanted]
                found = named or list_named(wanted, found, lambda one: (one.kernel.mangled_name, one.kernel.name))
            if found:
                return found[0]
        if not paths:
            raise InputError("no report lies here", remedy="record one: gpa-lsp profile -o profile.ncu-rep -- ./app")
        for path in paths:
            self.expect(path)  # says why one of them has none
        raise InputError(
            "the reports have no kernel" if wanted is None else f"no kernel has the id or name {wanted!r}",
            remedy="list_kernels lists them",
        )

    def _search(self, start: Path) -> Iterator[tuple[Path, int]]:
        suffixes, looked_at = list_suffixes(), 0
        for parent, folders, names in os.walk(start):
            folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
            for name in names:
                looked_at += 1
                if looked_at > _MOST_LOOKED_AT:
                    return
                path = Path(parent, name)
                if (
                    name.endswith(suffixes)
                    and path.is_file()
                    and Path(os.path.realpath(path)).is_relative_to(self.folder)
                ):
                    yield path, path.stat().st_mtime_ns
