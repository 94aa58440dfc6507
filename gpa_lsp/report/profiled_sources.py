"""The texts of sources as they were when the profile was taken."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from gpa_lsp.binary.model import Cubin
from gpa_lsp.binary.source_stamps import SourceStamp, read_source_stamps
from gpa_lsp.errors import InputError
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.report.source_paths import SourceLocator

_MAX_SOURCE_BYTES = 16 << 20


class ProfiledSources:
    """Reads the sources of profiled kernels.

    A source embedded in the profile is believed first. A file on this machine is believed only when it has not changed since the
    measurement, and has the length the compiler saw where that is written down: a hint that quotes another line would be worse than one that
    quotes none.

    Args:
        locator: finds files on this machine; None reads embedded sources only.
    """

    def __init__(self, locator: SourceLocator | None = None) -> None:
        self._locator = locator
        self._texts: dict[tuple[Path, SourceStamp | None], str | None] = {}
        self._stamps: dict[str, Mapping[str, SourceStamp]] = {}

    def reader_for(self, kernel: Kernel) -> Callable[[str], str | None]:
        """A function from a path as compiled to the text the kernel was compiled from, as far as anyone can tell; None when nobody has it."""
        embedded = kernel.module.sources if kernel.module is not None else {}
        measured = [launch.created_unix_s for launch in kernel.launches if launch.created_unix_s is not None]
        measured_unix_s = min(measured, default=None)
        stamps = self._read_stamps(kernel.cubin)

        def read(file: str) -> str | None:
            text = embedded.get(file)
            if text is not None or self._locator is None or measured_unix_s is None:
                return text
            path = self._locator.locate(file)
            return None if path is None else self._read_unchanged(path, measured_unix_s, stamps.get(file))

        return read

    def _read_stamps(self, cubin: Cubin | None) -> Mapping[str, SourceStamp]:
        if cubin is None:
            return {}
        if cubin.sha256 not in self._stamps:
            try:
                self._stamps[cubin.sha256] = read_source_stamps(cubin)
            except InputError:  # whoever reads its lines has said so
                self._stamps[cubin.sha256] = {}
        return self._stamps[cubin.sha256]

    def _read_unchanged(self, path: Path, measured_unix_s: int, stamp: SourceStamp | None) -> str | None:
        key = (path, stamp)
        if key not in self._texts:
            self._texts[key] = _read_compiled(path, measured_unix_s, stamp)
        return self._texts[key]


def is_as_compiled(found: os.stat_result, measured_ns: int, stamp: SourceStamp | None) -> bool:
    """Whether a file holds the text that was compiled, as far as that can be told without the text.

    Its length decides where the compiler wrote it down: a file may be older than the measurement and yet newer than the program, and checking out a
    repository makes files look new. Otherwise it must not have been saved since the measurement.

    Args:
        found: of the file now.
        measured_ns: when the kernel was measured, since 1970.
        stamp: what the compiler wrote down; None when nothing.
    """
    if stamp is not None:
        return found.st_size == stamp.size_bytes
    return found.st_mtime_ns <= measured_ns


def _read_compiled(path: Path, measured_unix_s: int, stamp: SourceStamp | None) -> str | None:
    try:
        found = path.stat()
        if found.st_size > _MAX_SOURCE_BYTES or not is_as_compiled(found, measured_unix_s * 1_000_000_000, stamp):
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
