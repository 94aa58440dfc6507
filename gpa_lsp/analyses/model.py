"""What the analyses produce: one closed vocabulary, so that a new analysis needs no new renderer, and the roofline beside it.

An analysis answers one question about a kernel with an :class:`Answer`: a sentence, findings, tables, charts, bars, marks on lines, and what it
could not know. All numbers are in SI units; prefixes, percent and rounding belong to the renderers.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from gpa_lsp.errors import Problem
from gpa_lsp.machine.model import Machine, MemoryLevel, OperationKind


class Quantity(StrEnum):
    """What a number is, which decides how it is written."""

    TEXT = "text"
    COUNT = "count"
    NUMBER = "number"
    """Without a unit, with decimals."""
    RATIO = "ratio"
    """0..1, written in percent."""
    FACTOR = "factor"
    """A speedup, written 1.23×."""
    BYTES = "bytes"
    BYTES_PER_S = "bytes/s"
    FLOPS_PER_S = "FLOP/s"
    INTEGER_OPS_PER_S = "IOP/s"
    INSTRUCTIONS_PER_S = "warp instructions/s"
    OPS_PER_BYTE = "operations/byte"
    CYCLES = "cycles"
    HZ = "Hz"
    NS = "ns"
    SAMPLES = "samples"
    WARPS = "warps"


Cell = str | int | float | None
"""One value of a table; None is unknown and is written so."""


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
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A part of a whole, or a rate under its roof.

    Attributes:
        label: what.
        ratio: 0..1.
        ceiling_ratio: what can be reached of the whole; 1 where all of it can.
        words: the amount behind it, short; may be empty.
    """

    label: str
    ratio: float
    ceiling_ratio: float = 1.0
    words: str = ""


