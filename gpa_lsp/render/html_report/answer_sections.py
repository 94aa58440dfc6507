"""Answers of the analyses for a page, from the closed vocabulary alone: an analysis that is new needs nothing here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpa_lsp.analyses.answers import Answer, Missing
from gpa_lsp.render.charts.answer_chart import build_answer_chart, describe_answer_chart
from gpa_lsp.render.html_report.addresses import KernelAddresses
from gpa_lsp.render.html_report.cause_links import describe_mark
from gpa_lsp.render.html_report.tables import Cell, Meter, PageTable, convert_answer_table, convert_bar
from gpa_lsp.render.numbers import format_percent
from gpa_lsp.render.places import shorten_paths

_MOST_MARKS = 20
"""Shown in the table below an answer; all of them stand on their lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingItem:
    """A finding: its sentence, its share of the kernel (may be empty), what to do (may be empty), and its weight's name."""

    text: str
    share: str
    remedy: str
    weight: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartItem:
    """A chart: its number among the kernel's, its heading, and what it shows in words."""

    number: str
    title: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSection:
    """One answer.

    Attributes:
        name: the analysis'.
        title: heading.
        summary: one sentence.
        is_known: something could be said.
        findings: most important first.
        meters: bars.
        charts: in order.
        tables: in order; the marks last.
        missing: sentences about what could not be known.
    """

    name: str
    title: str
    summary: str
    is_known: bool
    findings: Sequence[FindingItem]
    meters: Sequence[Meter]
    charts: Sequence[ChartItem]
    tables: Sequence[PageTable]
    missing: Sequence[str]


def build_section(answer: Answer, addresses: KernelAddresses, charts: dict[str, Mapping[str, Any]]) -> AnswerSection:
    """An answer as a section.

    Args:
        answer: of any analysis.
        addresses: of the kernel's places.
        charts: specifications by number; the answer's are added.
    """
    items = []
    for chart in answer.charts:
        number = f"chart{len(charts)}"
        charts[number] = build_answer_chart(chart, width=None)
        items.append(ChartItem(number=number, title=chart.title, words=describe_answer_chart(chart)))
    tables = [convert_answer_table(table) for table in answer.tables]
    if answer.marks:
        tables.append(_tabulate_marks(answer, addresses))
    return AnswerSection(
        name=answer.analysis,
        title=answer.title,
        summary=answer.summary,
        is_known=answer.is_known,
        findings=[
            FindingItem(
                text=finding.text,
                share="" if finding.share_ratio is None else format_percent(finding.share_ratio),
                remedy=finding.remedy,
                weight=finding.weight.value,
            )
            for finding in answer.findings
        ],
        meters=[convert_bar(bar) for bar in answer.bars],
        charts=items,
        tables=tables,
        missing=[describe_missing(missing) for missing in answer.missing],
    )


def describe_missing(missing: Missing) -> str:
    """What could not be known, and what would tell.

    >>> describe_missing(Missing(what="bytes from DRAM", metrics=("dram__bytes.sum",), section="MemoryWorkloadAnalysis"))
    'bytes from DRAM: not collected; add --metrics dram__bytes.sum or --section MemoryWorkloadAnalysis'
    >>> describe_missing(Missing(what="the trip count", why="the code does not say"))
    'the trip count: the code does not say'
    """
    ways = []
    if missing.metrics:
        names = ",".join(missing.metrics) if missing.needs_all else " or ".join(missing.metrics)
        ways.append(f"--metrics {names}")
    if missing.section:
        ways.append(f"--section {missing.section}")
    if ways:
        return f"{missing.what}: not collected; add {' or '.join(ways)}"
    return f"{missing.what}: {missing.why}" if missing.why else f"{missing.what}: unknown"


def _tabulate_marks(answer: Answer, addresses: KernelAddresses) -> PageTable:
    shown = answer.marks[:_MOST_MARKS]
    names = shorten_paths({mark.file for mark in shown if mark.file is not None})
    rows = []
    for mark in shown:
        if mark.file is None:
            place = Cell(text=f"0x{mark.pc_offset:x}", tone="code")
        else:
            where = f"{names[mark.file]}:{mark.line}"
            place = Cell(text=where, tone="code", link=addresses.line(mark.file, mark.line))
        rows.append([place, Cell(text=describe_mark(mark))])
    rest = len(answer.marks) - len(shown)
    note = f"{rest} more stand on their lines below." if rest else ""
    return PageTable(title="By line", columns=[("line", False), ("what", False)], rows=rows, note=note)
