"""A kernel's past: recording measurements, and comparing them with earlier ones.

Servers' worker processes and the command line do this with every profile they read. A Python without SQLite must do without memory, not without
everything else: what needs it is imported where it is used.
"""

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec.structs
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.errors import GpaError, Problem
from gpa_lsp.foundation.figures import Spread
from gpa_lsp.foundation.prose import NOTHING
from gpa_lsp.report.changes import (
    MeasuredChange,
    PartChange,
    Place,
    Verdict,
    compare_lines,
    compare_measurements,
    measure_range,
    order_changes,
)
from gpa_lsp.report.history.model import (
    KernelHistory,
    KernelKey,
    Measurement,
    RememberedFile,
    RememberedLines,
    RememberedPlace,
    Run,
    RunChange,
    RunFilter,
    TimeCourse,
    TimedRun,
    find_database,
)
from gpa_lsp.report.line_map import map_edited_texts

if TYPE_CHECKING:
    from gpa_lsp.report.history.recording import Surroundings
    from gpa_lsp.report.history.store import History
    from gpa_lsp.report.model import KernelReport

_LOG = logging.getLogger(__name__)

MOST_COURSE_RUNS = 24  # Of a kernel: what a small picture can hold, and a server keep for each
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
    """Change of a run since the last of the same work and since the baseline, with notable lines only.

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
        course=None if previous is None else _make_course(history, _choose_chain(run, earlier), len(earlier) + 1),
    )


def find_courses(kernels: "Sequence[KernelReport]", path: Path | None = None) -> dict[int, TimeCourse]:
    """Courses of kernels from their recorded runs; nothing is written, and no history is begun.

    Args:
        kernels: of a report.
        path: the database; None for the user's.

    Returns:
        Position of the kernel → its runs up to this one; kernels that were not recorded, or not measured before, are left out.

    Raises:
        InputError: the history cannot be read.
    """
    from gpa_lsp.report.history.recording import identify
    from gpa_lsp.report.history.rows import make_storable
    from gpa_lsp.report.history.store import History

    path = path or find_database()
    if not path.is_file():
        return {}
    courses: dict[int, TimeCourse] = {}
    with History(path) as history:
        for position, kernel in enumerate(kernels):
            run = history.find_recorded(make_storable(kernel.mangled_name), identify(kernel))
            course = None if run is None else build_course(history, run, MOST_COURSE_RUNS)
            if course is not None and len(course.runs) > 1:
                courses[position] = course
    return courses


def _keep_notable_lines(change: RunChange) -> RunChange:
    """The change without lines of negligible share, since a server keeps it for every kernel."""
    notable = {
        place: line
        for place, line in change.lines.items()
        if max(line.before_ratio, line.after_ratio) >= _LEAST_LINE_RATIO
    }
    return replace(change, lines=notable)


def compare_recorded(history: "History", before: Run, after: Run) -> RunChange:
    """Compare two runs.

    Raises:
        InputError: the history cannot be read.
    """
    return compare_runs(before, after, history.read_lines(before), history.read_lines(after))


class KernelMemory:
    """The history as an optional part: if it fails, only the past is missing.

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

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems with the history, each once."""
        return (*self._problems, *(self._history.problems if self._history is not None else ()))

    def close(self) -> None:
        """Close the file."""
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
        """Lines of a file when something was measured; None when unknown."""
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

    return History(path)


def _make_warning(error: Exception) -> Problem:
    if isinstance(error, GpaError):
        found = Problem.from_error(error)
        return Problem.warning(found.message, found.remedy, path=found.path, place=found.place)
    return Problem.warning(f"measurements are not remembered: {error}")


def choose_comparable(run: Run, earlier: Iterable[Run]) -> tuple[Run, bool] | None:
    """The run to compare with and whether the two are comparable: the last of the same work, else of possibly the same, else the last; or None."""
    first = possible = None
    for one in earlier:
        is_same_work = compare_measurements(one.measurement, run.measurement).is_same_work
        if is_same_work:
            return one, True
        first = first or one
        if is_same_work is None:
            possible = possible or one
    return (possible, True) if possible is not None else None if first is None else (first, False)


def compare_runs(before: Run, after: Run, before_content: RememberedLines, after_content: RememberedLines) -> RunChange:
    """Compare two runs by their measurements and lines."""
    old, new = before.measurement, after.measurement
    change = compare_measurements(old, new)
    lines, gone = _compare_lines(before, after, before_content, after_content) if change.has_stalls else ({}, ())
    return RunChange(
        before=before,
        after=after,
        lines=lines,
        gone=gone,
        places=() if change.verdict is Verdict.OTHER_WORK else _compare_places(old.places, new.places),
        **msgspec.structs.asdict(change),
    )


def _compare_places(
    before: Sequence[RememberedPlace], after: Sequence[RememberedPlace]
) -> tuple[tuple[str, float | None, float | None], ...]:
    """Call sites paired by name, or where a line moved, by a function that has no other call site."""
    if not before or not after:
        return ()
    old = {place.name: place for place in before}
    new_names = {place.name for place in after}
    free = [place for place in before if place.name not in new_names]
    found: list[tuple[str, float | None, float | None]] = []
    taken = set()
    for place in after:
        match = old.get(place.name)
        if match is None:
            moved = [one for one in free if one.function and one.function == place.function]
            match = moved[0] if len(moved) == 1 else None
        if match is not None:
            taken.add(match.name)
        found.append((place.name, None if match is None else match.duration_ns, place.duration_ns))
    return (*found, *((one.name, one.duration_ns, None) for one in before if one.name not in taken))


def _compare_lines(
    before: Run, after: Run, before_content: RememberedLines, after_content: RememberedLines
) -> tuple[dict[Place, PartChange], tuple[PartChange, ...]]:
    """Line after → its change, and lines that are gone. Files whose text is unknown on either side are left out."""
    digest = before.measurement.code_digest
    same_code = digest is not None and digest == after.measurement.code_digest
    old_files, new_files = ({one.identity: one for one in side.files} for side in (before_content, after_content))
    changes: dict[Place, PartChange] = {}
    gone: list[PartChange] = []
    for identity in dict.fromkeys((*new_files, *old_files)):
        old, new = old_files.get(identity), new_files.get(identity)
        old_lines = _list_costs(before_content, identity, old)
        new_lines = _list_costs(after_content, identity, new)
        partners = _pair_lines(identity, old, new, {*old_lines, *new_lines}, same_code=same_code)
        if partners is None:
            continue
        for change in compare_lines(
            before.measurement,
            after.measurement,
            old_lines,
            new_lines,
            partners,
            are_whole=(before_content.is_whole, after_content.is_whole),
        ):
            if new is None or change.after_line is None:
                gone.append(change)
            else:
                changes[(new.compiled_path, change.after_line)] = change
    return changes, order_changes(gone)


def _list_costs(content: RememberedLines, identity: str, file: RememberedFile | None) -> dict[Place, float]:
    """Line (under the file's identity) → its inclusive and called samples."""
    if file is None:
        return {}
    return {
        (identity, one.line): one.samples + one.called_samples
        for one in content.lines
        if one.file == file.compiled_path
    }


def _pair_lines(
    identity: str, old: RememberedFile | None, new: RememberedFile | None, wanted: Iterable[Place], *, same_code: bool
) -> Mapping[Place, int] | None:
    """Line before → line after, without lines that are gone; None where it cannot be told."""
    if old is None or new is None:
        return {}  # the kernel had, or has, no samples in that file
    if old.text is None or new.text is None:
        return {place: place[1] for place in wanted} if same_code else None
    table = map_edited_texts(old.text, new.text)
    return {(identity, line): partner for line, partner in enumerate(table, 1) if partner}


def build_course(history: "History", run: Run, most: int = MOST_COURSE_RUNS) -> TimeCourse:
    """A run and up to *most* - 1 earlier ones of the same work.

    Raises:
        InputError: the history cannot be read.
    """
    earlier = history.list_predecessors(run, most - 1)
    return _make_course(history, _choose_chain(run, earlier), len(earlier) + 1)


def build_courses(history: "History", wanted: RunFilter, most: int | None) -> tuple[tuple[Run, TimeCourse], ...]:
    """Matching kernels by their newest run, newest first, each with its course of times.

    Variants of a kernel in one profile have a course each, and so has each size.

    Args:
        history: open.
        wanted: which runs.
        most: runs of each kernel at most; None for all.

    Raises:
        InputError: the history cannot be read.
    """
    claimed: set[int] = set()
    found = []
    for run in history.list_runs(wanted):
        if run.run_id in claimed:
            continue
        earlier = history.list_predecessors(run, history.limits.runs_per_kernel)
        same_work = _choose_chain(run, earlier)
        chain = list(itertools.takewhile(lambda one: one.run_id not in claimed, same_work))
        claimed.update(one.run_id for one in chain)  # a past of two variants is shown once
        found.append((run, _make_course(history, chain[:most], len(earlier) + 1)))
    return tuple(found)


def _choose_chain(run: Run, earlier: Sequence[Run]) -> list[Run]:
    """A run, the one to compare it with, the one to compare that with, and so on."""
    chain, rest = [run], list(earlier)
    while (found := choose_comparable(chain[-1], rest)) is not None and found[1]:
        chain.append(found[0])
        rest = rest[rest.index(found[0]) + 1 :]
    return chain


def _make_course(history: "History", chain: Sequence[Run], looked_at: int) -> TimeCourse:
    """Course of some runs (newest first), chosen from *looked_at*."""
    measurements = [run.measurement for run in chain]
    unit = _choose_unit(measurements)
    timed = [
        _make_timed(run, None if position + 1 == len(chain) else chain[position + 1].measurement, unit)
        for position, run in enumerate(chain)
    ]
    is_renamed = len({one.number for one in timed}) < len(timed)  # runs of each name are counted from 1
    if is_renamed:
        timed = [replace(one, number=len(timed) - position) for position, one in enumerate(timed)]
    return TimeCourse(
        unit=unit,
        runs=tuple(reversed(timed)),
        run_count=max(looked_at, history.count_runs(chain[0].measurement.key)),
    )


def _choose_unit(measurements: Sequence[Measurement]) -> str:
    """Unit of a course: ns, unless more runs know cycles."""
    has_ns = [_find_spread(one, "ns") is not None for one in measurements]
    has_cycles = [_find_spread(one, "cycles") is not None for one in measurements]
    return "cycles" if sum(has_cycles) > sum(has_ns) else "ns"


def _make_timed(run: Run, before: Measurement | None, unit: str) -> TimedRun:
    measurement = run.measurement
    spread = _find_spread(measurement, unit)
    low, high = (None, None) if spread is None else measure_range(spread, unit)
    judgement = None if before is None else compare_measurements(before, measurement)
    change = None if judgement is None else judgement.time
    return TimedRun(
        number=run.number,
        measured_ns=measurement.measured_ns,
        time=None if spread is None else spread.mean,
        low=low,
        high=high,
        launch_count=0 if spread is None else spread.count,
        verdict=None if judgement is None else judgement.verdict,
        change_ratio=None if change is None else change.after / change.before - 1,
        note=NOTHING if judgement is None else judgement.note,
        commit=measurement.commit,
        is_baseline=run.is_baseline,
    )


def _find_spread(measurement: Measurement, unit: str) -> Spread | None:
    """Positive time per launch; None where unknown."""
    spread = measurement.times.cycles if unit == "cycles" else measurement.times.ns
    if unit == "ns" and spread is None and measurement.duration_ns is not None:
        spread = Spread(count=1, mean=measurement.duration_ns, minimum=None, maximum=None, standard_deviation=None)
    return spread if spread is not None and spread.mean > 0 else None


RunTime = tuple[Run, MeasuredChange]  # An earlier run, and what became of the time since


class RunRow(Struct, frozen=True, kw_only=True):
    """A row of the list of runs."""

    run: Run  # the run
    # the last one before it that did the same work, or where none did, the last one; None where there is none
    previous: RunTime | None
    baseline: RunTime | None  # the pinned one; None where none is, or it is this one


def build_overview(
    history: "History", wanted: RunFilter, most_runs: int | None
) -> tuple[tuple[tuple[RunRow, ...], int], ...]:
    """Matching runs by kernel, the kernel with the newest run first.

    Args:
        history: open.
        wanted: which runs.
        most_runs: listed of each kernel; None for all.

    Returns:
        For each kernel its runs, newest first, and how many match, listed or not.

    Raises:
        InputError: the history cannot be read.
    """
    by_kernel: dict[KernelKey, list[Run]] = {}
    for run in history.list_runs(wanted):
        by_kernel.setdefault(run.measurement.key, []).append(run)
    return tuple((tuple(_make_row(history, run) for run in runs[:most_runs]), len(runs)) for runs in by_kernel.values())


def _make_row(history: "History", run: Run) -> RunRow:
    previous = choose_comparable(run, history.list_predecessors(run, MOST_COURSE_RUNS))
    baseline = history.find_baseline_of(run)
    if baseline is not None and baseline.run_id == run.run_id:
        baseline = None
    return RunRow(
        run=run,
        previous=None if previous is None else _judge(previous[0], run),
        baseline=None if baseline is None else _judge(baseline, run),
    )


def _judge(before: Run, after: Run) -> RunTime:
    return before, compare_measurements(before.measurement, after.measurement)
