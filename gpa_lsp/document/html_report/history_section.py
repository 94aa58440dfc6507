"""A kernel's time over its runs, for a page: one sentence, a chart and a list of the runs."""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from msgspec import Struct

from gpa_lsp.document.charts.time_course_chart import build_course_chart
from gpa_lsp.document.html_report.tables import Cell, PageTable
from gpa_lsp.document.moments import format_moment
from gpa_lsp.document.time_course_words import describe_course, describe_step, name_commit, write_range, write_time
from gpa_lsp.foundation.numbers import UNKNOWN, format_count, format_count_of
from gpa_lsp.foundation.prose import Sentence, say
from gpa_lsp.report.history.model import TimeCourse, TimedRun

_COLUMNS = (
    ("run", True),
    ("measured", False),
    ("time", True),
    ("range", False),
    ("launches", True),
    ("since the run before", False),
    ("commit", False),
)


class HistorySection(Struct, frozen=True, kw_only=True):
    """The past of a kernel."""

    summary: Sentence  # what became of its time, one sentence
    number: str  # of the chart among the kernel's; empty where fewer than two runs have a time
    words: str  # what the chart shows, for those who do not see it
    table: PageTable  # its runs, newest first
    rest: str  # how many runs are not listed; may be empty


def build_history_section(
    course: TimeCourse, charts: dict[str, Mapping[str, Any]], zone: tzinfo | None = None
) -> HistorySection:
    """The section.

    Args:
        zone: of moments; None for the user's.
    """
    summary = describe_course(course) or say("One run")
    number = ""
    if len(course.timed) > 1:
        number = f"chart{len(charts)}"
        charts[number] = build_course_chart(course, f"Time over runs: {summary}", zone)
    hidden = course.run_count - len(course.runs)
    return HistorySection(
        summary=summary,
        number=number,
        words=f"Time over runs: {summary}. The table below holds its numbers.",
        table=PageTable(
            title="Runs", columns=_COLUMNS, rows=[_make_row(course, run, zone) for run in reversed(course.runs)]
        ),
        rest=f"{format_count_of(hidden, 'run')} more, older or of another size: gpa-lsp history --limit 0"
        if hidden > 0
        else "",
    )


def _make_row(course: TimeCourse, run: TimedRun, zone: tzinfo | None) -> list[Cell]:
    tone = "warning" if run.is_regression else "good" if run.is_gain else ""
    mark = "▲ " if run.is_regression else "▼ " if run.is_gain else ""
    commit = name_commit(run.commit)
    return [
        Cell(text=f"{run.number}{' (baseline)' if run.is_baseline else ''}"),
        Cell(text=format_moment(run.measured_ns, zone)),
        Cell(text=UNKNOWN if run.time is None else write_time(course, run.time)),
        Cell(text=write_range(course, run), tone="dim"),
        Cell(text=format_count(run.launch_count) if run.launch_count else UNKNOWN),
        Cell(text=f"{mark}{describe_step(run)}", tone=tone),
        Cell(text=commit, tone="dim" if run.commit is None else ""),
    ]
