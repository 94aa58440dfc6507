"""Results of advising: :class:`KernelAdvice`, remedies with a place, an estimate and its doubts.

Rows are the kernel's rows as in :mod:`gpa_lsp.diagnosis.blame.model`. Advice are *alternatives*: several may count the same samples, and their
speedups are never added or multiplied.
"""

from collections.abc import Sequence
from enum import Enum, StrEnum

from msgspec import Struct

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.figures import Share
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.kernel.scopes import Scope

AT_THE_LIMIT = "at_the_limit"  # The optimizer that says that nothing is to be gained, and promises nothing

# The optimizer that says how to use a library whose code it does not look at, and promises nothing
LIBRARY_USE = "library_use"

DEBUG_BUILD = "debug_build"  # The optimizer that comes before all where nothing was optimized

# Optimizers that have no number: nothing is to be gained, or the gain is unknown
UNPRICED = frozenset({AT_THE_LIMIT, LIBRARY_USE})

LEAST_SPEEDUP = 1.01  # Advice that promises less is not shown

SMALL_SPEEDUP = 1.05  # Suggestions that gain less are not worth a line each

MOST_REGIONS = 5  # Regions shown per piece of advice (GPA, section VII-A), and hotspots shown per region


class Category(StrEnum):
    """Kind of change that a remedy needs."""

    CODE = "code"
    PARALLEL = "parallel"  # Blocks, threads, how work is spread
    BINARY = "binary"  # Compiler flags and bounds; the source stays as it is
    CALLS = "calls"  # How often and with what a library is called, whose code stays as it is


class MemoryLevel(StrEnum):
    """A level of the memory; the values are its name for people."""

    DRAM = "DRAM"
    L2 = "L2"
    L1 = "L1"
    SHARED = "shared memory"
    ANY = "memory"  # The busiest level, where the profile names it only as a whole


class Hotspot(Struct, frozen=True, kw_only=True):
    """A def and the use that suffers from it, or one instruction that does both."""

    def_row: int  # the causing instruction
    use_row: int | None  # the suffering one; None where the matter is one instruction (then ``def_row``)
    reason: str  # stall reason; the one with most samples where there are several; empty where no stall is meant
    category: BlameCategory | None  # detailed class; None where no stall is meant
    samples: float  # matched here
    latency_samples: float | None  # of these, without issue; None when unknown
    distance_cycles: int | None = None  # encoded cycles from def to use; None when unknown or meaningless
    distance_instructions: int | None = None  # instructions from def to use; None when unknown or meaningless
    resource: int | None = None  # register or predicate that connects the two; None when none does
    # the use waits for this def alone; False where several causes share its samples by convention
    is_separable: bool = True
    note: Sentence = NOTHING  # what is special here, one clause; empty when nothing is
    # innermost loop around the def; None outside loops. Filled in for the hotspots that are shown.
    def_loop: Scope | None = None
    use_loop: Scope | None = None  # the same of the use

    @property
    def known_latency_samples(self) -> float:
        """Latency samples, for optimizers that are not asked where they are unknown."""
        assert self.latency_samples is not None
        return self.latency_samples

    @property
    def operand(self) -> str | None:
        """The register that connects def and use, as a listing names it."""
        return None if self.resource is None else name_resource(self.resource)


class Speedup(Struct, frozen=True, kw_only=True):
    """An estimate: run time before / run time after."""

    estimate: float  # the model's value, at most ``bound``
    low: float  # lower end of the range in which the gain is expected
    high: float  # upper end, at most ``bound``
    bound: float  # what can be reached at most
    bound_reason: Sentence  # what sets the bound, one clause
    uncapped: float  # the published formula's value before our clamps
    doubt: Sentence = NOTHING  # why the numbers are not worth printing, one clause; empty where they are


class Region(Struct, frozen=True, kw_only=True):
    """One place where the advice applies."""

    scope: Scope  # where
    matched_samples: float  # samples matched here
    matched_latency_samples: float | None  # of these, without issue; None when unknown
    share: Share  # of the kernel's samples
    speedup: Speedup  # what changing this region alone would gain
    density: float  # share of the region's matched samples that its shown hotspots hold, 0..1; low means spread thin
    hotspots: tuple[Hotspot, ...]  # at most five, most samples first
    hint: Sentence = NOTHING  # what to do here, about this code; empty when the advice's own hint says it


class Standing(StrEnum):
    """Standing of a piece of advice among the kernel's other advice."""

    NOW = "now"
    THEN = "then"  # Worth following once the first one is done: it relieves what limits the kernel next
    SMALL = "small"  # Gains less than :data:`SMALL_SPEEDUP`
    OUTSIDE = "outside"  # Changes other launches or how the grid divides, not the kernel's code
    NOTHING = "nothing"  # Says that nothing is to be gained


