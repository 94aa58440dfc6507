"""Local versions of a report's sources: :class:`MeasuredFile`."""

import hashlib
import os
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.files import Stamp, make_stamp, open_regular_file, read_bounded
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.source_paths import SourceLocator, parse_compiled_path

if TYPE_CHECKING:
    from gpa_lsp.kernel.model import Kernel
    from gpa_lsp.report.model import KernelReport, Report

_MAX_SOURCE_BYTES = 8 << 20

# (local path, time of measuring in ns since 1970) → the lines of the source at that time, where somebody kept them
FindCopy = Callable[[str, int], Sequence[str] | None]


# (file here, time of measuring in ns since 1970) → its text at that time, where somebody committed it; None where nobody knows
FindText = Callable[[Path, int], str | None]


class Doubt(Enum):
    """Reason why a file may not be what was measured, as the end of a sentence about it."""

    SAVED_SINCE = "was saved after it was measured"
    OTHER_LENGTH = "is not as long as what was compiled"
    ELSEWHERE = "is not on the disk of the server"
    OTHER_CODE = "has the name of what was measured and does not seem to hold its code"
    OTHER_TEXT = "does not seem to hold the code that was measured"
    UNREAD = "lies outside the workspace and was saved after it was measured"


class MeasuredFile(Struct, frozen=True, kw_only=True):
    """A source file a profile mentions and this machine has."""

    compiled_path: str  # as the compiler wrote it
    # the file here, links resolved; where the editor has it on another machine, what the editor calls it
    local_path: str
    # the text that was measured, without line ends: the profile's own copy, the one we kept when it was measured, or else what the file held when the
    # profile was loaded. None when it could not be read, or lies where nobody allowed us to read: then what the client has of the same state of the
    # file is taken for it.
    lines: tuple[str, ...] | None
    # the lines are those that were measured, as far as anyone can tell. Where they are not, what is shown on them is marked.
    is_verified: bool = True
    doubt: Doubt | None = None  # why they may not be; None where they are verified
    # the lines that were measured exist, carry code, and stand in the functions they were measured in. Where they do not, this is another text, and
    # nothing is shown on it unless the user wants it.
    fits: bool = True
    stamp: Stamp | None = None  # what the file looked like when the profile was loaded
    # it lies where nobody allowed us to read; its content is never looked at, whatever copy of it the profile has
    is_outside: bool = False

    def describe_doubt(self) -> str:
        """The doubt about the lines, as the rest of a sentence; empty where they are verified."""
        return "" if self.is_verified else (self.doubt or Doubt.SAVED_SINCE).value


def know_nothing(_path: Path | str, _measured_ns: int) -> None:
    """Default of *find_copy* and *find_committed*: no text is known."""


def find_files(
    report: "Report",
    locator: SourceLocator,
    profile_modified_ns: int,
    find_copy: FindCopy = know_nothing,
    find_committed: FindText = know_nothing,
) -> tuple[MeasuredFile, ...]:
    """Sources of a report that this machine has, by path as compiled.

    Args:
        report: of one profile.
        locator: finds files here.
        profile_modified_ns: stands in for the time of measuring where the report does not say it.
        find_copy: knows texts of earlier.
        find_committed: knows texts of repositories; asked for files that may not be what was measured.
    """
    sources: dict[str, _Source] = {}
    for kernel in report.kernels:
        measured_ns = read_measured_ns(kernel, profile_modified_ns)
        for compiled_path in _list_files(kernel):
            known = sources.setdefault(compiled_path, _Source())
            known.text = known.text if known.text is not None else kernel.embedded_sources.get(compiled_path)
            known.size_bytes = known.size_bytes or kernel.source_sizes.get(compiled_path)
            known.measured_ns = max(known.measured_ns, measured_ns)
            known.kernels.append(kernel)
    found = (_find_file(path, source, locator, find_copy, find_committed) for path, source in sorted(sources.items()))
    return tuple(file for file in found if file is not None)


class _Source(Struct):
    """Facts of a profile about a source."""

    text: str | None = None  # its own copy
    size_bytes: int | None = None  # when it was compiled
    measured_ns: int = 0  # when the last of its kernels was measured
    kernels: "list[KernelReport]" = field(default_factory=list)  # compiled from it


