"""What the analyses say: one closed vocabulary, so that a new analysis needs no new renderer.

An analysis answers one question about a kernel with an :class:`Answer`: a sentence, findings, tables, charts, bars, marks on lines, and what it
could not know. All numbers are in SI units; prefixes, percent and rounding belong to the renderers.
"""

from enum import StrEnum

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import Cell, Quantity
from gpa_lsp.basis.prose import NOTHING, Sentence
from gpa_lsp.device.model import MemoryLevel, OperationKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        name: its heading.
        quantity: of its values.
    """

    name: str
    quantity: Quantity = Quantity.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows for people.

    Attributes:
        title: heading.
        columns: at least one.
        rows: each as long as ``columns``.
        current_row: index of the row that is the kernel as it is now; None when no row is.
        note: a sentence below it; may be empty.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    current_row: int | None = None
    note: Sentence = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A part of a whole, or a rate under its ceiling.

    Attributes:
        label: what.
        ratio: 0..1.
        ceiling_ratio: what can be reached of the whole; 1 where all of it can.
        words: the amount behind it, short; may be empty.
    """

    label: str
    ratio: float
    ceiling_ratio: float = 1.0
    words: Sentence = NOTHING


class ChartKind(StrEnum):
    """How a chart is drawn."""

    STEPS = "steps"
    """A value that jumps (occupancy over block size)."""
    LINE = "line"
    BARS = "bars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one colour.

    Attributes:
        label: what they show.
        xs: ascending.
        ys: as many.
    """

    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A small chart.

    Attributes:
        title: heading.
        kind: how it is drawn.
        x_label: of the axis.
        y_label: of the axis.
        y_quantity: how its values are written.
        series: at least one.
        current_x: where the kernel is now; None when it is nowhere.
    """

    title: str
    kind: ChartKind
    x_label: str
    y_label: str
    y_quantity: Quantity
    series: tuple[Series, ...]
    current_x: float | None = None


class Weight(StrEnum):
    """How much a finding matters."""

    GOOD = "good"
    PLAIN = "plain"
    HIGH = "high"
    """Likely to be what holds the kernel up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing an analysis found.

    Attributes:
        text: a sentence with its numbers, written for people.
        weight: how much it matters.
        remedy: what to do; empty where nothing is to be done.
        share_ratio: part of the kernel's samples or time it is about, 0..1; None where that has no meaning.
    """

    text: Sentence
    weight: Weight = Weight.PLAIN
    remedy: Sentence = NOTHING
    share_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMark:
    """A number on a source line or an instruction.

    Attributes:
        measure: what was counted, e.g. ``excess sectors``.
        value: how much, in ``quantity``.
        quantity: its unit.
        share_ratio: of the kernel's total of this measure, 0..1; None where that has no meaning.
        text: a clause for people, e.g. ``4.0 times the sectors it needs``.
        file: as compiled; None for code without lines.
        line: 1-based; None for code without lines.
        function: mangled name of the section of the instruction with most of it.
        pc_offset: that instruction, bytes from the section's start.
    """

    measure: str
    value: float
    quantity: Quantity
    share_ratio: float | None
    text: Sentence
    file: str | None
    line: int | None
    function: str
    pc_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What could not be known, and what would tell.

    Attributes:
        what: that is unknown, e.g. ``bytes from DRAM``.
        metrics: names to give to ``ncu --metrics``; any one of them is enough unless ``needs_all``.
        needs_all: all of them are needed.
        section: a section of the profiler that has them; empty when none does.
        why: where no metric helps: the reason; empty otherwise.
    """

    what: str
    metrics: tuple[str, ...] = ()
    needs_all: bool = False
    section: str = ""
    why: Sentence = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """An arrow on the roofline chart: where a change would take one of the kernel's points.

    Attributes:
        kind: the type of operation of the point.
        level: of the memory.
        from_intensity: operations per byte now.
        from_ops_per_s: now.
        to_intensity: operations per byte then.
        to_ops_per_s: then, never above the ceilings there.
        label: what is changed, a few words.
    """

    kind: OperationKind
    level: MemoryLevel
    from_intensity: float
    from_ops_per_s: float
    to_intensity: float
    to_ops_per_s: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one analysis says of one kernel.

    Attributes:
        analysis: the analysis' name (its module's).
        title: the question in a few words, for headings.
        summary: one sentence; says so where nothing is known.
        findings: most important first.
        bars: parts of one whole or rates under ceilings.
        tables: in the order to be read.
        charts: in the order to be read.
        marks: on lines, largest first; no more than :data:`MOST_MARKS`.
        missing: what could not be known.
        is_known: False when nothing could be said at all.
        movements: arrows for the roofline chart, largest gain first.
    """

    analysis: str
    title: str
    summary: Sentence
    findings: tuple[Finding, ...] = ()
    bars: tuple[Bar, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    marks: tuple[LineMark, ...] = ()
    missing: tuple[Missing, ...] = ()
    is_known: bool = True
    movements: tuple[Movement, ...] = ()


MOST_MARKS = 200
"""Marks an answer carries at most."""
