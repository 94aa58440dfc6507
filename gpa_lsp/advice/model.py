"""What advising produces: :class:`KernelAdvice`, remedies with a place, an estimate and its doubts.

Rows are the kernel's rows as in :mod:`gpa_lsp.blame.model`. Advice are *alternatives*: several may count the same samples, and their
speedups are never added or multiplied.
"""

from enum import Enum, StrEnum

from gpa_lsp.basis.figures import Share
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import NOTHING, Sentence
from gpa_lsp.binary.model import name_resource
from gpa_lsp.blame.model import BlameCategory
from gpa_lsp.rows.scopes import Scope

AT_THE_LIMIT = "at_the_limit"
"""The optimizer that says that nothing is to be gained, and promises nothing."""

LIBRARY_USE = "library_use"
"""The optimizer that says how to use a library whose code it does not look at, and promises nothing."""

UNPRICED = frozenset({AT_THE_LIMIT, LIBRARY_USE})
"""Optimizers that have no number: nothing is to be gained, or nobody can tell how much."""

LEAST_SPEEDUP = 1.01
"""Advice that promises less is not shown."""

MOST_REGIONS = 5
"""Regions shown per piece of advice (GPA, section VII-A), and hotspots shown per region."""


class Category(StrEnum):
    """What has to be changed."""

    CODE = "code"
    PARALLEL = "parallel"
    """Blocks, threads, how work is spread."""
    BINARY = "binary"
    """Compiler flags and bounds; the source stays as it is."""


