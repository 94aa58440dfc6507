"""Courses of times as a test writes them down."""

from collections.abc import Mapping, Sequence

from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.history.model import Commit, TimeCourse, TimedRun

NOON_NS = 1_763_726_400_000_000_000
"""2025-11-21 12:00 UTC."""

HOUR_NS = 3_600_000_000_000


def make_commit(number: int, subject: str = "") -> Commit:
    return Commit(digest=f"{number:08x}" * 5, subject=subject)


def make_course(
    times: Sequence[float | None], commits: Mapping[int, Commit] | None = None, *, unit: str = "ns"
) -> TimeCourse:
    """Runs an hour apart, numbered from 1: a change of 5 % or more is one, and a commit stays until the next."""
    runs: list[TimedRun] = []
    commit = None
    for position, time in enumerate(times):
        commit = (commits or {}).get(position, commit)
        before = times[position - 1] if position else None
        change = None if time is None or before is None else time / before - 1
        verdict = Verdict.UNKNOWN if position else None
        if change is not None:
            verdict = Verdict.SLOWER if change > 0.05 else Verdict.FASTER if change < -0.05 else Verdict.NO_CHANGE
        runs.append(
            TimedRun(
                number=position + 1,
                measured_ns=NOON_NS + position * HOUR_NS,
                time=time,
                low=None if time is None else time * 0.98,
                high=None if time is None else time * 1.02,
                launch_count=0 if time is None else 5,
                verdict=verdict,
                change_ratio=change,
                commit=commit,
            )
        )
    return TimeCourse(unit=unit, runs=tuple(runs), run_count=len(runs))