class Advice(Struct, frozen=True, kw_only=True):
    """One remedy for one kernel."""

    optimizer: str  # name in the catalogue, e.g. ``loop_unrolling``.
    title: str  # a few words
    category: Category  # what has to be changed
    group: str  # alternatives that share samples carry the same name; only one of a group can pay
    speedup: Speedup  # of the whole advice, all regions changed
    share: Share  # matched samples of the kernel's
    matched_samples: float  # those the remedy is about: M of the equations
    matched_latency_samples: float | None  # of these, without issue: M^L; None when unknown
    scope: Scope  # the region that gains most, or the kernel
    regions: tuple[Region, ...]  # at most five, largest gain first
    hint: Sentence  # what to do, about this code, plain sentences
    caveats: tuple[Sentence, ...]  # what it would break or cannot know, one sentence each
    reasons: tuple[Sentence, ...]  # what the estimate rests on, one clause each: formula, samples, clamps
    # the kernel was not sampled: shares and samples say nothing, and estimate and places come from counters alone
    by_counters: bool = False
    relieves_limiter: bool | None = None  # it takes work from what limits the kernel; None until that is decided
    # of a kernel with several launch contexts, the positions of those it is about; empty where it is about all that were judged
    contexts: tuple[int, ...] = ()
    standing: Standing = Standing.NOW  # among the kernel's other advice
    # registers and code of the compiled edit, with its simulated gain: one clause; empty without a compilation
    witness: Sentence = NOTHING

    @property
    def hotspots(self) -> tuple[Hotspot, ...]:
        """The shown hotspots of all regions, most samples first."""
        every = [hotspot for region in self.regions for hotspot in region.hotspots]
        return tuple(sorted(every, key=lambda hotspot: -hotspot.samples))

    @property
    def worthy_regions(self) -> tuple[Region, ...]:
        """The first region, and those that gain something by themselves."""
        others = (region for region in self.regions[1:] if region.speedup.estimate >= LEAST_SPEEDUP)
        return (*self.regions[:1], *others)

    def helps(self, row: int, frames: Sequence[Frame]) -> bool:
        """Whether it is about an instruction, about a line of its inline chain, or about what limits the kernel as a whole."""
        return (
            not self.regions
            or bool(self.relieves_limiter)
            or any(row in (spot.def_row, spot.use_row) for spot in self.hotspots)
            or any(region.scope.holds_line(frame.file, frame.line) for region in self.regions for frame in frames)
        )


class SilenceStage(Enum):
    """Stage at which an optimizer stopped."""

    NO_SAMPLES = "no_samples"
    NO_CODE = "no_code"  # No instructions, or no architecture table
    NOT_KNOWN = "not_known"  # It needs to know of samples or launch what the collector could not say
    NO_METRICS = "no_metrics"  # It needs counters the profile does not have
    NOT_MATCHED = "not_matched"  # It looked, and the pattern is not there
    GATED = "gated"  # The pattern is there, but something else forbids the advice (a roof, dependences)
    TOO_SMALL = "too_small"  # Less than :data:`LEAST_SPEEDUP`
    NO_PLACE = "no_place"
    NOT_YOURS = "not_yours"  # The code is a library's: the optimizer was not asked
    FAILED = "failed"  # A bug of ours or input we did not foresee; see the problems


class Silence(Struct, frozen=True, kw_only=True):
    """Reason why an optimizer does not apply."""

    optimizer: str  # its name
    stage: SilenceStage  # where it stopped
    message: Sentence  # one sentence for people, with figures where there are some
    contradicted_by: str = ""  # the analysis that says that it cannot help; empty where none does


class Refusal(Struct, frozen=True, kw_only=True):
    """Optimizers that would not help, for one reason."""

    why: Sentence  # in a few words
    titles: tuple[str, ...]  # of the optimizers


SM_UNIT = "SM"  # The SMs' busiest unit among the units of a kernel: issue, or an arithmetic pipe


class UnitUse(Struct, frozen=True, kw_only=True):
    """Utilization of one part of the GPU in the kernel's longest launch."""

    name: str  # DRAM, L2, L1 or memory, as in :class:`MemoryLevel`, or SM (:data:`SM_UNIT`)
    # share of its peak, averaged over the launch; counters of several passes can exceed 1 by a little
    achieved_ratio: float
    ceiling_ratio: float  # share of its peak that it sustains: the roof


class KernelAdvice(Struct, frozen=True, kw_only=True):
    """Answers of all optimizers about one kernel."""

    # largest estimated speedup first, and what is outside of the kernel behind what is in it
    advice: tuple[Advice, ...]
    silences: tuple[Silence, ...] = ()  # of the other optimizers, by name
    # what would not help, though its pattern is there, most of a reason first; None until standings are decided
    refusals: tuple[Refusal, ...] | None = None
    # how busy the level of the memory is that is nearest to what it sustains, one clause; empty where the profile does not say
    memory: Sentence = NOTHING
    is_bandwidth_bound: bool = False  # the limiter is a level of the memory, for sure: only less traffic helps
    # how busy the levels of the memory are, and then the SMs; those the profile measures
    units: tuple[UnitUse, ...] = ()

    @property
    def worthy(self) -> tuple[Advice, ...]:
        """Advice worth suggesting, best first; without any, the advice that says that nothing is to be gained."""
        worthy = tuple(one for one in self.advice if one.standing in (Standing.NOW, Standing.THEN))
        return worthy or tuple(one for one in self.advice if one.standing is Standing.NOTHING)

    @property
    def ranked(self) -> tuple[Advice, ...]:
        """All advice, in the order of views: worthy advice first."""
        return tuple(sorted(self.advice, key=lambda one: one not in self.worthy))
