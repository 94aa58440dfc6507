"""Results of the analyses of one kernel (:class:`KernelAnalyses`): its limiter and its place under the machine's ceilings.

All numbers are in SI units. A saved report is read with these records and without the analyses.
"""

from enum import StrEnum

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer, Missing
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.foundation.prose import NOTHING, Sentence, drop_stop
from gpa_lsp.foundation.records import PartlyCompared
from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind

# What L1 is busy with where neither bytes nor bank conflicts but the number of memory instructions fills it
REQUESTS = "requests"
WAVEFRONTS = "wavefronts"  # And where it is passes through its data stage


class LimiterKind(StrEnum):
    """Kind of a kernel's limiter."""

    UNIT = "unit"  # A part of the GPU is busy: only less work for it makes the kernel faster
    LATENCY = "latency"  # No part is busy: warps wait for results, and too few others are there to run meanwhile
    PARALLELISM = "parallelism"  # SMs have no work: the grid is small or uneven, or the launch is over before it began
    BUILD = "build"  # The code was compiled without optimization
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """Confidence in a verdict."""

    SURE = "sure"
    LIKELY = "likely"  # The figures allow another reading
    UNKNOWN = "unknown"


class Limit(Struct, frozen=True, kw_only=True):
    """A part of the GPU and how busy it is."""

    unit: str  # its short name: ``dram``, ``l2``, ``l1``, ``shared``, ``texture``, ``constant``, ``issue``, or an arithmetic pipe
    label: str  # the same for people
    busy_ratio: float  # share of its peak over the launch; counters of several passes exceed 1 by a little
    sustained_ratio: float  # share of its peak that such a unit was seen to sustain
    metric: str = ""  # the profiler's name of what was counted, without suffix; empty where it is computed from others
    by: str = ""  # what of it is busy, for people, e.g. ``wavefronts``; may be empty.
    # not counted: computed from what the kernel achieves of the roof, by its bytes or operations
    is_derived: bool = False

    @property
    def nearness(self) -> float:
        """Share of what the unit sustains; 1 is full."""
        return self.busy_ratio / self.sustained_ratio

    @property
    def headroom(self) -> float:
        """Largest speedup of a kernel with the same work for this unit; at least 1, infinite for an idle unit."""
        return max(1.0, 1 / self.nearness) if self.nearness > 0 else float("inf")


class Limiter(Struct, frozen=True, kw_only=True):
    """Limiter of a kernel, in its longest launch."""

    kind: LimiterKind  # unit, latency, parallelism or build
    unit: str  # of the limits, the one that binds; for latency what warps are stalled on most, for parallelism what is short. Empty when unknown.
    # for a unit the share of its peak; for latency the share of the samples stalled on it; for parallelism the share of SM time without work. None
    # when unknown.
    busy_ratio: float | None
    next: Limit | None  # what limits it once this is gone; None when nothing is known of it
    next_factor: float | None  # how many times faster it can be until the next one binds; None where there is none
    confidence: Confidence  # in the verdict
    sentence: Sentence  # the verdict for people
    missing: tuple[str, ...] = ()  # metrics to collect where it is unknown
    limits: tuple[Limit, ...] = ()  # all units that were measured, nearest to what they sustain first

    @property
    def verdict(self) -> Sentence:
        """The sentence to be quoted beside other facts; nothing where the limiter is unknown."""
        return NOTHING if self.kind is LimiterKind.UNKNOWN else self.sentence

    @property
    def most_speedup(self) -> float | None:
        """The most to gain by a change that leaves the limiting unit its work: the inverse of its busy share; None where the limiter is not sure."""
        if self.kind is not LimiterKind.UNIT or self.confidence is not Confidence.SURE or not self.busy_ratio:
            return None
        return max(1.0, 1 / self.busy_ratio)

    def find(self, unit: str) -> Limit | None:
        """One of the limits by its short name; None when it was not measured."""
        return next((limit for limit in self.limits if limit.unit == unit), None)


def shorten_limit(limiter: Limiter | None) -> str:
    """The beginning of a limiter's sentence; empty where it is unknown."""
    if limiter is None or limiter.kind is LimiterKind.UNKNOWN:
        return ""
    if limiter.kind is LimiterKind.LATENCY:
        return f"Latency: {format_percent(limiter.busy_ratio)} {limiter.unit}" if limiter.unit else "Latency"
    text = str(drop_stop(limiter.sentence))
    if text.startswith("Limited by "):
        return text.partition(" (")[0].partition(", by ")[0]
    for end in (": ", "; ", " with "):
        text = text.partition(end)[0]
    return text


