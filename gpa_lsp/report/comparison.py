"""What comparing two reports produces: a :class:`Comparison`.

Times of parts are shares of samples times the kernel's duration: samples are taken at a fixed rate, so a part's share of them is its share of
the time. Durations are compared in SM cycles where both reports have them, because profilers lock clocks, and do so differently.
"""

from gpa_lsp.advice.model import Advice
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import NOTHING, Sentence
from gpa_lsp.report.changes import PartChange, TimeChange, Verdict
from gpa_lsp.report.differences import Difference
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.taken import AdviceFate


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceOutcome:
    """A piece of advice given before, and what became of it.

    Attributes:
        advice: as it was given.
        fate: whether it was taken, as far as code and counters tell.
        signs: what differs that tells, or would have to differ if it is still open; empty where nothing can tell.
        before_ratio: share of the samples before that it is about.
        after_ratio: share of the samples after that the same optimizer's advice is about; None where there are no samples, or nobody counted
            because something else forbids the advice.
        estimate: the speedup it promised.
        achieved: the kernel's speedup, by whatever was changed, for advice that was taken; None otherwise and when unknown.
    """

    advice: Advice
    fate: AdviceFate
    signs: tuple[Difference, ...]
    before_ratio: float
    after_ratio: float | None
    estimate: float
    achieved: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelComparison:
    """One kernel in both reports.

    Attributes:
        before: the kernel before.
        after: the kernel after.
        verdict: what became of its time.
        time: None when one of the two has none, or they did not do the same work.
        note: why the two are not compared, or what may differ besides the code; empty where nothing is known to.
        instructions_ratio: executed warp instructions after / before; None where not counted.
        differences: of launch, code and counters; only what changed, and nothing where code and launch are the same.
        reasons: by stall reason, largest change first; empty where one of the two has no samples.
        lines: by source line, largest change first; empty where one of the two has no samples.
        no_stalls: why nothing is said of stalls; empty where both have samples.
        outcomes: of the advice given before, in its order.
        new_advice: advice given now by optimizers that had none before.
    """

    before: KernelReport
    after: KernelReport
    verdict: Verdict
    time: TimeChange | None
    instructions_ratio: float | None
    differences: tuple[Difference, ...]
    reasons: tuple[PartChange, ...]
    lines: tuple[PartChange, ...]
    outcomes: tuple[AdviceOutcome, ...]
    new_advice: tuple[Advice, ...]
    note: Sentence = NOTHING
    no_stalls: Sentence = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyPair:
    """Two kernels of different names that could be one, before and after.

    Attributes:
        before: in the report before only.
        after: in the report after only.
        likeness: 0..1.
        why: what they have in common, clauses.
    """

    before: KernelReport
    after: KernelReport
    likeness: float
    why: Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two reports side by side.

    Attributes:
        kernels: pairs, longest time before first.
        only_before: kernels that are gone.
        only_after: kernels that are new.
        likely_pairs: of these, the ones that look alike and were not compared.
    """

    kernels: tuple[KernelComparison, ...]
    only_before: tuple[KernelReport, ...]
    only_after: tuple[KernelReport, ...]
    likely_pairs: tuple[LikelyPair, ...] = ()
