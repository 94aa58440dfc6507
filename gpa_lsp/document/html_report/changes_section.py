"""What became of a kernel since an earlier profile, for a page."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gpa_lsp.document.changes_text import (
    LEAST_CHANGE_RATIO,
    VERDICT_WORDS,
    describe_both_times,
    describe_range,
    name_changed_line,
)
from gpa_lsp.document.comparison_text import FATE_WORDS, describe_limiters, describe_signs, list_differences
from gpa_lsp.document.html_report.tables import Cell, PageTable
from gpa_lsp.foundation.locations import shorten_paths, write_place
from gpa_lsp.foundation.numbers import UNKNOWN, format_percent, format_speedup
from gpa_lsp.report.changes import PartChange, Verdict
from gpa_lsp.report.compare import KernelComparison

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
