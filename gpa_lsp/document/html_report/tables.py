"""Tables and bars for a page: text only, numbers already written; the templates add nothing but elements."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from gpa_lsp.diagnosis.analyses import answers
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.document import kernel_tables
from gpa_lsp.document.answer_text import (
    describe_chart,
    describe_mark,
    describe_missing,
    describe_movement,
    describe_share,
)
from gpa_lsp.document.charts.answer_chart import build_answer_chart
from gpa_lsp.document.html_report.addresses import KernelAddresses
from gpa_lsp.document.layout import Align, Style, clamp_ratio
from gpa_lsp.document.page import render_prose
from gpa_lsp.foundation.locations import shorten_paths, write_place
from gpa_lsp.foundation.numbers import Quantity, format_count, format_count_of, format_quantity

MOST_ROWS = 200  # Of a table; what is beyond is counted below it

FOLDED_FROM = 10  # Rows from which on a table is folded away

_TONES = {
    Style.HOT: "hot",
    Style.WARM: "warm",
    Style.DIM: "dim",
    Style.CODE: "code",
    Style.PATH: "code",
    Style.WARNING: "warning",
    Style.ERROR: "warning",
    Style.TITLE: "strong",
}


class Meter(Struct, frozen=True, kw_only=True):
    """A bar with its number."""

    label: str  # what it is of; may be empty
    ratio: float  # 0 to 1, how far it reaches
    text: str  # the number
    words: str = ""  # the amount behind it; may be empty
    ceiling: float | None = None  # 0 to 1, where a tick stands; None for none
    tone: str = ""  # ``high``, ``faint`` or empty
    title: str = ""  # explained in a sentence; may be empty


class Cell(Struct, frozen=True, kw_only=True):
    """A cell."""

    text: str  # what stands in it
    tone: str = ""  # class of its looks; may be empty
    link: str = ""  # fragment it leads to, with its ``#``; empty for none


class PageTable(Struct, frozen=True, kw_only=True):
    """A table."""

    title: str  # caption
    columns: Sequence[tuple[str, bool]]  # heading and whether its cells are numbers
    rows: Sequence[Sequence[Cell]]  # each as long as ``columns``
    current_row: int | None = None  # row that is the kernel as it is now; None for none
    note: str = ""  # below it; may be empty

    @property
    def is_folded(self) -> bool:
        """Long enough to be opened on demand."""
        return len(self.rows) >= FOLDED_FROM


def convert_answer_table(table: answers.Table) -> PageTable:
    """A table of an analysis."""
    rows = [
        [Cell(text=format_quantity(value, column.quantity)) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows[:MOST_ROWS]
    ]
    return PageTable(
        title=table.title,
        columns=[(column.name, column.quantity is not Quantity.TEXT) for column in table.columns],
        rows=rows,
        current_row=table.current_row,
        note=_join_notes(table.note, len(table.rows)),
    )


def convert_text_table(table: kernel_tables.Table) -> PageTable:
    """A table of the text report; its bars of characters are left out."""
    kept = [
        number
        for number, column in enumerate(table.columns)
        if not any(row[number][1] is Style.BAR for row in table.rows)
    ]
    rows = [
        [Cell(text=row[number][0], tone=_TONES.get(row[number][1], "")) for number in kept]
        for row in table.rows[:MOST_ROWS]
    ]
    columns = [(table.columns[number].title, table.columns[number].align is Align.RIGHT) for number in kept]
    return PageTable(title=table.title, columns=columns, rows=rows, note=_join_notes("", len(table.rows)))


def convert_bar(bar: answers.Bar) -> Meter:
    """A bar of an analysis."""
    return Meter(
        label=bar.label,
        ratio=clamp_ratio(bar.ratio),
        text=format_quantity(bar.ratio, Quantity.RATIO),
        words=bar.words,
        ceiling=clamp_ratio(bar.ceiling_ratio) if bar.ceiling_ratio < 1 else None,
    )


def _join_notes(note: str, count: int) -> str:
    if count <= MOST_ROWS:
        return note
    left_out = f"{format_count_of(count - MOST_ROWS, 'more row')} in gpa-lsp report --format json."
    return f"{note} {left_out}".strip()


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
