"""Records of the history: measurements, and changes since.

These objects cross the pipe from the server's worker process and are there before any report is, so this module imports nothing heavy.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.files import find_data_folder
from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.report.changes import MeasuredChange, MeasuredWork, PartChange, Place, Verdict

SHORT_DIGEST = 8  # Digits of a commit that are shown


class Commit(Struct, frozen=True, kw_only=True):
    """A commit that was checked out."""

    digest: str  # the name of the commit, in hexadecimal digits
    subject: str = ""  # the first line of its message; empty where nothing near tells it

    @property
    def short(self) -> str:
        """Short form of the digest.

        >>> Commit(digest="8f3c2a91d0e4b7c6").short
        '8f3c2a91'
        """
        return self.digest[:SHORT_DIGEST]


class TimedRun(Struct, frozen=True, kw_only=True):
    """One measurement in a course of times."""

    number: int  # of the run among those of its kernel, the oldest first
    measured_ns: int  # when, since 1970
    time: float | None  # per launch, in the unit of the course; None where unknown
    # lower end of the range the time lies in, as far as its launches tell; None where the time is unknown
    low: float | None
    high: float | None  # upper end
    launch_count: int  # launches the time is the mean of
    verdict: Verdict | None = None  # what became of the time since the run before; None for the first
    # what came or went, of the time before; None as ``verdict`` is, and where one has no time
    change_ratio: float | None = None
    note: Sentence = NOTHING  # what may differ from the run before besides the code; empty where nothing is known to
    commit: Commit | None = None  # what was checked out here when it was measured; None where unknown
    is_baseline: bool = False  # pinned

    @property
    def is_regression(self) -> bool:
        """Whether it is slower than the previous run beyond the noise, with nothing but the code known to differ."""
        return self.verdict is Verdict.SLOWER and not self.note

    @property
    def is_gain(self) -> bool:
        """Whether it is faster than the previous run beyond the noise, with nothing but the code known to differ."""
        return self.verdict is Verdict.FASTER and not self.note


class TimeCourse(Struct, frozen=True, kw_only=True):
    """Measurements of one kernel doing the same work, each compared with the one before."""

    unit: str  # of the times, ``ns`` or ``cycles``
    runs: tuple[TimedRun, ...]  # oldest first; the last one is what is shown
    run_count: int  # runs there are, with older ones and those of other work, which are not listed

    @property
    def timed(self) -> tuple[TimedRun, ...]:
        """Runs with a time."""
        return tuple(run for run in self.runs if run.time is not None)

    @property
    def regressions(self) -> tuple[TimedRun, ...]:
        """Runs slower than the previous one, oldest first."""
        return tuple(run for run in self.runs if run.is_regression)

    def is_made_good(self, position: int) -> bool:
        """Whether a later run is no slower than the one before this one, within its range."""
        limit = next((run.high for run in reversed(self.runs[:position]) if run.high is not None), None)
        later = (run.time for run in self.runs[position + 1 :] if run.time is not None)
        return limit is not None and any(time <= limit for time in later)

    @property
    def commits(self) -> tuple[Commit, ...]:
        """All measured commits, each once, oldest first."""
        known = {run.commit.digest: run.commit for run in self.runs if run.commit is not None}
        return tuple(known.values())

    def begins_commit(self, position: int) -> bool:
        """Whether another commit was checked out than at the previous run; the first known commit counts."""
        commit = self.runs[position].commit
        earlier = next((run.commit for run in reversed(self.runs[:position]) if run.commit is not None), None)
        return commit is not None and (earlier is None or earlier.digest != commit.digest)


class KernelKey(Struct, frozen=True, kw_only=True):
    """Identity of a kernel across measurements."""

    mangled_name: str  # linkage name
    # the file the kernel's body is in: its local path, links resolved, where it was found on this machine, else as compiled. For code without lines
    # the folder of its profile.
    home: str
    device: str  # name of the GPU; empty when unknown
    compute_capability: tuple[int, int] | None  # None when unknown


class RememberedAdvice(Struct, frozen=True, kw_only=True):
    """A piece of advice that was given."""

    optimizer: str  # name in the catalogue
    title: str  # a few words
    speedup: float  # its estimate, run time before / run time after


class RememberedPlace(Struct, frozen=True, kw_only=True):
    """Launches from one host call site."""

    name: str  # file and line, or function, by which the places of a measurement differ
    function: str  # of the frame; empty when unknown
    launches: int | None  # how many; None when unknown
    duration_ns: float  # their mean


class Measurement(MeasuredWork, frozen=True, kw_only=True):
    """One measurement of one kernel, over all its launches in one profile."""

    key: KernelKey  # of which kernel
    name: str  # readable name
    measured_ns: int  # when, since 1970
    profile: str | None  # path of the profile; None when it came from no file
    session: str  # what all kernels of one reading of one profile share; measurements of one session are variants, not one another's past
    latency_samples: int | None  # of all samples, those without issue; None when unknown
    advice: tuple[RememberedAdvice, ...]  # in the order of suggestions, a few at most
    commit: Commit | None = None  # what was checked out here when it was measured; None where unknown
    places: tuple[RememberedPlace, ...] = ()  # where it was launched from, where that is known and there are several


class Run(Struct, frozen=True, kw_only=True):
    """A measurement as it is kept."""

    run_id: int  # what commands call it by (``@12``); never given twice
    measurement: Measurement  # what was measured
    recorded_ns: int  # when it was first read, since 1970
    is_baseline: bool  # pinned, as what later ones are compared with
    number: int = 1  # among the runs of its kernel, by the time they were measured; the oldest is 1


class RememberedFile(Struct, frozen=True, kw_only=True):
    """A file with lines of a kernel."""

    compiled_path: str  # as the compiler wrote it
    local_path: str | None  # the file here, links resolved; None when it was not found
    text: str | None  # as it was measured; None when nobody knows, or it is not ours to keep
    read_ns: int  # until when the file is known to have held the text, since 1970: when it was read, or for a copy in the profile, when that was made

    @property
    def identity(self) -> str:
        """Name of the file in every measurement: its local path, else as compiled."""
        return self.local_path or self.compiled_path


class RememberedLine(Struct, frozen=True, kw_only=True):
    """Samples of one line."""

    file: str  # as compiled
    line: int  # 1-based
    samples: int  # with this line anywhere in their inline chain
    latency_samples: int | None  # of these, without issue; None when unknown
    called_samples: float  # estimate for functions called from here, not contained in ``samples``
    # stalls that would go if this line were free, wherever they were taken; None where nobody was blamed
    caused_samples: float | None
    reason: str  # most frequent reason among ``samples``; empty without samples


class RememberedLines(Struct, frozen=True, kw_only=True):
    """The hottest lines of a measurement and the files they are in."""

    files: tuple[RememberedFile, ...]  # those of the lines, and the one of the kernel's body
    lines: tuple[RememberedLine, ...]  # hottest first
    is_whole: bool  # every line with samples is among them


class Recording(Struct, frozen=True, kw_only=True):
    """A measurement on its way into the history."""

    measurement: Measurement  # what was measured
    identity: str  # the same for every reading of the same measurement
    content: RememberedLines  # its lines and files


class RunChange(MeasuredChange, frozen=True, kw_only=True):
    """Two measurements of one kernel."""

    before: Run  # the earlier one
    after: Run  # the later one
    # line after → what became of it, under the file's local path where it has one; only lines one of the two keeps samples of. Empty, as ``gone`` is,
    # where one of the two has no samples, or they did not do the same work.
    lines: Mapping[Place, PartChange]
    gone: tuple[PartChange, ...]  # lines before that are not there any more, largest first
    # where it was launched from, and the mean times of the launches from there, before and after, in ns; None where nothing was launched from it.
    # Empty where one of the two knows of one place only.
    places: tuple[tuple[str, float | None, float | None], ...] = ()


class KernelHistory(Struct, frozen=True, kw_only=True):
    """A kernel's past, as editors keep it."""

    run: Run  # the measurement that is shown
    # since the last one before it on the same GPU that did the same work, or where none did, since the last one; None when there is none
    previous: RunChange | None = None
    baseline: RunChange | None = None  # since the pinned one; None when none is pinned, or it is this one
    run_count: int = 1  # measurements of this kernel on this GPU, this one included
    # the GPU of the latest earlier measurement, where there is none on this one; None otherwise
    other_device: str | None = None
    course: TimeCourse | None = None  # the last runs up to this one; None where this is the first

    @property
    def is_baseline(self) -> bool:
        """Whether the shown measurement is the pinned one."""
        return self.run.is_baseline

    def find_line_change(self, place: Place) -> PartChange | None:
        """Change of a line since the last measurement; None when unknown."""
        return None if self.previous is None else self.previous.lines.get(place)


class RunFilter(Struct, frozen=True, kw_only=True):
    """Filter of runs; the default lists all."""

    paths: tuple[str, ...] = ()  # home or profile is one of these, or below it; empty for any
    name: str | None = None  # part of the kernel's name; None for any


ALL_RUNS = RunFilter()


class HistoryLimits(Struct, frozen=True, kw_only=True):
    """Limits of the database."""

    database_bytes: int = 64 << 20  # of the whole file; pinned runs are kept even beyond it
    runs_per_kernel: int = 200  # of one kernel on one GPU
    lines_per_run: int = 400  # hottest lines of one measurement
    source_bytes: int = 2 << 20  # longest source text that is kept


DEFAULT_LIMITS = HistoryLimits()

FILE_NAME = "history.db"


def find_database() -> Path:
    """Path of the user's history: in the folder named by the environment, else where the platform keeps data."""
    return find_data_folder() / FILE_NAME


def measure_bytes(path: Path) -> int | None:
    """Bytes of a history on disk, with its write-ahead log; None without one."""
    sizes = []
    for file in (path, Path(f"{os.path.realpath(path)}-wal")):
        with contextlib.suppress(OSError):
            sizes.append(file.stat().st_size)
    return sum(sizes) if sizes else None