# Times the nearness of the nearest ceiling: a ceiling and the unit behind it are counted differently, and differ by a few percent
CLEARLY_NEARER = 1.1


LEAST_SHOWN = 0.05  # Of a ceiling: one without a point, as few operations have none, is shown from this share on


class OperationCount(Struct, frozen=True, kw_only=True):
    """Operations of one type."""

    kind: OperationKind  # the type
    operations: float  # a multiply-add is two; threads whose guard was false do not count
    source: str  # the counters it was derived from, one clause
    # False where a counter had to be translated with a factor that is not sure (tensor instructions of unknown shape)
    is_exact: bool = True


class Traffic(Struct, frozen=True, kw_only=True):
    """Bytes that crossed one level."""

    level: MemoryLevel  # which
    bytes: float  # both directions
    source: str  # the counters, one clause
    transactions: float | None = None  # 32-byte sectors, or wavefronts of shared memory; None when unknown
    # False where only the share of the peak was collected, and the bytes hold at the machine's clocks
    is_exact: bool = True


class Roof(Struct, frozen=True, kw_only=True):
    """One ceiling and how close the kernel is to it. Exactly one of ``kind`` and ``level`` is set, or neither for the issue ceiling."""

    name: str  # for people, e.g. ``DRAM bandwidth``, ``FP32 peak``, ``instruction issue``.
    kind: OperationKind | None  # for a peak
    level: MemoryLevel | None  # for a bandwidth
    limit_per_s: float  # operations, bytes or warp instructions per second
    achieved_per_s: float  # the same, as measured
    # the share of ``limit_per_s`` that is known to be sustainable; 1 for what was measured or has no such figure
    ceiling_ratio: float = 1.0

    @property
    def share_ratio(self) -> float:
        """Achieved of the limit; counters taken in several passes can exceed 1 by a little."""
        return self.achieved_per_s / self.limit_per_s if self.limit_per_s > 0 else 0.0

    @property
    def headroom(self) -> float:
        """Largest speedup of the same work until this ceiling is reached (its sustainable part); at least 1."""
        share = self.share_ratio
        return max(1.0, self.ceiling_ratio / share) if share > 0 else float("inf")


class BusyUnit(Struct, frozen=True, kw_only=True):
    """The unit of the GPU that the profiler saw busiest. It need not have a ceiling: a queue, a pipe or the data stage of L1 can be full at few bytes
    and few operations.
    """

    name: str  # for people, e.g. ``L1 load/store wavefronts``.
    is_memory: bool  # it is a part of the memory, and not of the arithmetic
    share_ratio: float  # of its peak, averaged over the time
    ceiling_ratio: float = 1.0  # the share that the memory it belongs to sustains; 1 for a part of an SM

    @property
    def phrase(self) -> str:
        """The name within a sentence."""
        return self.name if self.name.startswith("the ") else f"the {self.name}"

    @property
    def nearness(self) -> float:
        """Share of what the unit sustains; 1 is full."""
        return self.share_ratio / self.ceiling_ratio if self.ceiling_ratio > 0 else 0.0

    @property
    def headroom(self) -> float:
        """Largest speedup of a kernel that asks as much of the unit; at least 1."""
        return max(1.0, 1 / self.nearness) if self.nearness > 0 else float("inf")


class Point(Struct, frozen=True, kw_only=True):
    """A type of operation over a level of the memory: one mark on the chart."""

    kind: OperationKind  # the type of operation
    level: MemoryLevel  # of the memory
    intensity: float  # operations per byte of that level (x)
    achieved_ops_per_s: float  # (y)
    # min(peak, bandwidth · intensity) (Starlight, Equation 1); None where a ceiling is unknown
    attainable_ops_per_s: float | None
    # left of the ridge point, where the bandwidth is the lower of the two; None where a ceiling is unknown
    is_memory_side: bool | None


