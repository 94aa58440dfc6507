"""Record a kernel and say what changed: what a server's worker process and the command line do with every profile they read."""

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from gpa_lsp.foundation.errors import GpaError, Problem, ProblemSeverity
from gpa_lsp.report.history.comparing import choose_comparable
from gpa_lsp.report.history.courses import MOST_COURSE_RUNS, build_course, make_course
from gpa_lsp.report.history.model import KernelHistory, Run, RunChange
from gpa_lsp.report.time_course import TimeCourse

if TYPE_CHECKING:  # a Python without SQLite must do without memory, not without everything else
    from gpa_lsp.report.history.recording import Surroundings
    from gpa_lsp.report.history.store import History
    from gpa_lsp.report.model import KernelReport

_LOG = logging.getLogger(__name__)

_LEAST_LINE_RATIO = 0.002  # Of the kernel's samples, before or after

Result = TypeVar("Result")


def remember_kernels(
    history: "History", kernels: "Iterable[tuple[KernelReport, Surroundings]]"
) -> tuple[KernelHistory | None, ...]:
    """Record the kernels of one profile, and compare each with its past.

    All are recorded before the first is compared: whether a kernel is the only instance of its template is seen from the others.

    Args:
        history: open.
        kernels: with their embedded sources and their instructions, and where and when they were read.

    Returns:
        What changed, for each; None for a kernel that was not measured.

    Raises:
        InputError: the history cannot be written.
    """
    from gpa_lsp.report.history.recording import build_recording, is_measured

    runs = [
        history.record(build_recording(kernel, surroundings, history.limits)) if is_measured(kernel) else None
        for kernel, surroundings in kernels
    ]
    return tuple(None if run is None else compare_with_past(history, run) for run in runs)


def compare_with_past(history: "History", run: Run) -> KernelHistory:
    """What changed until a run, since the last of the same work and since the baseline; of the lines, those with a part of the kernel worth a word.

    Raises:
        InputError: the history cannot be read.
    """
    earlier = history.list_predecessors(run, MOST_COURSE_RUNS - 1)
    previous, _ = choose_comparable(run, earlier) or (None, False)
    baseline = history.find_baseline_of(run)
    is_own = baseline is not None and baseline.run_id == run.run_id
    since_previous = None if previous is None else _keep_notable_lines(compare_recorded(history, previous, run))
    since_baseline = None
    if baseline is not None and not is_own:
        known = since_previous if previous is not None and previous.run_id == baseline.run_id else None
        since_baseline = known or _keep_notable_lines(compare_recorded(history, baseline, run))
    return KernelHistory(
        run=run,
        previous=since_previous,
        baseline=since_baseline,
        run_count=history.count_runs(run.measurement.key),
        other_device=history.find_other_device(run) if previous is None else None,
        course=None if previous is None else make_course(history, run, earlier),
    )


def find_courses(
    kernels: "Sequence[KernelReport]", path: Path | None = None, most_runs: int = MOST_COURSE_RUNS
) -> dict[int, TimeCourse]:
    """The past of kernels that were read without being recorded now: nothing is written, and no history is begun.

    Args:
        kernels: of a report.
        path: the database; None for the user's.
        most_runs: of each kernel.

    Returns:
        Position of the kernel → its runs up to this one; kernels that were not recorded, or not measured before, are left out.

    Raises:
        InputError: the history cannot be read.
    """
    from gpa_lsp.report.history.location import find_database
    from gpa_lsp.report.history.recording import identify
    from gpa_lsp.report.history.rows import make_storable
    from gpa_lsp.report.history.store import History

    path = path or find_database()
    if not path.is_file():
        return {}
    courses: dict[int, TimeCourse] = {}
    with History.open(path) as history:
        for position, kernel in enumerate(kernels):
            run = history.find_recorded(make_storable(kernel.mangled_name), identify(kernel))
            course = None if run is None else build_course(history, run, most_runs)
            if course is not None and len(course.runs) > 1:
                courses[position] = course
    return courses


def _keep_notable_lines(change: RunChange) -> RunChange:
    """The change without lines nobody would ask about: a server keeps it for every kernel."""
    notable = {
        place: line
        for place, line in change.lines.items()
        if max(line.before_ratio, line.after_ratio) >= _LEAST_LINE_RATIO
    }
    return replace(change, lines=notable)


def compare_recorded(history: "History", before: Run, after: Run) -> RunChange:
    """Lay two runs side by side.

    Raises:
        InputError: the history cannot be read.
    """
    from gpa_lsp.report.history.comparing import compare_runs

    return compare_runs(before, after, history.read_lines(before), history.read_lines(after))


class KernelMemory:
    """The history as something that may be missing: a home that cannot be written, or a damaged file, costs the past and nothing else.

    The first thing that fails becomes a problem in :attr:`problems`, and from then on nothing is remembered.

    Args:
        path: the database; None for the user's.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._problems: list[Problem] = []
        self._history: History | None = None
        self._history = self._attempt(lambda: _open(path))

    def __enter__(self) -> "KernelMemory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was wrong with the history, each thing once."""
        return (*self._problems, *(self._history.problems if self._history is not None else ()))

    def close(self) -> None:
        """Let go of the file."""
        if self._history is not None:
            self._problems.extend(self._history.problems)
            self._history.close()
            self._history = None

    def remember_all(self, kernels: "Sequence[tuple[KernelReport, Surroundings]]") -> tuple[KernelHistory | None, ...]:
        """Record the kernels of one profile and compare each with its past; None for each where that is not possible."""
        history = self._history
        nothing = (None,) * len(kernels)
        if history is None:
            return nothing
        return self._attempt(lambda: remember_kernels(history, kernels)) or nothing

    def find_source(self, local_path: str, measured_ns: int) -> tuple[str, ...] | None:
        """What a file held when something was measured; None when nobody knows."""
        history = self._history
        if history is None:
            return None
        return self._attempt(lambda: history.find_source(local_path, measured_ns))

    def _attempt(self, work: Callable[[], Result]) -> Result | None:
        try:
            return work()
        except (GpaError, OSError, ImportError) as error:
            _LOG.warning("nothing is remembered any more: %s", error)
            self.close()
            self._problems.append(_make_warning(error))
            return None


def _open(path: Path | None) -> "History":
    from gpa_lsp.report.history.store import History

    return History.open(path)


def _make_warning(error: Exception) -> Problem:
    if isinstance(error, GpaError):
        found = Problem.from_error(error)
        return Problem(
            severity=ProblemSeverity.WARNING,
            message=found.message,
            path=found.path,
            place=found.place,
            remedy=found.remedy,
        )
    return Problem(severity=ProblemSeverity.WARNING, message=f"measurements are not remembered: {error}")
