"""Measurements of a kernel one after the other, as a picture of its time needs them."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.foundation.figures import Spread
from gpa_lsp.foundation.prose import NOTHING
from gpa_lsp.report.changes import compare_measurements, measure_range
from gpa_lsp.report.history.comparing import choose_comparable
from gpa_lsp.report.history.model import Measurement, Run, RunFilter
from gpa_lsp.report.time_course import TimeCourse, TimedRun

if TYPE_CHECKING:  # a Python without SQLite must do without memory, not without everything else
    from gpa_lsp.report.history.store import History

MOST_COURSE_RUNS = 24  # Of a kernel: what a small picture can hold, and a server keep for each


class KernelCourse(Struct, frozen=True, kw_only=True):
    """A kernel and what became of its time."""

    newest: Run  # its newest run, which says what it is called and how it is launched
    course: TimeCourse  # its runs up to that one


def build_course(history: "History", run: Run, most: int = MOST_COURSE_RUNS) -> TimeCourse:
    """A run and those before it that did the same work.

    Args:
        most: runs at most, with those that did other work.

    Raises:
        InputError: the history cannot be read.
    """
    return make_course(history, run, history.list_predecessors(run, most - 1))


def make_course(history: "History", run: Run, earlier: Sequence[Run]) -> TimeCourse:
    """Make the course of a run and those of its predecessors, newest first, that did the same work.

    Raises:
        InputError: the history cannot be read.
    """
    return _make_course(history, _choose_chain(run, earlier), len(earlier) + 1)


def build_courses(history: "History", wanted: RunFilter, most: int | None) -> tuple[KernelCourse, ...]:
    """Every kernel that matches, the one with the newest run first. Variants of a kernel in one profile have a course each, and so has each size.

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
        found.append(KernelCourse(newest=run, course=_make_course(history, chain[:most], len(earlier) + 1)))
    return tuple(found)


def _choose_chain(run: Run, earlier: Sequence[Run]) -> list[Run]:
    """A run, the one to compare it with, the one to compare that with, and so on."""
    chain, rest = [run], list(earlier)
    while (found := choose_comparable(chain[-1], rest)) is not None and found[1]:
        chain.append(found[0])
        rest = rest[rest.index(found[0]) + 1 :]
    return chain


def _make_course(history: "History", chain: Sequence[Run], looked_at: int) -> TimeCourse:
    """Make a course of some runs, newest first, that were chosen from so many."""
    measurements = [run.measurement for run in chain]
    unit = _choose_unit(measurements)
    timed = [
        _make_timed(run, None if position + 1 == len(chain) else chain[position + 1].measurement, unit)
        for position, run in enumerate(chain)
    ]
    return TimeCourse(
        unit=unit,
        runs=tuple(reversed(timed)),
        run_count=max(looked_at, history.count_runs(chain[0].measurement.key)),
    )


def _choose_unit(measurements: Sequence[Measurement]) -> str:
    """Time on the clock, unless only cycles are known of every run."""
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
    """The time per launch; what is not a positive time says nothing."""
    spread = measurement.times.cycles if unit == "cycles" else measurement.times.ns
    if unit == "ns" and spread is None and measurement.duration_ns is not None:
        spread = Spread(count=1, mean=measurement.duration_ns, minimum=None, maximum=None, standard_deviation=None)
    return spread if spread is not None and spread.mean > 0 else None