class ChartKind(StrEnum):
    """How a chart is drawn."""

    STEPS = "steps"
    """A value that jumps (occupancy over block size)."""
    LINE = "line"
    BARS = "bars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one colour: ``xs`` and ``ys`` of equal length, ``xs`` ascending."""

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

    text: str
    weight: Weight = Weight.PLAIN
    remedy: str = ""
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
        line: 1-based; None likewise.
        function: mangled name of the section of the instruction with most of it.
        pc_offset: that instruction, bytes from the section's start.
    """

    measure: str
    value: float
    quantity: Quantity
    share_ratio: float | None
    text: str
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
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one analysis says of one kernel.

    Attributes:
        analysis: the analysis' name (its module's).
        title: the question in a few words, for headings.
        summary: one sentence; says so where nothing is known.
        findings: most important first.
        bars: parts of one whole or rates under roofs.
        tables: in the order to be read.
        charts: likewise.
        marks: on lines, largest first; no more than :data:`MOST_MARKS`.
        missing: what could not be known.
        is_known: False when nothing could be said at all.
    """

    analysis: str
    title: str
    summary: str
    findings: tuple[Finding, ...] = ()
    bars: tuple[Bar, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    marks: tuple[LineMark, ...] = ()
    missing: tuple[Missing, ...] = ()
    is_known: bool = True


MOST_MARKS = 200
"""Marks an answer carries at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCount:
    """Operations of one type.

    Attributes:
        kind: the type.
        operations: a multiply-add is two; threads whose guard was false do not count.
        source: the counters it was derived from, one clause.
        is_exact: False where a counter had to be translated with a factor that is not sure (tensor instructions of unknown shape).
    """

    kind: OperationKind
    operations: float
    source: str
    is_exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that crossed one level.

    Attributes:
        level: which.
        bytes: both directions.
        source: the counters, one clause.
        transactions: 32-byte sectors, or wavefronts of shared memory; None when unknown.
    """

    level: MemoryLevel
    bytes: float
    source: str
    transactions: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """One ceiling and how close the kernel is to it. Exactly one of ``kind`` and ``level`` is set, or neither for the issue roof.

    Attributes:
        name: for people, e.g. ``DRAM bandwidth``, ``FP32 peak``, ``instruction issue``.
        kind: for a peak.
        level: for a bandwidth.
        limit_per_s: operations, bytes or warp instructions per second.
        achieved_per_s: the same, as measured.
        ceiling_ratio: the share of ``limit_per_s`` that is known to be sustainable; 1 for what was measured or has no such figure.
    """

    name: str
    kind: OperationKind | None
    level: MemoryLevel | None
    limit_per_s: float
    achieved_per_s: float
    ceiling_ratio: float = 1.0

    @property
    def share_ratio(self) -> float:
        """Achieved of the limit; counters taken in several passes can exceed 1 by a little."""
        return self.achieved_per_s / self.limit_per_s if self.limit_per_s > 0 else 0.0

    @property
    def headroom(self) -> float:
        """How many times faster a kernel with the same work could run until this roof is reached (its sustainable part); at least 1."""
        share = self.share_ratio
        return max(1.0, self.ceiling_ratio / share) if share > 0 else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A type of operation over a level of the memory: one mark on the chart.

    Attributes:
        kind: the type of operation.
        level: of the memory.
        intensity: operations per byte of that level (x).
        achieved_ops_per_s: (y).
        attainable_ops_per_s: min(peak, bandwidth · intensity) (Starlight, Equation 1); None where a roof is unknown.
        is_memory_side: left of the ridge point, where the bandwidth is the lower of the two; None likewise.
    """

    kind: OperationKind
    level: MemoryLevel
    intensity: float
    achieved_ops_per_s: float
    attainable_ops_per_s: float | None
    is_memory_side: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionPoint:
    """The second view: warp instructions per transaction of a level (Ding and Williams, "An Instruction Roofline Model for GPUs", 2019).

    Attributes:
        level: of the memory.
        intensity: warp instructions per transaction (x).
        achieved_per_s: warp instructions per second (y).
        attainable_per_s: min(issue, transactions per second · intensity); None where a roof is unknown.
        transaction_bytes: bytes of one transaction at this level.
    """

    level: MemoryLevel
    intensity: float
    achieved_per_s: float
    attainable_per_s: float | None
    transaction_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Where one launch, or all launches of a kernel together, stand.

    Attributes:
        launch_index: position in the profile; None for all launches together.
        duration_s: their time.
        operations: types with a known count, zero counts included, most operations first.
        traffic: levels with known bytes, from shared memory to DRAM.
        warp_instructions: executed; None when unknown.
        roofs: every ceiling whose limit and use are known, nearest (largest ``share_ratio / ceiling_ratio``) first.
        points: types with operations over levels with bytes.
        instruction_points: the second view.
        dominant: the type with the largest share of its peak; None when no operation was counted.
        missing: what could not be known.
    """

    launch_index: int | None
    duration_s: float
    operations: tuple[OperationCount, ...]
    traffic: tuple[Traffic, ...]
    warp_instructions: float | None
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    instruction_points: tuple[InstructionPoint, ...]
    dominant: OperationKind | None
    missing: tuple[Missing, ...] = ()

    @property
    def binding(self) -> Roof | None:
        """The nearest roof; None when none is known."""
        return self.roofs[0] if self.roofs else None

    @property
    def is_memory_bound(self) -> bool | None:
        """The nearest roof is a bandwidth; None when none is known."""
        return None if self.binding is None else self.binding.level is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRoofline:
    """The roofline of a kernel.

    Attributes:
        machine: whose roofs, at the clocks of the longest launch.
        whole: all launches that could be placed, together; None when none could.
        launches: one by one, longest first; no more than :data:`MOST_LAUNCHES`.
        left_out: launches beyond that number.
    """

    machine: Machine
    whole: Roofline | None
    launches: tuple[Roofline, ...]
    left_out: int = 0


MOST_LAUNCHES = 200
"""Launches that are placed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAnalyses:
    """Everything the analyses say of one kernel.

    Attributes:
        roofline: None when nothing is known of the machine, or nothing was measured.
        answers: one per analysis, in the order to be read.
        problems: analyses that failed.
    """

    roofline: KernelRoofline | None
    answers: tuple[Answer, ...]
    problems: tuple[Problem, ...] = field(default=(), compare=False)

    def find(self, analysis: str) -> Answer | None:
        """The answer of one analysis; None when it was not asked."""
        return next((answer for answer in self.answers if answer.analysis == analysis), None)
