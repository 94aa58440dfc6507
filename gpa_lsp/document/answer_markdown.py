"""Answers of the analyses as Markdown: for the kernel page of editors and for pull requests."""

from collections.abc import Iterator, Sequence

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Finding, LineMark, Table, Weight
from gpa_lsp.document.answer_text import (
    MOST_MARKS,
    choose_rows,
    describe_chart,
    describe_missing,
    describe_movement,
    describe_share,
    draw_ceiling_bar,
    list_answers,
    show_place,
)
from gpa_lsp.document.layout import count_cells, cut
from gpa_lsp.document.markdown_text import escape_markdown, quote_code, write_cell, write_sentence
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.numbers import Quantity, format_count, format_percent, format_quantity
from gpa_lsp.foundation.prose import join
from gpa_lsp.report.model import KernelReport

MOST_ROWS = 12  # Of a table where the reader set no limit

_BAR_CELLS = 20
_LABEL_CELLS = 32


def render_answers_markdown(
    kernel: KernelReport,
    places: PlaceNames,
    *,
    heading: str = "###",
    max_rows: int = MOST_ROWS,
    brief: bool = False,
) -> Iterator[str]:
    """All answers about a kernel, line by line; nothing where nobody asked.

    Args:
        kernel: whose.
        places: how sources are shown.
        heading: sign in front of each title.
        max_rows: longest table.
        brief: only what was found: no tables, charts, places and movements.
    """
    for answer in list_answers(kernel):
        yield from (
            "",
            *render_answer_markdown(answer, kernel, places, heading=heading, max_rows=max_rows, brief=brief),
        )


def render_answer_markdown(
    answer: Answer,
    kernel: KernelReport,
    places: PlaceNames,
    *,
    heading: str = "###",
    max_rows: int = MOST_ROWS,
    brief: bool = False,
) -> Iterator[str]:
    """One answer: title, summary, bars, findings with their remedies, tables, places, and what is unknown."""
    yield from (f"{heading} {escape_markdown(answer.title)}", "")
    if answer.summary:
        yield write_sentence(answer.summary)
    if answer.bars:
        yield from ("", *render_bars_markdown(answer.bars))
    if answer.findings:
        yield ""
    for finding in answer.findings:
        yield from _render_finding(finding)
    if not brief:
        yield from _render_evidence(answer, kernel, places, max_rows)
    if answer.missing:
        yield ""
    for missing in answer.missing:
        yield f"- {write_sentence(describe_missing(missing))}"


def _render_evidence(answer: Answer, kernel: KernelReport, places: PlaceNames, max_rows: int) -> Iterator[str]:
    for table in answer.tables:
        yield from ("", *_render_table(table, max_rows))
    for chart in answer.charts:
        yield from ("", escape_markdown(describe_chart(chart)))
    if answer.movements:
        yield ""
    for movement in answer.movements:
        yield f"- {escape_markdown(describe_movement(movement))}"
    if answer.marks:
        yield from ("", *_render_marks(answer.marks, kernel, places))


def render_bars_markdown(bars: Sequence[Bar]) -> Iterator[str]:
    """Bars in letters of one width, inside a fence that nothing in a label can end."""
    labels = [cut(" ".join(bar.label.split()).replace("`", "'"), _LABEL_CELLS) for bar in bars]
    widest = max((count_cells(label) for label in labels), default=0)
    yield "```text"
    for label, bar in zip(labels, bars, strict=True):
        padding = " " * (widest - count_cells(label))
        words = " ".join(bar.words.split()).replace("`", "'")
        row = f"{label}{padding}  {draw_ceiling_bar(bar, _BAR_CELLS)}  {format_percent(bar.ratio):>6}  {words}"
        yield row.rstrip()
    yield "```"


def _render_finding(finding: Finding) -> Iterator[str]:
    text = write_sentence(finding.text)
    if finding.weight is Weight.HIGH:
        text = f"**{text}**"
    share = describe_share(finding)
    yield f"- {share}: {text}" if share else f"- {text}"
    if finding.remedy:
        yield f"  - {write_sentence(finding.remedy)}"


def _render_table(table: Table, max_rows: int) -> Iterator[str]:
    shown = choose_rows(table, max_rows)
    yield from (f"**{escape_markdown(table.title)}**", "")
    yield f"| {' | '.join(escape_markdown(column.name) for column in table.columns)} |"
    yield f"|{'|'.join('---' if column.quantity is Quantity.TEXT else '---:' for column in table.columns)}|"
    for number in shown:
        cells = [
            escape_markdown(format_quantity(value, column.quantity))
            for value, column in zip(table.rows[number], table.columns, strict=True)
        ]
        if number == table.current_row:
            cells = [f"**{cell}**" if cell else cell for cell in cells]
        yield f"| {' | '.join(cells)} |"
    rest = len(table.rows) - len(shown)
    if rest:
        yield from ("", f"And {format_count(rest)} more rows.")
    if table.note:
        yield from ("", write_sentence(table.note))


def _render_marks(marks: Sequence[LineMark], kernel: KernelReport, places: PlaceNames) -> Iterator[str]:
    yield from ("| place | value | share | what |", "|---|---:|---:|---|")
    for mark in marks[:MOST_MARKS]:
        cells = (
            quote_code(show_place(mark, kernel, places)),
            escape_markdown(format_quantity(mark.value, mark.quantity)),
            "" if mark.share_ratio is None else format_percent(mark.share_ratio),
            write_cell(join((mark.measure, mark.text), ": ")),
        )
        yield f"| {' | '.join(cells)} |"
    if len(marks) > MOST_MARKS:
        yield from ("", f"And {format_count(len(marks) - MOST_MARKS)} more lines.")
