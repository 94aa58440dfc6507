"""What became of a kernel since an earlier profile, for a page."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from msgspec import Struct

from gpa_lsp.document.charts.time_course_chart import build_course_chart
from gpa_lsp.document.comparison_text import (
    FATE_WORDS,
    LEAST_CHANGE_RATIO,
    VERDICT_WORDS,
    describe_both_times,
    describe_limiters,
    describe_range,
    describe_signs,
    list_differences,
    name_changed_line,
)
from gpa_lsp.document.html_report.tables import Cell, PageTable
from gpa_lsp.document.time_course_words import (
    describe_course,
    describe_step,
    format_moment,
    name_commit,
    write_range,
    write_time,
)
from gpa_lsp.foundation.locations import shorten_paths, write_place
from gpa_lsp.foundation.numbers import UNKNOWN, format_count, format_count_of, format_percent, format_speedup
from gpa_lsp.foundation.prose import Sentence, say
from gpa_lsp.report.changes import PartChange, Verdict
from gpa_lsp.report.compare import KernelComparison
from gpa_lsp.report.history.model import TimeCourse, TimedRun

_MOST_PARTS = 10


class ChangeSection(Struct, frozen=True, kw_only=True):
    """A kernel before and after."""

    brief: str  # for the list of kernels
    speedup: float  # to sort by; 0 where unknown
    tone: str  # ``good``, ``warning`` or empty
    text: str  # time before and after, and the verdict
    range: str  # what may differ besides the code, what the speedup lies between, what limits the kernel, and that stalls are unknown; may be empty
    tables: Sequence[PageTable]  # what changed, advice given before, stall reasons, lines


def build_change(found: KernelComparison) -> ChangeSection:
    """The section of one kernel."""
    words, _ = VERDICT_WORDS[found.verdict]
    tone = {Verdict.FASTER: "good", Verdict.SLOWER: "warning"}.get(found.verdict, "")
    tables: list[PageTable] = []
    if found.verdict not in (Verdict.SAME_CODE, Verdict.UNKNOWN, Verdict.OTHER_WORK):
        files = shorten_paths({change.name for change in found.lines})
        tables = [
            _tabulate_differences(found),
            _tabulate_outcomes(found),
            _tabulate_parts("By stall reason", found.reasons, [change.name for change in found.reasons]),
            _tabulate_parts("By line", found.lines, [_name_line(change, files) for change in found.lines]),
        ]
    return ChangeSection(
        brief=format_speedup(found.time.speedup) if tone and found.time is not None else words.partition(":")[0],
        speedup=found.time.speedup if found.time is not None else 0.0,
        tone=tone,
        text=f"{describe_both_times(found.verdict, found.time, (found.before.duration_ns, found.after.duration_ns))} {words}".strip(),
        range="; ".join(_list_remarks(found)),
        tables=[table for table in tables if table.rows],
    )


def _list_remarks(found: KernelComparison) -> Iterator[str]:
    if found.note:
        yield found.note
    if found.verdict in (Verdict.SAME_CODE, Verdict.OTHER_WORK):
        return
    if found.time is not None:
        yield describe_range(found.time)
    yield from (remark for remark in (describe_limiters(found), found.no_stalls) if remark)


def _tabulate_differences(found: KernelComparison) -> PageTable:
    rows = [[Cell(text=text) for text in row] for row in list_differences(found.differences)]
    return PageTable(title="What changed", columns=[("", False), ("before", True), ("after", True)], rows=rows)


def _tabulate_outcomes(found: KernelComparison) -> PageTable:
    columns = [
        ("advice", False),
        ("", False),
        ("estimated", True),
        ("achieved", True),
        ("its stalls before", True),
        ("now", True),
        ("as seen by", False),
    ]
    rows = [
        [
            Cell(text=outcome.advice.title),
            Cell(text=FATE_WORDS[outcome.fate]),
            Cell(text=format_speedup(outcome.estimate)),
            Cell(text=UNKNOWN if outcome.achieved is None else format_speedup(outcome.achieved)),
            Cell(text=format_percent(outcome.before_ratio)),
            Cell(text=format_percent(outcome.after_ratio)),
            Cell(text=describe_signs(outcome)),
        ]
        for outcome in found.outcomes
    ]
    note = "Stalls as shares of the samples of their report; achieved by all changes together."
    return PageTable(title="Advice given before", columns=columns, rows=rows, note=note)


def _tabulate_parts(title: str, changes: Sequence[PartChange], names: Sequence[str]) -> PageTable:
    """Shares before and after; unchanged parts are left out."""
    rows = [
        [
            Cell(text=name, tone="code"),
            Cell(text=format_percent(part.before_ratio)),
            Cell(text=format_percent(part.after_ratio)),
        ]
        for part, name in zip(changes, names, strict=True)
        if abs(part.after_ratio - part.before_ratio) >= LEAST_CHANGE_RATIO
    ]
    columns = [("", False), ("share before", True), ("share after", True)]
    return PageTable(title=title, columns=columns, rows=rows[:_MOST_PARTS])


def _name_line(change: PartChange, files: dict[str, str]) -> str:
    return name_changed_line(change, lambda line: write_place(files[change.name], line))


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
