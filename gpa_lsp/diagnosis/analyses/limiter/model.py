"""The verdict on a kernel: :class:`Limiter`."""

from enum import StrEnum

from msgspec import Struct

from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.foundation.prose import NOTHING, Sentence, drop_stop

# What L1 is busy with where neither bytes nor bank conflicts but the number of memory instructions fills it
REQUESTS = "requests"
WAVEFRONTS = "wavefronts"  # And where it is passes through its data stage


class LimiterKind(StrEnum):
    """What holds a kernel up."""

    UNIT = "unit"  # A part of the GPU is busy: only less work for it makes the kernel faster
    LATENCY = "latency"  # No part is busy: warps wait for results, and too few others are there to run meanwhile
    PARALLELISM = "parallelism"  # SMs have no work: the grid is small or uneven, or the launch is over before it began
    BUILD = "build"  # The code was compiled without optimization
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure a verdict is."""

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
    # nobody counted it: it is what the kernel achieves of the roof, by its bytes or operations
    is_derived: bool = False

    @property
    def nearness(self) -> float:
        """Share of what the unit sustains; 1 is full."""
        return self.busy_ratio / self.sustained_ratio

    @property
    def headroom(self) -> float:
        """How many times faster a kernel with the same work for this unit could run; at least 1, infinite for an idle unit."""
        return max(1.0, 1 / self.nearness) if self.nearness > 0 else float("inf")


class Limiter(Struct, frozen=True, kw_only=True):
    """What limits a kernel, in its longest launch."""

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
        """Of a change that leaves all work to the unit that surely limits the kernel: the inverse of its busy share; None where none surely does."""
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