class InstructionPoint(Struct, frozen=True, kw_only=True):
    """The second view: warp instructions per transaction of a level (Ding and Williams, "An Instruction Roofline Model for GPUs", 2019)."""

    level: MemoryLevel  # of the memory
    intensity: float  # warp instructions per transaction (x)
    achieved_per_s: float  # warp instructions per second (y)
    attainable_per_s: float | None  # min(issue, transactions per second · intensity); None where a ceiling is unknown
    transaction_bytes: int  # bytes of one transaction at this level


class Roofline(Struct, frozen=True, kw_only=True):
    """Position of one launch, or of all launches of a kernel together, under the machine's ceilings."""

    launch_index: int | None  # position in the profile; None for all launches together
    duration_s: float  # their time
    operations: tuple[OperationCount, ...]  # types with a known count, zero counts included, most operations first
    traffic: tuple[Traffic, ...]  # levels with known bytes, from shared memory to DRAM
    warp_instructions: float | None  # executed; None when unknown
    # every ceiling whose limit and use are known, nearest (largest ``share_ratio / ceiling_ratio``) first; types of which nothing was done are left
    # out
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]  # types with operations over levels with bytes
    instruction_points: tuple[InstructionPoint, ...]  # the second view
    # the type with the largest share of its peak. Integers and special functions, which most kernels need on the side, only where they are near their
    # peak, or hardly anything else was done. None when no operation was counted.
    dominant: OperationKind | None
    missing: tuple[Missing, ...] = ()  # what could not be known
    # the unit nearest to what it sustains; None when the profiler's throughputs were not collected
    busiest: BusyUnit | None = None

    @property
    def binding(self) -> Roof | None:
        """The nearest ceiling; None when none is known."""
        return self.roofs[0] if self.roofs else None

    @property
    def shown_roofs(self) -> tuple[Roof, ...]:
        """Ceilings worth showing, nearest first: those with points under them, the issue ceiling, and those used to a part worth naming."""
        kinds, levels = {point.kind for point in self.points}, {point.level for point in self.points}
        if not self.points:
            return self.roofs
        return tuple(
            roof
            for position, roof in enumerate(self.roofs)
            if position == 0
            or roof.share_ratio >= LEAST_SHOWN
            or (roof.kind is None and roof.level is None)
            or roof.kind in kinds
            or roof.level in levels
        )

    @property
    def tighter_unit(self) -> BusyUnit | None:
        """The busiest unit where it is clearly nearer to its limit than the kernel is to any ceiling; None where the ceilings tell it all."""
        unit, binding = self.busiest, self.binding
        if unit is None or unit.nearness <= 0:
            return None
        nearness = 0.0 if binding is None or binding.ceiling_ratio <= 0 else binding.share_ratio / binding.ceiling_ratio
        return unit if unit.nearness >= CLEARLY_NEARER * nearness else None

    @property
    def headroom(self) -> float | None:
        """Largest speedup of the same work: until the nearest ceiling, or until the busiest unit is full. None when neither is known."""
        limits = (self.binding, self.tighter_unit)
        return min((limit.headroom for limit in limits if limit is not None), default=None)

    @property
    def is_memory_bound(self) -> bool | None:
        """The nearest ceiling is a bandwidth; None when none is known."""
        return None if self.binding is None else self.binding.level is not None


class KernelRoofline(Struct, frozen=True, kw_only=True):
    """The roofline of a kernel."""

    machine: Machine  # whose ceilings, at the clocks of the longest launch
    whole: Roofline | None  # all launches that could be placed, together; None when none could
    launches: tuple[Roofline, ...]  # one by one, longest first; no more than :data:`MOST_LAUNCHES`
    left_out: int = 0  # launches beyond that number

    def find_launch(self, index: int | None) -> Roofline | None:
        """Find the roofline of one launch by its position in the profile; None when it was not placed."""
        return next((one for one in self.launches if one.launch_index == index), None)


MOST_LAUNCHES = 200  # Launches that are placed one by one


class KernelAnalyses(PartlyCompared, frozen=True, kw_only=True):
    """Results of all analyses of one kernel."""

    UNCOMPARED = ("problems",)

    roofline: KernelRoofline | None  # None when nothing is known of the machine, or nothing was measured
    answers: tuple[Answer, ...]  # one per analysis, in the order to be read
    problems: tuple[Problem, ...] = ()  # analyses that failed

    def find(self, analysis: str) -> Answer | None:
        """The answer of one analysis; None when it was not asked."""
        return next((answer for answer in self.answers if answer.analysis == analysis), None)
