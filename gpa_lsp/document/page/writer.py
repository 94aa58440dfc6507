"""WRITER: blocks as HTML. Charts are kept apart, by number, until the page's script draws them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from gpa_lsp.document.blocks import Block, Figure, Gauge, Item, Items, Part, Row, Spot, Table, holds_anything
from gpa_lsp.document.charts.answer_chart import build_answer_chart
from gpa_lsp.document.layout import Line, Span, Style
from gpa_lsp.document.page import draw_gauge, embed_compressed, make_environment, render_prose
from gpa_lsp.foundation.prose import Place, Sentence, capitalize, drop_stop
from gpa_lsp.foundation.visible_text import make_lines_visible

MOST_ROWS = 200  # Of a table; what is beyond is counted below it

FOLDED_FROM = 10  # Rows from which on a table without bars is folded away

_TONES = {
    Style.HOT: "hot",
    Style.WARM: "warm",
    Style.DIM: "dim",
    Style.CODE: "code",
    Style.PATH: "code",
    Style.WARNING: "warning",
    Style.ERROR: "warning",
    Style.NOTE: "good",
    Style.TITLE: "strong",
}

_GAUGE_TONES = {Style.DIM: "faint", Style.HOT: "high"}

_TEMPLATE = "gpa_lsp.document.page/blocks.html.jinja"


class PageWriter:
    """Writes the blocks of a page, or of a part of it.

    Args:
        link: from a line, or an instruction by its row, to its address in the page; empty where it has none.
        opens_tables: long tables are open at first.
    """

    def __init__(self, link: Callable[[Place | int], str] | None = None, *, opens_tables: bool = False) -> None:
        self.charts: dict[str, Mapping[str, Any]] = {}
        self.opens_tables = opens_tables
        self._link = link

    def write(self, blocks: Sequence[Block]) -> Markup:
        """All blocks; those without anything in them are left out."""
        macros: Any = make_environment().get_template(_TEMPLATE).module
        return Markup(macros.write(blocks, self))

    def group(self, blocks: Sequence[Block]) -> Iterator[tuple[str, list[Block]]]:
        """Groups of neighbouring blocks of one kind, with the kind's name."""
        shown = filter(holds_anything, blocks)
        for kind, group in groupby(shown, key=lambda block: type(block).__name__):
            yield kind, list(group)

    @staticmethod
    def group_rows(rows: Sequence[Row]) -> Iterator[tuple[bool, list[Row]]]:
        """Groups of neighbouring rows that are numbered, or are not."""
        for is_numbered, group in groupby(rows, key=lambda row: row.is_numbered):
            yield is_numbered, list(group)

    def address(self, at: Place | int | None) -> str:
        """Address of a place in the page; empty where it has none."""
        return "" if at is None or self._link is None else self._link(at)

    @staticmethod
    def name_place(row: Row) -> str:
        """Place of a row, also where its sentence names it without a link."""
        if row.place or row.at is None or not row.is_numbered:
            return row.place
        line = row.at.line
        is_linked = any(isinstance(part, Place) and part.line == line for part in row.text.parts)
        return "" if is_linked else f"line {line}"

    def sentence(self, text: Sentence) -> Markup:
        """A clause as a sentence."""
        return render_prose(capitalize(drop_stop(text)), self._link) + "."

    def number(self, figure: Figure) -> str:
        """Store a chart; return the number under which the script finds it. Its title stands in the page."""
        number = f"chart{len(self.charts)}"
        chart = figure.chart
        spec = chart if isinstance(chart, Mapping) else build_answer_chart(chart, width=None)
        self.charts[number] = {key: value for key, value in spec.items() if key not in ("title", "$schema")}
        return number

    def pack(self) -> Markup:
        """Charts written so far, compressed for the page's script."""
        return embed_compressed(self.charts)

    def heading(self, part: Part) -> Markup:
        """The title of a part."""
        return self.cell((part.title, Style.PLAIN)) if isinstance(part.title, str) else self.text(part.title)

    def text(self, text: str | Line) -> Markup:
        """A sentence with links, or spans with their roles."""
        if isinstance(text, str):
            return render_prose(text, self._link)
        return Markup("").join(self._write_span(span) for span in text)

    def _write_span(self, span: Span) -> Markup:
        text, style = span
        tone = _TONES.get(style, "")
        written = self.cell(span)
        if not tone or not text.strip():
            return written
        element = "code" if style is Style.CODE else "span"
        return Markup('<{} class="{}">{}</{}>').format(
            element, "quoted" if element == "code" else tone, written, element
        )

    def cell(self, span: Span) -> Markup:
        """Content of a cell or span: a bar, a place with its link, a sentence, or a text as it is (it may be a name)."""
        text, style = span
        if isinstance(text, Gauge):
            return draw_gauge(text, _GAUGE_TONES.get(style, ""))
        if isinstance(text, Sentence):
            return render_prose(text, self._link)
        at = text.at if isinstance(text, Spot) else None
        address = self.address(at)
        written = escape(make_lines_visible(str(text)))
        return Markup('<a href="{}">{}</a>').format(address, written) if address else written

    @staticmethod
    def tone(span: Span) -> str:
        """CSS class of a cell; empty for plain text and bars."""
        return "" if isinstance(span[0], Gauge) else _TONES.get(span[1], "")

    @staticmethod
    def kept(table: Table) -> list[int]:
        """The columns that hold anything."""
        return [number for number in range(len(table.columns)) if any(row[number][0] for row in table.rows)]

    @staticmethod
    def has_bars(table: Table) -> bool:
        """Whether a column draws shares."""
        return any(isinstance(text, Gauge) for row in table.rows[:1] for text, _ in row)

    def is_folded(self, table: Table) -> bool:
        """Whether a table is long enough to be opened on demand."""
        return len(table.rows) >= FOLDED_FROM and not table.is_listing and not self.has_bars(table)

    @staticmethod
    def chosen(items: Items) -> Sequence[Item]:
        """The items that are shown."""
        return items.choose_items(MOST_ROWS)

    @staticmethod
    def shown(table: Table) -> Sequence[int]:
        """Numbers of the rows that are shown."""
        return table.choose_rows(MOST_ROWS)
