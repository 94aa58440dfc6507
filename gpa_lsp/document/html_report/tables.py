"""Tables and bars for a page: text only, numbers already written; the templates add nothing but elements."""

from collections.abc import Sequence

from msgspec import Struct

from gpa_lsp.diagnosis.analyses import answers
from gpa_lsp.document import kernel_tables
from gpa_lsp.document.layout import Align, Style, clamp_ratio
from gpa_lsp.foundation.numbers import Quantity, format_count_of, format_quantity

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
