"""What comparing two reports produces: a :class:`Comparison`.

Times of parts are shares of samples times the kernel's duration: samples are taken at a fixed rate, so a part's share of them is its share of
the time. Durations are compared in SM cycles where both reports have them, because profilers lock clocks, and do so differently.
"""

from enum import Enum

from gpa_lsp.advice.model import Advice
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.report.changes import PartChange, TimeChange, Verdict
from gpa_lsp.report.model import KernelReport


class AdviceFate(Enum):
    """What became of a piece of advice given before."""

    TAKEN = "taken"
    """The stalls it matched are gone or less than half of what they were, in time, and the code has changed."""
    PARTLY_TAKEN = "partly_taken"
    """They have become clearly less, by a fifth at least."""
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceOutcome:
    """A piece of advice given before, and what became of it.

    Attributes:
        advice: as it was given.
        fate: whether it was taken, as far as the stalls tell.
        before_ratio: part of the old time its stalls took.
        after_ratio: part of the *old* time the same optimizer's stalls take now; None where it still sees its pattern, but something else forbids
            the advice now (a roof that was reached), so that nobody counted them.
        estimate: the speedup it promised.
        achieved: the kernel's speedup, by whatever was changed, for advice that was taken; None otherwise and when unknown.
    """

    advice: Advice
    fate: AdviceFate
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
        time: None when one of the two has none.
        instructions_ratio: executed warp instructions after / before; None where not counted.
        reasons: by stall reason, largest change first.
        lines: by source line, largest change first.
        outcomes: of the advice given before, in its order.
        new_advice: advice given now by optimizers that had none before.
    """

    before: KernelReport
    after: KernelReport
    verdict: Verdict
    time: TimeChange | None
    instructions_ratio: float | None
    reasons: tuple[PartChange, ...]
    lines: tuple[PartChange, ...]
    outcomes: tuple[AdviceOutcome, ...]
    new_advice: tuple[Advice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two reports side by side.

    Attributes:
        kernels: in both, longest time before first.
        only_before: kernels that are gone.
        only_after: kernels that are new.
    """

    kernels: tuple[KernelComparison, ...]
    only_before: tuple[KernelReport, ...]
    only_after: tuple[KernelReport, ...]
