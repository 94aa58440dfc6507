"""Blocks of a document: paragraphs, lists, tables, rows, figures and parts. Views build them, writers print them, and neither knows the other.

A text is mostly a :class:`~gpa_lsp.foundation.prose.Sentence`, whose code and places every writer marks in its own way. Three more texts know what
they stand for: a :class:`Spot` a place, a :class:`Gauge` a share, and a line of spans the roles of its pieces.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Chart
from gpa_lsp.document.layout import Column, Line, Span, Style, draw_bar
from gpa_lsp.foundation.prose import Place, Sentence

NO_SPAN: Span = ("", Style.PLAIN)


class Spot(str):
    """A place as it is written, ``k.cu:3``, with its target: a line, an instruction by its row in the kernel's columns, or None for neither."""

    __slots__ = ("at",)
    at: Place | int | None

    def __new__(cls, text: str, at: Place | int | None) -> "Spot":
        """Keep the text as the view writes it."""
        made = super().__new__(cls, text)
        made.at = at
        return made


class Gauge(str):
    """A share as a bar of characters, and as numbers for writers that draw; a stroke marks a ceiling below 100 %.

    >>> Gauge(0.5, 8, ceiling_ratio=0.75)
    '████  │ '
    """

    __slots__ = ("ceiling", "ratio")
    ratio: float  # mostly 0 to 1; counters of several passes exceed 1 by a little
    ceiling: float | None  # 0 to 1; None where all can be reached

    def __new__(cls, ratio: float, cells: int = 8, *, ceiling_ratio: float = 1.0) -> "Gauge":
        """Draw a bar of *cells* characters."""
        drawn = draw_bar(min(max(ratio, 0.0), 1.0) if ratio > 0 else 0.0, cells)
        ceiling = ceiling_ratio if 0 < ceiling_ratio < 1 else None
        place = None if ceiling is None else min(cells - 1, int(ceiling * cells))
        if place is not None and drawn[place] == " ":
            drawn = f"{drawn[:place]}│{drawn[place + 1 :]}"
        made = super().__new__(cls, drawn)
        made.ratio, made.ceiling = ratio, ceiling
        return made


class Paragraph(Struct, frozen=True, kw_only=True):
    """A sentence or several."""

    text: str | Line
    style: Style = Style.PLAIN


class Item(Struct, frozen=True, kw_only=True):
    """One of a list."""

    text: str | Line  # what it says; of a line the last span is the sentence
    style: Style = Style.PLAIN  # how much it matters: WARNING holds the kernel up, DIM is good or small
    lead: Span = NO_SPAN  # a number or a word in front; may be empty
    remedy: str = ""  # what to do about it; may be empty
    below: Sequence["Block"] = ()  # what belongs to it


class Items(Struct, frozen=True, kw_only=True):
    """A list."""

    items: Sequence[Item]
    are_findings: bool = False  # marked by how much they matter
    are_numbered: bool = False
    fold: str = ""  # what they are, where they are folded away on a page; empty where they are not
    most_items: int | None = None  # shown where the reader sets no limit; None for all, whatever limit there is

    def choose_items(self, max_rows: int | None) -> Sequence[Item]:
        """The items to show."""
        return (
            self.items if self.most_items is None else self.items[: self.most_items if max_rows is None else max_rows]
        )


class Table(Struct, frozen=True, kw_only=True):
    """Rows of spans; one without rows is not shown."""

    title: str = ""  # caption; empty where a heading says it
    columns: Sequence[Column]  # from left to right; titles are empty where there are none
    rows: Sequence[Sequence[Span]]  # one span per column
    current_row: int | None = None  # the kernel as it is now; None where no row is
    note: str = ""  # a sentence below it; may be empty
    most_rows: int | None = None  # shown where the reader sets no limit; None for all
    is_whole: bool = False  # never cut, whatever the reader asks for
    is_listing: bool = False  # the lines of a text: never cut either, and in a box of its own on a page

    def choose_rows(self, max_rows: int | None) -> Sequence[int]:
        """Indices of the rows to show: the first, or those around the current row where it lies beyond them."""
        count = len(self.rows)
        limits = (count,) if self.is_whole or self.is_listing else (max_rows, self.most_rows, count)
        most = next(limit for limit in limits if limit is not None)
        if count <= most or self.current_row is None or self.current_row < most:
            return range(min(count, most))
        start = min(self.current_row - most // 2, count - most)
        return range(start, start + most)


class Row(Struct, frozen=True, kw_only=True):
    """One thing to know or to do, after a label."""

    label: str  # ``limit``, ``cause``, ``1.`` and so on
    text: Sentence  # what there is to say
    heading: str = ""  # the label where there is room for more; empty where it will do
    gain: str = ""  # range of the speedup, or ``then``; empty where none is promised
    place: str = ""  # as ``file:line``; empty where the text says it, or there is none
    code: str = ""  # the source line there; empty where it is not at hand
    at: Place | None = None  # the same place as a value, whether the text says it or not; None for code without lines
    remarks: Mapping[str, Sentence] = {}  # label of a further row → what else there is to say about it

    @property
    def is_numbered(self) -> bool:
        """Whether the row is one of the suggestions to be done in turn."""
        return self.label[:1].isdigit()


class Rows(Struct, frozen=True, kw_only=True):
    """A few rows read at a glance, the verdict first; where they need more lines, the last rows are cut first."""

    rows: Sequence[Row]
    most_lines: int  # on a terminal
    whole: str  # to be said where a row was cut


class Figure(Struct, frozen=True, kw_only=True):
    """A chart, and its content in words."""

    title: str
    words: str
    chart: Chart | Mapping[str, Any]  # a chart of an analysis, or a specification of Vega-Lite


class Part(Struct, frozen=True, kw_only=True):
    """Blocks under a heading."""

    title: str | Line
    blocks: Sequence["Block"]
    style: Style = Style.HEADING  # of the heading
    lead: Span = NO_SPAN  # a number in front of the heading, which is one of a list then; may be empty
    summary: str = ""  # all of it in a sentence; may be empty
    facts: Sequence[str] = ()  # a few words each, beside the heading
    name: str = ""  # of its address in a page; empty where it needs none
    is_known: bool = True  # something could be said
    folds: bool = False  # shown on demand where that can be done


Block = Paragraph | Items | Table | Rows | Figure | Part

_T = TypeVar("_T")
Cell = str | Span  # a text without a style is plain


def tabulate(
    rows: Iterable[_T], columns: Sequence[tuple[Column, Callable[[_T], Cell]]], title: str = "", **more: Any
) -> Table:
    """A table from rows and columns, each column with the function of its cells; *more* are fields of :class:`Table`."""
    heads = [column for column, _ in columns]
    return Table(
        title=title, columns=heads, rows=[[style_cell(find(row)) for _, find in columns] for row in rows], **more
    )


def style_cell(cell: Cell) -> Span:
    """A cell with its style."""
    return (cell, Style.PLAIN) if isinstance(cell, str) else cell


def holds_anything(block: Block) -> bool:
    """Whether there is anything to show."""
    if isinstance(block, Table):
        return bool(block.rows)
    if isinstance(block, Items):
        return bool(block.items)
    return not isinstance(block, Paragraph) or bool(make_line(block.text)[0][0])


def make_line(text: str | Line, style: Style = Style.PLAIN) -> Line:
    """A text as spans."""
    return ((text, style),) if isinstance(text, str) else text
