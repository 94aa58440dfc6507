"""The runs of each kernel as a list, with what changed from one to the next."""

from collections.abc import Iterator

from msgspec import Struct

from gpa_lsp.report.changes import MeasuredChange, compare_measurements
from gpa_lsp.report.history.comparing import choose_comparable
from gpa_lsp.report.history.model import KernelKey, Run, RunFilter
from gpa_lsp.report.history.store import History

# Predecessors that are looked at for one of the same work.
_MOST_STEPS = 24

RunTime = tuple[Run, MeasuredChange]  # An earlier run, and what became of the time since


class RunRow(Struct, frozen=True, kw_only=True):
    """A run in its list."""

    run: Run  # the run
    # beside the last one before it that did the same work, or where none did, the last one; None where there is none
    previous: RunTime | None
    baseline: RunTime | None  # beside the pinned one; None where none is, or it is this one


class KernelRuns(Struct, frozen=True, kw_only=True):
    """The runs of one kernel on one GPU."""

    key: KernelKey  # which kernel
    name: str  # readable name, of the newest run
    rows: tuple[RunRow, ...]  # newest first, as many as were asked for
    run_count: int  # runs that match, shown or not


def build_overview(history: History, wanted: RunFilter, most_runs: int | None) -> tuple[KernelRuns, ...]:
    """The runs that match, by kernel; the kernel with the newest run first.

    Args:
        history: open.
        wanted: which runs.
        most_runs: shown per kernel; None for all.

    Raises:
        InputError: the history cannot be read.
    """
    by_kernel: dict[KernelKey, list[Run]] = {}
    for run in history.list_runs(wanted):
        by_kernel.setdefault(run.measurement.key, []).append(run)
    overview = []
    for key, runs in by_kernel.items():
        rows = tuple(
            RunRow(
                run=run,
                previous=_judge(_find_previous(history, run), run),
                baseline=_judge(history.find_baseline_of(run), run),
            )
            for run in runs[:most_runs]
        )
        overview.append(KernelRuns(key=key, name=runs[0].measurement.name, rows=rows, run_count=len(runs)))
    return tuple(overview)


def _judge(before: Run | None, after: Run) -> RunTime | None:
    if before is None or before.run_id == after.run_id:
        return None
    return before, compare_measurements(before.measurement, after.measurement)


def _find_previous(history: History, run: Run) -> Run | None:
    found = choose_comparable(run, _walk_back(history, run))
    return None if found is None else found[0]


def _walk_back(history: History, run: Run) -> Iterator[Run]:
    for _ in range(_MOST_STEPS):
        previous = history.find_previous(run)
        if previous is None:
            return
        yield previous
        run = previous
