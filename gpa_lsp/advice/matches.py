"""What optimizers hand to the estimators. Each kind of match has one kind of formula; the types keep them apart."""

from collections.abc import Mapping
from math import inf

from gpa_lsp.advice.model import Hotspot, MemoryLevel
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import NOTHING, Sentence
from gpa_lsp.rows.scopes import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class EliminationRegion:
    """Stalls in one place that a change would remove.

    Attributes:
        scope: where.
        samples: M of this region: all samples, issued or not, that would go. Regions of one match never count a sample twice.
        latency_samples: of these, without issue; None when unknown.
        hotspots: matched pairs, at least the most sampled ones, which are shown.
        hint: what to do here; empty when the match's hint says it.
        counted: without samples, what counters say is too much here; compared with the other regions' only.
    """

    scope: Scope
    samples: float
    latency_samples: float | None
    hotspots: tuple[Hotspot, ...]
    hint: Sentence = NOTHING
    counted: float = 0.0

    @property
    def weight(self) -> float:
        """What regions of one match are compared by: samples, or what was counted."""
        return self.samples or self.counted


@dataclass(frozen=True, slots=True, kw_only=True)
class EliminationMatch:
    """Stalls that a change would remove: priced by GPA Equation 2.

    Attributes:
        regions: disjoint in samples.
        hint: what to do.
        caveats: see :class:`~gpa_lsp.advice.model.Advice`.
        reasons: what the match rests on.
        keeps_instructions: the change takes waiting away and no instruction, so what the schedulers and pipes still have to do bounds the gain;
            the interval then begins with the latency samples alone, since in the other cycles the waits were hidden by other warps' issues.
        relieves: levels of memory whose traffic the change lessens in proportion, so that their roofs do not cap the gain.
        leaves: unit → the part of its work that stays, which prices the change where a unit limits the kernel; None where that is unknown.
        reach: as in :class:`~gpa_lsp.advice.unit_pricing.UnitMatch`.
        likely: as there.
    """

    regions: tuple[EliminationRegion, ...]
    hint: Sentence
    caveats: tuple[Sentence, ...] = ()
    reasons: tuple[Sentence, ...] = ()
    relieves: tuple[MemoryLevel, ...] = ()
    keeps_instructions: bool = False
    leaves: Mapping[str, float] | None = None
    reach: float | None = None
    likely: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class HidingRegion:
    """Latency in one place that rearranged code could fill.

    Attributes:
        scope: where.
        samples: matched samples, for the share.
        latency_samples: M^L of this region.
        active_samples: A that can fill it: samples in issuing cycles of this scope and the scopes nested in it, less what dependences or
            barriers forbid.
        hotspots: every matched pair.
        hint: what to do here; empty when the match's hint says it.
    """

    scope: Scope
    samples: float
    latency_samples: float
    active_samples: float
    hotspots: tuple[Hotspot, ...]
    hint: Sentence = NOTHING

    @property
    def weight(self) -> float:
        """What regions of one match are compared by."""
        return self.samples


@dataclass(frozen=True, slots=True, kw_only=True)
class HidingMatch:
    """Latency that rearranged code could fill: priced by GPA Equations 4 and 5.

    Attributes:
        regions: disjoint in matched samples.
        active_samples: A that all regions together can draw from; a region nested in another one draws from the same.
        hint: what to do.
        caveats: see :class:`~gpa_lsp.advice.model.Advice`.
        reasons: what the match rests on.
        overlap: part of the matched waits for global memory that goes because more loads are in flight, which takes no issuing cycles; 0 for a
            change that only moves other instructions.
    """

    regions: tuple[HidingRegion, ...]
    active_samples: float
    hint: Sentence
    caveats: tuple[Sentence, ...] = ()
    reasons: tuple[Sentence, ...] = ()
    overlap: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelMatch:
    """Another number of blocks or threads: priced by GPA Equations 6 to 10.

    Attributes:
        scope: the kernel.
        warps_per_scheduler: W, active warps of one scheduler now.
        new_warps_per_scheduler: W_new.
        issue_ratio: R_I, issued samples of all samples.
        scales_warps: Equation 10 with 1 / C_W (block increase: the same work in more, smaller blocks); False for more resident warps of the
            same size, which gain only C_I.
        factor: f of Equation 10.
        bound: what can be reached at most.
        bound_reason: what sets it.
        hint: what to do, with the concrete numbers.
        caveats: see :class:`~gpa_lsp.advice.model.Advice`.
        reasons: what the match rests on.
    """

    scope: Scope
    warps_per_scheduler: float
    new_warps_per_scheduler: float
    issue_ratio: float
    scales_warps: bool
    factor: float
    bound: float
    bound_reason: Sentence
    hint: Sentence
    caveats: tuple[Sentence, ...] = ()
    reasons: tuple[Sentence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleMatch:
    """A part of the run in which hardware has nothing to do (tail, imbalance, idle lanes): priced by the time it takes.

    Attributes:
        scope: the kernel.
        saved_ratio: part of the run time that would go, 0..1.
        saved_ratio_low: lower end, where the figures leave a range; the same number otherwise.
        saved_ratio_high: upper end.
        bound: largest speedup possible.
        bound_reason: what sets it.
        hint: what to do, with the concrete numbers.
        caveats: see :class:`~gpa_lsp.advice.model.Advice`.
        reasons: what the match rests on: formula and source.
    """

    scope: Scope
    saved_ratio: float
    saved_ratio_low: float
    saved_ratio_high: float
    bound: float
    bound_reason: Sentence
    hint: Sentence
    caveats: tuple[Sentence, ...] = ()
    reasons: tuple[Sentence, ...] = ()
