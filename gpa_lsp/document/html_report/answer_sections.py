"""Answers of the analyses for a page, from the closed vocabulary alone: an analysis that is new needs nothing here."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.document.answer_text import (
    describe_chart,
    describe_mark,
    describe_missing,
    describe_movement,
    describe_share,
)
from gpa_lsp.document.charts.answer_chart import build_answer_chart
from gpa_lsp.document.html_report.addresses import KernelAddresses
from gpa_lsp.document.html_report.tables import Cell, Meter, PageTable, convert_answer_table, convert_bar
from gpa_lsp.document.page.frame import render_prose
from gpa_lsp.foundation.locations import shorten_paths, write_place
from gpa_lsp.foundation.numbers import format_count

_MOST_MARKS = 20  # Shown in the table below an answer; all of them stand on their lines


class FindingItem(Struct, frozen=True, kw_only=True):
    """A finding: its sentence, its share of the kernel (may be empty), what to do (may be empty), and its weight's name."""

    text: Markup
    share: str
    remedy: Markup
    weight: str


class ChartItem(Struct, frozen=True, kw_only=True):
    """A chart: its number among the kernel's, its heading, and what it shows in words."""

    number: str
    title: str
    words: str


class AnswerSection(Struct, frozen=True, kw_only=True):
    """One answer."""

    name: str  # the analysis'
    title: str  # heading
    summary: Markup  # one sentence
    is_known: bool  # something could be said
    findings: Sequence[FindingItem]  # most important first
    meters: Sequence[Meter]  # bars
    charts: Sequence[ChartItem]  # in order
    tables: Sequence[PageTable]  # in order; the marks last
    missing: Sequence[Markup]  # sentences about what could not be known
    movements: Sequence[str]  # how the points on the roofline chart would move


def build_section(
    answer: Answer, addresses: KernelAddresses | None, charts: dict[str, Mapping[str, Any]]
) -> AnswerSection:
    """An answer as a section.

    Args:
        addresses: of the kernel's places; None for answers that belong to no kernel of the page, which have no marks.
    """
    link = None if addresses is None else addresses.place
    items = []
    for chart in answer.charts:
        number = f"chart{len(charts)}"
        spec = build_answer_chart(chart, width=None)
        charts[number] = {key: value for key, value in spec.items() if key != "title"}  # the page has a heading
        items.append(ChartItem(number=number, title=chart.title, words=describe_chart(chart)))
    tables = [convert_answer_table(table) for table in answer.tables]
    if answer.marks and addresses is not None:
        tables.append(_tabulate_marks(answer, addresses))
    return AnswerSection(
        name=answer.analysis,
        title=answer.title,
        summary=render_prose(answer.summary, link),
        is_known=answer.is_known,
        findings=[
            FindingItem(
                text=render_prose(finding.text, link),
                share=describe_share(finding),
                remedy=render_prose(finding.remedy, link),
                weight=finding.weight.value,
            )
            for finding in answer.findings
        ],
        meters=[convert_bar(bar) for bar in answer.bars],
        charts=items,
        tables=tables,
        missing=[render_prose(describe_missing(missing), link) for missing in answer.missing],
        movements=[describe_movement(movement) for movement in answer.movements],
    )


def _tabulate_marks(answer: Answer, addresses: KernelAddresses) -> PageTable:
    shown = answer.marks[:_MOST_MARKS]
    names = shorten_paths({mark.file for mark in shown if mark.file is not None})
    rows = []
    for mark in shown:
        if mark.file is None:
            place = Cell(text=f"0x{mark.pc_offset:x}", tone="code")
        else:
            where = write_place(names[mark.file], mark.line)
            place = Cell(text=where, tone="code", link=addresses.line(mark.file, mark.line))
        rows.append([place, Cell(text=describe_mark(mark))])
    rest = len(answer.marks) - len(shown)
    note = f"{format_count(rest)} more are shown on their lines below." if rest else ""
    return PageTable(title="By line", columns=[("line", False), ("what", False)], rows=rows, note=note)
