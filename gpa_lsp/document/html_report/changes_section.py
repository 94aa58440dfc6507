"""What became of a kernel since an earlier profile, for a page."""

from collections.abc import Sequence
from datetime import tzinfo

from msgspec import Struct

from gpa_lsp.document.blocks import Block, Figure, Paragraph, Part, Table, tabulate
from gpa_lsp.document.charts.time_course_chart import build_course_chart
from gpa_lsp.document.comparison_view import (
    VERDICT_WORDS,
    build_changes,
    describe_both_times,
    list_remarks,
)
from gpa_lsp.document.layout import Span, Style, left, right
from gpa_lsp.document.time_course_words import (
    describe_course,
    describe_step,
    format_moment,
    name_commit,
    write_range,
    write_time,
)
from gpa_lsp.foundation.locations import shorten_paths, write_place
from gpa_lsp.foundation.numbers import UNKNOWN, format_count, format_count_of, format_speedup
from gpa_lsp.foundation.prose import say
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.compare import KernelComparison
from gpa_lsp.report.history.model import TimeCourse, TimedRun


class ChangeSection(Struct, frozen=True, kw_only=True):
    """A kernel before and after."""

    brief: str  # for the list of kernels
    speedup: float  # to sort by; 0 where unknown
    tone: str  # ``good``, ``warning`` or empty
    text: str  # time before and after, and the verdict
    range: str  # what may differ besides the code, what the speedup lies between, what limits the kernel, and that stalls are unknown; may be empty
    blocks: Sequence[Block]  # what changed, advice given before, stall reasons, lines


def build_change(found: KernelComparison) -> ChangeSection:
    """The section of one kernel."""
    words, _ = VERDICT_WORDS[found.verdict]
    tone = {Verdict.FASTER: "good", Verdict.SLOWER: "warning"}.get(found.verdict, "")
    blocks: list[Block] = []
    if found.verdict not in (Verdict.SAME_CODE, Verdict.UNKNOWN, Verdict.OTHER_WORK):
        files = shorten_paths({change.name for change in found.lines})
        blocks = build_changes(found, lambda change, line: write_place(files[change.name], line))
    return ChangeSection(
        brief=format_speedup(found.time.speedup) if tone and found.time is not None else words.partition(":")[0],
        speedup=found.time.speedup if found.time is not None else 0.0,
        tone=tone,
        text=f"{describe_both_times(found.verdict, found.time, (found.before.duration_ns, found.after.duration_ns))} {words}".strip(),
        range="; ".join(text for text, _ in list_remarks(found) if text),
        blocks=blocks,
    )


def build_history_section(course: TimeCourse, zone: tzinfo | None = None) -> Part:
    """The past of a kernel: what became of its time, its times over runs, and its runs, newest first; moments are of the user's zone without one."""
    summary = describe_course(course) or say("One run")
    blocks: list[Block] = [_tabulate_runs(course, zone)]
    if len(course.timed) > 1:
        words = f"Time over runs: {summary}"
        chart = build_course_chart(course, words, zone)
        blocks.insert(
            0, Figure(title="Time over runs", words=f"{words}. The table below holds its numbers.", chart=chart)
        )
    hidden = course.run_count - len(course.runs)
    if hidden > 0:
        rest = f"{format_count_of(hidden, 'run')} more, older or of another size: gpa-lsp history --limit 0"
        blocks.append(Paragraph(text=rest, style=Style.DIM))
    return Part(title="History", summary=summary, blocks=blocks)


def _tabulate_runs(course: TimeCourse, zone: tzinfo | None) -> Table:
    def show_step(run: TimedRun) -> Span:
        style = Style.WARNING if run.is_regression else Style.NOTE if run.is_gain else Style.PLAIN
        mark = "▲ " if run.is_regression else "▼ " if run.is_gain else ""
        return f"{mark}{describe_step(run)}", style

    return tabulate(
        reversed(course.runs),
        [
            (right("run"), lambda run: f"{run.number}{' (baseline)' if run.is_baseline else ''}"),
            (left("measured"), lambda run: format_moment(run.measured_ns, zone)),
            (right("time"), lambda run: UNKNOWN if run.time is None else write_time(course, run.time)),
            (left("range"), lambda run: (write_range(course, run), Style.DIM)),
            (right("launches"), lambda run: format_count(run.launch_count) if run.launch_count else UNKNOWN),
            (left("since the run before"), show_step),
            (left("commit"), lambda run: (name_commit(run.commit), Style.DIM if run.commit is None else Style.PLAIN)),
        ],
        "Runs",
    )
