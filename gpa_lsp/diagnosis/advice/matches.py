"""Matches of optimizers, for pricing. Each kind of match has one kind of formula (:func:`~gpa_lsp.diagnosis.advice.pricing.price`)."""

from collections.abc import Mapping
from math import inf

from msgspec import Struct, field

from gpa_lsp.diagnosis.advice.model import Category, Hotspot
from gpa_lsp.diagnosis.advice.residency import AS_NOW, Filling
from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.kernel.scopes import Scope


class EliminationRegion(Struct, frozen=True, kw_only=True):
    """Stalls in one place that a change would remove."""

    scope: Scope  # where
    samples: float  # M of this region: all samples, issued or not, that would go. Regions of one match never count a sample twice.
    latency_samples: float | None  # of these, without issue; None when unknown
    hotspots: tuple[Hotspot, ...]  # matched pairs, at least the most sampled ones, which are shown
    hint: Sentence = NOTHING  # what to do here; empty when the match's hint says it
    counted: float = 0.0  # without samples, what counters say is too much here; compared with the other regions' only
    by_reason: Mapping[str, float] = field(default_factory=dict)  # stall reason → samples of it

    @property
    def weight(self) -> float:
        """Weight among the regions of one match: samples, or what was counted."""
        return self.samples or self.counted


class HidingRegion(Struct, frozen=True, kw_only=True):
    """Latency in one place that rearranged code could fill."""

    scope: Scope  # where
    samples: float  # matched samples, for the share
    latency_samples: float  # M^L of this region
    # A that can fill it: samples in issuing cycles of this scope and the scopes nested in it, less what dependences or barriers forbid
    active_samples: float
    hotspots: tuple[Hotspot, ...]  # every matched pair
    hint: Sentence = NOTHING  # what to do here; empty when the match's hint says it

    @property
    def weight(self) -> float:
        """Weight among the regions of one match."""
        return self.samples


class Match(Struct, frozen=True, kw_only=True):
    """Common part of all matches."""

    hint: Sentence  # what to do, with the concrete numbers
    caveats: tuple[Sentence, ...] = ()  # what it would break or cannot know, one sentence each
    reasons: tuple[Sentence, ...] = ()  # what the match rests on
    title: str = ""  # of this case; empty for the optimizer's own
    category: Category | None = None  # of this case; None for the optimizer's own


class EliminationMatch(Match, frozen=True, kw_only=True):
    """Stalls and work that a change would remove: priced by GPA Equation 2, and by what it leaves for each unit."""

    regions: tuple[EliminationRegion, ...]  # disjoint in samples; empty where it is about the whole kernel
    # unit → the part of its work that stays (:func:`~gpa_lsp.diagnosis.advice.work_left.count_work_left`); those that are not named keep all
    work: Mapping[str, float] = field(default_factory=dict)
    # the same where all goes well, for the bound; empty where that is no less
    least: Mapping[str, float] = field(default_factory=dict)
    most: float = inf  # largest speedup of the change itself, if units allowed it
    # stall reason → the part of a warp's time in that state that would go, in addition to the regions
    states: Mapping[str, float] = field(default_factory=dict)
    added: float = 0.0  # waiting time that the change adds, as a part of the warps' time
    filling: Filling = AS_NOW  # how many times as well its grid and blocks fill the GPU


class HidingMatch(Match, frozen=True, kw_only=True):
    """Latency that rearranged code could fill: priced by GPA Equations 4 and 5."""

    regions: tuple[HidingRegion, ...]  # disjoint in matched samples
    # A that all regions together can draw from; a region nested in another one draws from the same
    active_samples: float
    # part of the matched waits for global memory that goes because more loads are in flight, which takes no issuing cycles (Little's law); 0 for a
    # change that only moves other instructions
    overlap: float = 0.0
    work: Mapping[str, float] = field(default_factory=dict)  # as in :class:`EliminationMatch`


class ParallelMatch(Match, frozen=True, kw_only=True):
    """Another number of blocks or threads: priced by GPA Equations 6 to 10."""

    warps_per_scheduler: float  # W, active warps of one scheduler now
    new_warps_per_scheduler: float  # W_new
    issue_ratio: float  # R_I, issued samples of all samples
    # Equation 10 with 1 / C_W (block increase: the same work in more, smaller blocks); False for more resident warps of the same size, which gain
    # only C_I
    scales_warps: bool = False
    factor: float = 1.0  # f of Equation 10
    bound: float  # what can be reached at most
    bound_reason: Sentence  # what sets it


class IdleMatch(Match, frozen=True, kw_only=True):
    """A part of the run in which hardware has nothing to do (tail, imbalance, idle lanes): priced by the time it takes."""

    saved_ratio: float  # part of the run time that would go, 0..1
    bound: float  # largest speedup possible
    bound_reason: Sentence  # what sets it


class Remark(Match, frozen=True, kw_only=True):
    """A suggestion without an estimated speedup: nothing can be gained, or the gain is unknown."""

    high: float = 1.0  # upper end of what may be gained
    bound: float  # largest speedup possible
    bound_reason: Sentence = NOTHING  # what sets it
    doubt: Sentence = NOTHING  # why there is no number


AnyMatch = EliminationMatch | HidingMatch | ParallelMatch | IdleMatch | Remark
