"""The texts of sources as they were when the profile was taken."""

from collections.abc import Callable
from pathlib import Path

from gpa_lsp.kernel.model import Kernel
from gpa_lsp.report.source_paths import SourceLocator

_MAX_SOURCE_BYTES = 16 << 20


class ProfiledSources:
    """Reads the sources of profiled kernels.

    A source embedded in the profile is believed first. A file on this machine is believed only when it has not changed since the
    measurement: a hint that quotes another line would be worse than one that quotes none.

    Args:
        locator: finds files on this machine; None reads embedded sources only.
    """

    def __init__(self, locator: SourceLocator | None = None) -> None:
        self._locator = locator
        self._texts: dict[Path, str | None] = {}

    def reader_for(self, kernel: Kernel) -> Callable[[str], str | None]:
        """A function from a path as compiled to the text the kernel was compiled from, as far as anyone can tell; None when nobody has it."""
        embedded = kernel.module.sources if kernel.module is not None else {}
        measured = [launch.created_unix_s for launch in kernel.launches if launch.created_unix_s is not None]
        measured_unix_s = min(measured, default=None)

        def read(file: str) -> str | None:
            text = embedded.get(file)
            if text is not None or self._locator is None or measured_unix_s is None:
                return text
            path = self._locator.locate(file)
            return None if path is None else self._read_unchanged(path, measured_unix_s)

        return read

    def _read_unchanged(self, path: Path, measured_unix_s: int) -> str | None:
        if path not in self._texts:
            self._texts[path] = _read_older(path, measured_unix_s)
        return self._texts[path]


def _read_older(path: Path, unix_s: int) -> str | None:
    try:
        found = path.stat()
        if found.st_mtime > unix_s or found.st_size > _MAX_SOURCE_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