class MemoryLevel(StrEnum):
    """A level of the memory; the values are its name for people."""

    DRAM = "DRAM"
    L2 = "L2"
    L1 = "L1"
    SHARED = "shared memory"
    ANY = "memory"
    """The busiest level, where the profile names it only as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hotspot:
    """A def and the use that suffers from it, or one instruction that does both.

    Attributes:
        def_row: the causing instruction.
        use_row: the suffering one; None where the matter is one instruction (then ``def_row``).
        reason: stall reason; the one with most samples where there are several; empty where no stall is meant.
        category: detailed class; None where no stall is meant.
        samples: matched here.
        latency_samples: of these, without issue; None when unknown.
        distance_cycles: encoded cycles from def to use; None when unknown or meaningless.
        distance_instructions: instructions from def to use; None when unknown or meaningless.
        resource: register or predicate that connects the two; None when none does.
        is_separable: the use waits for this def alone; False where several causes share its samples by convention.
        note: what is special here, one clause; empty when nothing is.
        def_loop: innermost loop around the def; None outside loops. Filled in for the hotspots that are shown.
        use_loop: the same of the use.
    """

    def_row: int
    use_row: int | None
    reason: str
    category: BlameCategory | None
    samples: float
    latency_samples: float | None
    distance_cycles: int | None = None
    distance_instructions: int | None = None
    resource: int | None = None
    is_separable: bool = True
    note: Sentence = NOTHING
    def_loop: Scope | None = None
    use_loop: Scope | None = None

    @property
    def known_latency_samples(self) -> float:
        """Those without issue, for optimizers that are not asked where they are unknown."""
        assert self.latency_samples is not None
        return self.latency_samples

    @property
    def operand(self) -> str | None:
        """The register that connects def and use, as a listing names it."""
        return None if self.resource is None else name_resource(self.resource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """An estimate: run time before / run time after.

    Attributes:
        estimate: the model's value, at most ``bound``.
        low: lower end of the range in which the gain is expected.
        high: upper end, at most ``bound``.
        bound: what can be reached at most.
        bound_reason: what sets the bound, one clause.
        uncapped: the published formula's value before our clamps.
        doubt: why the numbers are not worth printing, one clause; empty where they are.
    """

    estimate: float
    low: float
    high: float
    bound: float
    bound_reason: Sentence
    uncapped: float
    doubt: Sentence = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One place where the advice applies.

    Attributes:
        scope: where.
        matched_samples: samples matched here.
        matched_latency_samples: of these, without issue; None when unknown.
        share: of the kernel's samples.
        speedup: what changing this region alone would gain.
        density: share of the region's matched samples that its shown hotspots hold, 0..1; low means spread thin.
        hotspots: at most five, most samples first.
        hint: what to do here, about this code; empty when the advice's own hint says it.
    """

    scope: Scope
    matched_samples: float
    matched_latency_samples: float | None
    share: Share
    speedup: Speedup
    density: float
    hotspots: tuple[Hotspot, ...]
    hint: Sentence = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One remedy for one kernel.

    Attributes:
        optimizer: name in the catalogue, e.g. ``loop_unrolling``.
        title: a few words.
        category: what has to be changed.
        group: alternatives that share samples carry the same name; only one of a group can pay.
        speedup: of the whole advice, all regions changed.
        share: matched samples of the kernel's.
        matched_samples: those the remedy is about: M of the equations.
        matched_latency_samples: of these, without issue: M^L; None when unknown.
        scope: the region that gains most, or the kernel.
        regions: at most five, largest gain first.
        hint: what to do, about this code, plain sentences.
        caveats: what it would break or cannot know, one sentence each.
        reasons: what the estimate rests on, one clause each: formula, samples, clamps.
        by_counters: the kernel was not sampled: shares and samples say nothing, and estimate and places come from counters alone.
        relieves_limiter: it takes work from what limits the kernel; None as long as nobody has looked.
        contexts: of a kernel with several launch contexts, the positions of those it is about; empty where it is about all that were judged.
        rank_reason: why it does not stand where its estimate would put it, one clause; empty where it does.
    """

    optimizer: str
    title: str
    category: Category
    group: str
    speedup: Speedup
    share: Share
    matched_samples: float
    matched_latency_samples: float | None
    scope: Scope
    regions: tuple[Region, ...]
    hint: Sentence
    caveats: tuple[Sentence, ...]
    reasons: tuple[Sentence, ...]
    rank_reason: Sentence = NOTHING
    by_counters: bool = False
    relieves_limiter: bool | None = None
    contexts: tuple[int, ...] = ()

    @property
    def hotspots(self) -> tuple[Hotspot, ...]:
        """The shown hotspots of all regions, most samples first."""
        every = [hotspot for region in self.regions for hotspot in region.hotspots]
        return tuple(sorted(every, key=lambda hotspot: -hotspot.samples))


class SilenceStage(Enum):
    """Where an optimizer stopped."""

    NO_SAMPLES = "no_samples"
    NO_CODE = "no_code"
    """No instructions, or no architecture table."""
    NOT_KNOWN = "not_known"
    """It needs to know of samples or launch what the collector could not say."""
    NO_METRICS = "no_metrics"
    """It needs counters the profile does not have."""
    NOT_MATCHED = "not_matched"
    """It looked, and the pattern is not there."""
    GATED = "gated"
    """The pattern is there, but something else forbids the advice (a roof, dependences)."""
    TOO_SMALL = "too_small"
    """Less than :data:`LEAST_SPEEDUP`."""
    NO_PLACE = "no_place"
    FAILED = "failed"
    """A bug of ours or input we did not foresee; see the problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Why an optimizer does not apply.

    Attributes:
        optimizer: its name.
        stage: where it stopped.
        message: one sentence for people, with figures where there are some.
        contradicted_by: the analysis that says that it cannot help; empty where none does.
    """

    optimizer: str
    stage: SilenceStage
    message: Sentence
    contradicted_by: str = ""


SM_UNIT = "SM"
"""The SMs' busiest unit among the units of a kernel: issue, or an arithmetic pipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitUse:
    """How busy one part of the GPU is in the kernel's longest launch.

    Attributes:
        name: DRAM, L2, L1 or memory, as in :class:`MemoryLevel`, or SM (:data:`SM_UNIT`).
        achieved_ratio: share of its peak, averaged over the launch; counters of several passes can exceed 1 by a little.
        ceiling_ratio: share of its peak that it sustains: the roof.
    """

    name: str
    achieved_ratio: float
    ceiling_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAdvice:
    """Everything the optimizers said about one kernel.

    Attributes:
        advice: what relieves the limiter first (:mod:`gpa_lsp.advice.limiter_rules`), and then largest estimated speedup first.
        silences: of the other optimizers, by name.
        memory: how busy the level of the memory is that is nearest to what it sustains, one clause; empty where the profile does not say.
        is_bandwidth_bound: the limiter is a level of the memory, for sure: only less traffic helps.
        units: how busy the levels of the memory are, and then the SMs; those the profile measures.
    """

    advice: tuple[Advice, ...]
    silences: tuple[Silence, ...] = ()
    memory: Sentence = NOTHING
    is_bandwidth_bound: bool = False
    units: tuple[UnitUse, ...] = ()
