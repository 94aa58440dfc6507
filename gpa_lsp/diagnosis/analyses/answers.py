"""Answers of the analyses, in one closed vocabulary, so that a new analysis needs no new renderer.

An analysis answers one question about a kernel with an :class:`Answer`: a sentence, findings, tables, charts, bars, marks on lines, and what it
could not know. All numbers are in SI units; prefixes, percent and rounding belong to the renderers.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind


class Column(Struct, frozen=True, kw_only=True):
    """A column of a table."""

    name: str  # its heading
    quantity: Quantity = Quantity.TEXT  # of its values


def list_columns(*heads: str) -> tuple[Column, ...]:
    """Columns by their headings, those that hold no texts with what they hold behind it.

    >>> [(one.name, one.quantity.value) for one in list_columns("line | sectors [number]", "share [ratio]")]
    [('line', 'text'), ('sectors', 'number'), ('share', 'ratio')]
    """
    parts = (head.removesuffix("]").partition(" [") for head in " | ".join(heads).split(" | "))
    return tuple(Column(name=name, quantity=Quantity(quantity or Quantity.TEXT)) for name, _, quantity in parts)


class Table(ColumnRecord, frozen=True, kw_only=True):
    """Rows for people."""

    title: str  # heading
    columns: tuple[Column, ...]  # at least one
    rows: tuple[tuple[Cell, ...], ...]  # each as long as ``columns``
    current_row: int | None = None  # index of the row that is the kernel as it is now; None when no row is
    note: Sentence = NOTHING  # a sentence below it; may be empty


class Bar(Struct, frozen=True, kw_only=True):
    """A part of a whole, or a rate under its ceiling."""

    label: str  # what
    ratio: float  # 0..1
    ceiling_ratio: float = 1.0  # what can be reached of the whole; 1 where all of it can
    words: Sentence = NOTHING  # the amount behind it, short; may be empty


class ChartKind(StrEnum):
    """Kind of chart."""

    STEPS = "steps"  # A value that jumps (occupancy over block size)
    LINE = "line"
    BARS = "bars"
    SCATTER = "scatter"  # Two values of one quantity for each thing, both axes logarithmic, with the line on which they are equal


class Series(Struct, frozen=True, kw_only=True):
    """Points of one colour."""

    label: str  # what they show
    xs: tuple[float, ...]  # ascending
    ys: tuple[float, ...]  # as many


class Chart(Struct, frozen=True, kw_only=True):
    """A small chart."""

    title: str  # heading
    kind: ChartKind  # how it is drawn
    x_label: str  # of the axis
    y_label: str  # of the axis
    y_quantity: Quantity  # how its values are written
    series: tuple[Series, ...]  # at least one
    current_x: float | None = None  # where the kernel is now; None when it is nowhere


class Weight(StrEnum):
    """Importance of a finding."""

    GOOD = "good"
    PLAIN = "plain"
    HIGH = "high"  # Likely to be what holds the kernel up


class Finding(Struct, frozen=True, kw_only=True):
    """One thing an analysis found."""

    text: Sentence  # a sentence with its numbers, written for people
    weight: Weight = Weight.PLAIN  # how much it matters
    remedy: Sentence = NOTHING  # what to do; empty where nothing is to be done
    # part of the kernel's samples or time it is about, 0..1; None where that has no meaning
    share_ratio: float | None = None


_RANKS = {Weight.HIGH: 0, Weight.PLAIN: 1, Weight.GOOD: 2}


def order_findings(findings: Iterable[Finding], *, by_share: bool = False) -> tuple[Finding, ...]:
    """Order findings by importance: likely limits first, good news last.

    With *by_share*, within one weight the largest share first, those without a share as they came, in front.

    >>> from gpa_lsp.foundation.prose import say
    >>> [str(one.text) for one in order_findings([Finding(text=say("a")), Finding(text=say("b"), weight=Weight.HIGH)])]
    ['b', 'a']
    """

    def rank(one: Finding) -> tuple[int, float]:
        return _RANKS[one.weight], -(1.0 if one.share_ratio is None else one.share_ratio) if by_share else 0.0

    return tuple(sorted(findings, key=rank))


class LineMark(Struct, frozen=True, kw_only=True):
    """A number on a source line or an instruction."""

    measure: str  # what was counted, e.g. ``excess sectors``.
    value: float  # how much, in ``quantity``
    quantity: Quantity  # its unit
    share_ratio: float | None  # of the kernel's total of this measure, 0..1; None where that has no meaning
    text: Sentence  # a clause for people, e.g. ``4.0 times the sectors it needs``.
    file: str | None  # as compiled; None for code without lines
    line: int | None  # 1-based; None for code without lines
    function: str  # mangled name of the section of the instruction with most of it
    pc_offset: int  # that instruction, bytes from the section's start


class Missing(Struct, frozen=True, kw_only=True):
    """Unknown fact, and the metrics that would tell it."""

    what: str  # that is unknown, e.g. ``bytes from DRAM``.
    metrics: tuple[str, ...] = ()  # names to give to ``ncu --metrics``; any one of them is enough unless ``needs_all``
    needs_all: bool = False  # all of them are needed
    section: str = ""  # a section of the profiler that has them; empty when none does
    why: Sentence = NOTHING  # where no metric helps: the reason; empty otherwise


class Movement(Struct, frozen=True, kw_only=True):
    """An arrow on the roofline chart: where a change would take one of the kernel's points."""

    kind: OperationKind  # the type of operation of the point
    level: MemoryLevel  # of the memory
    from_intensity: float  # operations per byte now
    from_ops_per_s: float  # now
    to_intensity: float  # operations per byte then
    to_ops_per_s: float  # then, never above the ceilings there
    label: str  # what is changed, a few words


class Answer(Struct, frozen=True, kw_only=True):
    """Answer of one analysis about one kernel."""

    analysis: str = ""  # the analysis' name (its module's)
    title: str = ""  # the question in a few words, for headings
    summary: Sentence  # one sentence; says so where nothing is known
    findings: tuple[Finding, ...] = ()  # most important first
    bars: tuple[Bar, ...] = ()  # parts of one whole or rates under ceilings
    tables: tuple[Table, ...] = ()  # in the order to be read
    charts: tuple[Chart, ...] = ()  # in the order to be read
    marks: tuple[LineMark, ...] = ()  # on lines, largest first; no more than :data:`MOST_MARKS`
    missing: tuple[Missing, ...] = ()  # what could not be known
    is_known: bool = True  # False when nothing could be said at all
    movements: tuple[Movement, ...] = ()  # arrows for the roofline chart, largest gain first


def know_nothing(summary: Sentence, *missing: Missing) -> Answer:
    """The answer where nothing can be said."""
    return Answer(summary=summary, missing=missing, is_known=False)


MOST_MARKS = 200  # Marks an answer carries at most