def _list_files(kernel: "KernelReport") -> set[str]:
    return {row.file for row in kernel.lines if row.file is not None}


def _find_file(
    compiled_path: str, source: _Source, locator: SourceLocator, find_copy: FindCopy, find_committed: FindText
) -> MeasuredFile | None:
    located = (locator.locate(compiled_path, source.text, kernel.instructions.chains) for kernel in source.kernels)
    local_path = next((found for found in located if found is not None), None)
    is_guess = local_path is None
    local_path = local_path or locator.locate(compiled_path, source.text)
    may_read = local_path is not None
    local_path = local_path or locator.locate_outside(compiled_path)
    if local_path is None:
        return _describe_elsewhere(compiled_path, source, locator, find_copy)
    real_path = os.path.realpath(local_path)
    status = _read_status(local_path)
    if status is None:
        return None
    lines = split_lines(source.text) if source.text is not None else find_copy(real_path, source.measured_ns)
    is_copy = lines is not None
    doubt = None if is_copy else find_doubt(status, source.measured_ns, source.size_bytes)
    if lines is None and may_read:
        lines = _read_source(local_path, status)
        if doubt is not None and lines is not None:
            found = _compare_committed(lines, find_committed(Path(real_path), source.measured_ns), source.size_bytes)
            is_copy, lines, doubt = (True, found, None) if found is not None else (False, lines, doubt)
    is_told = is_copy or source.size_bytes is not None  # by what was compiled, not by the file's age alone
    if not may_read:
        doubt = doubt and Doubt.UNREAD
    elif doubt is None and not is_told and not is_guess and not _may_hold(compiled_path, source, locator, lines):
        doubt = Doubt.OTHER_TEXT
    elif is_guess:
        doubt = Doubt.OTHER_CODE
    return MeasuredFile(
        compiled_path=compiled_path,
        local_path=real_path,
        lines=None if lines is None else tuple(lines),
        is_verified=doubt is None,
        doubt=doubt,
        fits=doubt is not Doubt.OTHER_CODE or not parse_compiled_path(compiled_path).anchor,
        stamp=make_stamp(status),
        is_outside=not may_read,
    )


def _may_hold(compiled_path: str, source: _Source, locator: SourceLocator, lines: Sequence[str] | None) -> bool:
    """Whether a file that only its age supports can be what was measured, by its content; several projects may share a path."""
    chains = [kernel.instructions.chains for kernel in source.kernels]
    return lines is None or any(locator.may_hold(compiled_path, lines, one) for one in chains)


def _describe_elsewhere(
    compiled_path: str, source: _Source, locator: SourceLocator, find_copy: FindCopy
) -> MeasuredFile | None:
    """A file that the user's mappings name and only the editor's machine has; None where they name none."""
    named = locator.name_elsewhere(compiled_path)
    if named is None:
        return None
    path = str(named)
    lines = split_lines(source.text) if source.text is not None else find_copy(path, source.measured_ns)
    return MeasuredFile(
        compiled_path=compiled_path,
        local_path=path,
        lines=None if lines is None else tuple(lines),
        is_verified=lines is not None,
        doubt=None if lines is not None else Doubt.ELSEWHERE,
        is_outside=True,
    )


def _compare_committed(lines: Sequence[str], committed: str | None, size_bytes: int | None) -> tuple[str, ...] | None:
    """The measured text, confirmed by the repository's text at that time; None where that tells nothing.

    It is the file's own text where both say the same, whatever their line ends; and the committed one where it is as long as what was compiled.
    """
    if committed is None:
        return None
    then = split_lines(committed)
    is_compiled = size_bytes is not None and size_bytes in _list_lengths(committed)
    return then if is_compiled or (size_bytes is None and then == tuple(lines)) else None


def _list_lengths(text: str) -> tuple[int, int]:
    """Lengths of a text in bytes, with Unix and with Windows line ends."""
    plain = text.replace("\r\n", "\n")
    size_bytes = len(plain.encode("utf-8", "surrogateescape"))
    return size_bytes, size_bytes + plain.count("\n")


def _read_status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _read_source(path: Path, status: os.stat_result) -> tuple[str, ...] | None:
    """A file's lines; None when it cannot be read or is too large to be source."""
    try:
        if status.st_size > _MAX_SOURCE_BYTES:
            return None
        stream, _ = open_regular_file(path)
        with stream:
            return split_lines(stream.read(_MAX_SOURCE_BYTES).decode("utf-8", errors="replace"))
    except (OSError, InputError):
        return None


