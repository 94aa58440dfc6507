"""What comparing two reports produces: a :class:`Comparison`.

Times of parts are shares of samples times the kernel's duration: samples are taken at a fixed rate, so a part's share of them is its share of
the time. Durations are compared in SM cycles where both reports have them, because profilers lock clocks, and do so differently.
"""

from msgspec import Struct

from gpa_lsp.diagnosis.advice.model import Advice
from gpa_lsp.foundation.prose import NOTHING, Sentence
from gpa_lsp.report.changes import PartChange, TimeChange, Verdict
from gpa_lsp.report.differences import Difference
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.taken import AdviceFate


class AdviceOutcome(Struct, frozen=True, kw_only=True):
    """A piece of advice given before, and what became of it."""

    advice: Advice  # as it was given
    fate: AdviceFate  # whether it was taken, as far as code and counters tell
    # what differs that tells, or would have to differ if it is still open; empty where nothing can tell
    signs: tuple[Difference, ...]
    before_ratio: float  # share of the samples before that it is about
    # share of the samples after that the same optimizer's advice is about; None where there are no samples, or nobody counted because something else
    # forbids the advice
    after_ratio: float | None
    estimate: float  # the speedup it promised
    # the kernel's speedup, by whatever was changed, for advice that was taken; None otherwise and when unknown
    achieved: float | None


class KernelComparison(Struct, frozen=True, kw_only=True):
    """One kernel in both reports."""

    before: KernelReport  # the kernel before
    after: KernelReport  # the kernel after
    verdict: Verdict  # what became of its time
    time: TimeChange | None  # None when one of the two has none, or they did not do the same work
    instructions_ratio: float | None  # executed warp instructions after / before; None where not counted
    # of launch, code and counters; only what changed, and nothing where code and launch are the same
    differences: tuple[Difference, ...]
    reasons: tuple[PartChange, ...]  # by stall reason, largest change first; empty where one of the two has no samples
    lines: tuple[PartChange, ...]  # by source line, largest change first; empty where one of the two has no samples
    outcomes: tuple[AdviceOutcome, ...]  # of the advice given before, in its order
    new_advice: tuple[Advice, ...]  # advice given now by optimizers that had none before
    # why the two are not compared, or what may differ besides the code; empty where nothing is known to
    note: Sentence = NOTHING
    no_stalls: Sentence = NOTHING  # why nothing is said of stalls; empty where both have samples


class LikelyPair(Struct, frozen=True, kw_only=True):
    """Two kernels of different names that could be one, before and after."""

    before: KernelReport  # in the report before only
    after: KernelReport  # in the report after only
    likeness: float  # 0..1
    why: Sentence  # what they have in common, clauses


class Comparison(Struct, frozen=True, kw_only=True):
    """Two reports side by side."""

    kernels: tuple[KernelComparison, ...]  # pairs, longest time before first
    only_before: tuple[KernelReport, ...]  # kernels that are gone
    only_after: tuple[KernelReport, ...]  # kernels that are new
    likely_pairs: tuple[LikelyPair, ...] = ()  # of these, the ones that look alike and were not compared
