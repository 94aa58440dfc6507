"""The texts of sources as they were when the profile was taken."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.code.binary.model import Cubin, SourceStamp
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.regular_files import read_bounded
from gpa_lsp.report.measured_files import is_as_compiled
from gpa_lsp.report.source_paths import SourceLocator

if TYPE_CHECKING:
    from gpa_lsp.kernel.model import Kernel

_MAX_SOURCE_BYTES = 16 << 20

# A path as compiled, when the kernel was measured (seconds since 1970), and what the compiler wrote down of the file
SourceQuestion = tuple[str, int, SourceStamp | None]


class ProfiledSources:
    """Reads the sources of profiled kernels.

    A source embedded in the profile is believed first. A file on this machine is believed only when it has not changed since the
    measurement, and has the length the compiler saw where that is written down: a hint that quotes another line would be worse than one that
    quotes none.

    Args:
        locator: finds files on this machine; None reads embedded sources only.

    Attributes:
        answers: every question about files of this machine so far, with a digest of the text that was the answer; None where there was none.
            What was concluded from the answers holds as long as :meth:`ask` gives the same ones.
    """

    def __init__(self, locator: SourceLocator | None = None) -> None:
        self.answers: dict[SourceQuestion, str | None] = {}
        self._locator = locator
        self._texts: dict[tuple[Path, SourceStamp | None], str | None] = {}
        self._stamps: dict[str, Mapping[str, SourceStamp]] = {}

    @property
    def locator(self) -> SourceLocator | None:
        """Finds files on this machine."""
        return self._locator

    def reader_for(self, kernel: "Kernel") -> Callable[[str], str | None]:
        """A function from a path as compiled to the text the kernel was compiled from, as far as anyone can tell; None when nobody has it."""
        embedded = kernel.module.sources if kernel.module is not None else {}
        measured = [launch.created_unix_s for launch in kernel.launches if launch.created_unix_s is not None]
        measured_unix_s = min(measured, default=None)
        stamps = self._read_stamps(kernel.cubin)

        def read(file: str) -> str | None:
            text = embedded.get(file)
            if text is not None or self._locator is None or measured_unix_s is None:
                return text
            question = (file, measured_unix_s, stamps.get(file))
            found = self._read_located(question)
            if question not in self.answers:
                self.answers[question] = _digest(found)
            # the same file, asked with the code: a question that is kept has to be asked again without any
            is_it = found is None or self._locator.locate(file, chains=kernel.rows.chains) == self._locator.locate(file)
            if found is not None and is_it and question[2] is None:
                is_it = self._locator.may_hold(file, found.splitlines(), kernel.rows.chains)
            return found if is_it else None

        return read

    def ask(self, question: SourceQuestion) -> str | None:
        """The answer to a question today, as a digest."""
        return _digest(self._read_located(question))

    def _read_located(self, question: SourceQuestion) -> str | None:
        file, measured_unix_s, stamp = question
        path = None if self._locator is None else self._locator.locate(file)
        return None if path is None else self._read_unchanged(path, measured_unix_s, stamp)

    def _read_stamps(self, cubin: Cubin | None) -> Mapping[str, SourceStamp]:
        if cubin is None:
            return {}
        if cubin.sha256 not in self._stamps:
            from gpa_lsp.code.binary.source_stamps import (
                read_source_stamps,  # a report that is kept needs no line tables
            )

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


def _read_compiled(path: Path, measured_unix_s: int, stamp: SourceStamp | None) -> str | None:
    try:
        found = path.stat()
        if found.st_size > _MAX_SOURCE_BYTES or not is_as_compiled(found, measured_unix_s * 1_000_000_000, stamp):
            return None
        return read_bounded(path, _MAX_SOURCE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