def find_doubt(found: os.stat_result, measured_ns: int, size_bytes: int | None) -> Doubt | None:
    """Reason why a file may not hold the text that was compiled, by its length, else by its age; None where there is none.

    The length decides where the compiler recorded it: a file may be older than the measurement and yet newer than the program, and checking out a
    repository makes files look new. Otherwise the file must not have been saved since the measurement.
    """
    if size_bytes is not None:
        return None if found.st_size == size_bytes else Doubt.OTHER_LENGTH
    return None if found.st_mtime_ns <= measured_ns else Doubt.SAVED_SINCE


def read_measured_ns(kernel: "KernelReport", profile_modified_ns: int) -> int:
    """Time of a kernel's measurement, since 1970; that of its profile where it is unknown."""
    return profile_modified_ns if kernel.measured_unix_s is None else kernel.measured_unix_s * 1_000_000_000


_MAX_COMPILED_BYTES = 16 << 20

# A path as compiled, when the kernel was measured (seconds since 1970), and how long the file was to the compiler, in bytes
SourceQuestion = tuple[str, int, int | None]


class ProfiledSources:
    """Reader of the sources of profiled kernels.

    A source embedded in the profile is believed first. A file on this machine is believed only when it has not changed since the
    measurement, and has the length the compiler saw where that is written down: a hint that quotes another line would be worse than one that
    quotes none.

    Args:
        locator: finds files on this machine; None reads embedded sources only.
    """

    def __init__(self, locator: SourceLocator | None = None) -> None:
        # every question about files of this machine so far, with a digest of the text that was the answer; None where there was none. What was
        # concluded from the answers holds as long as :meth:`ask` gives the same ones.
        self.answers: dict[SourceQuestion, str | None] = {}
        self.locator = locator
        self._texts: dict[tuple[Path, int | None], str | None] = {}

    def reader_for(self, kernel: "Kernel") -> Callable[[str], str | None]:
        """A function from a path as compiled to the text the kernel was compiled from; it returns None where that is not at hand."""
        embedded = kernel.module.sources if kernel.module is not None else {}
        measured = [launch.created_unix_s for launch in kernel.launches if launch.created_unix_s is not None]
        measured_unix_s = min(measured, default=None)
        from gpa_lsp.code.binary.line_table import find_source_sizes  # a report that is kept needs no line tables

        sizes = find_source_sizes(kernel.cubin)

        def read(file: str) -> str | None:
            text = embedded.get(file)
            if text is not None or self.locator is None or measured_unix_s is None:
                return text
            question = (file, measured_unix_s, sizes.get(file))
            found = self._read_located(question)
            if question not in self.answers:
                self.answers[question] = _digest(found)
            # the same file, asked with the code: a question that is kept has to be asked again without any
            is_it = found is None or self.locator.locate(file, chains=kernel.rows.chains) == self.locator.locate(file)
            if found is not None and is_it and question[2] is None:
                is_it = self.locator.may_hold(file, found.splitlines(), kernel.rows.chains)
            return found if is_it else None

        return read

    def ask(self, question: SourceQuestion) -> str | None:
        """Present answer to a question, as a digest."""
        return _digest(self._read_located(question))

    def _read_located(self, question: SourceQuestion) -> str | None:
        file, measured_unix_s, size_bytes = question
        path = None if self.locator is None else self.locator.locate(file)
        return None if path is None else self._read_unchanged(path, measured_unix_s, size_bytes)

    def _read_unchanged(self, path: Path, measured_unix_s: int, size_bytes: int | None) -> str | None:
        key = (path, size_bytes)
        if key not in self._texts:
            self._texts[key] = _read_compiled(path, measured_unix_s, size_bytes)
        return self._texts[key]


def _read_compiled(path: Path, measured_unix_s: int, size_bytes: int | None) -> str | None:
    try:
        found = path.stat()
        if found.st_size > _MAX_COMPILED_BYTES or find_doubt(found, measured_unix_s * 1_000_000_000, size_bytes):
            return None
        return read_bounded(path, _MAX_COMPILED_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
