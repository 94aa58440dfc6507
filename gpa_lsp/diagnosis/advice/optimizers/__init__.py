"""The optimizers: each file defines ``OPTIMIZER``, one remedy. Adding a file adds a remedy.

An optimizer is what it matches, what of that goes, what it says and what speaks against it: all of these are its match, and the kind of match
decides the formula (:func:`~gpa_lsp.diagnosis.advice.pricing.price`). Everything around that is here, once.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gpa_lsp.diagnosis.advice.matches import AnyMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.naming import name_code
from gpa_lsp.diagnosis.advice.pricing import Label, price
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, Sentence, list_of, say


class NotApplicable(NamedTuple):
    """Reason why a match is of no use, or cannot be told."""

    stage: SilenceStage
    message: Sentence
    contradicted_by: str = ""  # as in :class:`~gpa_lsp.diagnosis.advice.model.Silence`


Found = AnyMatch | Sentence | NotApplicable  # A sentence says why the pattern is not there

# Why one that needs limits of the hardware does not apply
NO_ARCHITECTURE = say("no table describes this architecture")

# Why one that looks at the grid does not apply
NO_GRID = say("the profile does not record the number of blocks and SMs")

# Why more warps are not priced
NO_STATES = say("the profile has neither stall samples nor warp states, which say how often warps issue")


class Optimizer(Label, frozen=True, kw_only=True):
    """One remedy."""

    find: Callable[[Subject], Found]  # its match, or why nothing
    needs_code: bool = True  # it reads instructions
    needs_samples: bool = True  # it cannot match or price without stall samples
    # per-instruction counters without which it cannot match (:data:`gpa_lsp.kernel.place.COUNTERS`)
    needs_counters: tuple[str, ...] = ()
    # metrics of the launch without which it cannot match; ``ncu --metrics`` collects them
    needs_metrics: tuple[str, ...] = ()
    needs_split: bool = False  # it cannot match or price without knowing which samples were taken without issue
    needs_states: bool = False  # it cannot price without knowing how often warps issue
    needs_grid: bool = False  # it cannot match without knowing blocks and threads of the launch
    is_outside: bool = False  # it changes other launches or how the grid divides, not the kernel's code
    # the optimizer that says the same of a launch more exactly: where that speaks, this one is silent
    yields_to: str = ""
    is_compiled: bool = False  # the compiler makes its edit, and makes none with -G

    def match(self, subject: Subject) -> AnyMatch | Silence:
        """Match a kernel, or say why nothing matches."""
        if self.needs_code and not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, say("the code could not be disassembled"))
        found = self.find(subject)
        if isinstance(found, Sentence):
            return self.silent(SilenceStage.NOT_MATCHED, found)
        return self.silent(*found) if isinstance(found, NotApplicable) else found

    def advise(self, subject: Subject) -> Advice | Silence:
        """Match and price."""
        found = self.match(subject)
        return found if isinstance(found, Silence) else price(subject, self, found)

    def silent(self, stage: SilenceStage, message: Sentence, contradicted_by: str = "") -> Silence:
        """Say why this optimizer does not apply."""
        return Silence(optimizer=self.name, stage=stage, message=message, contradicted_by=contradicted_by)


def refuse_unlimiting(subject: Subject, what: str) -> NotApplicable:
    """Refuse a remedy for what does not limit the kernel.

    Args:
        what: with its verb, "lines do".
    """
    why = find_limiter(subject).sentence
    return NotApplicable(SilenceStage.GATED, say("{what} not limit the kernel: {why}", what=what, why=why))


def find_lack(subject: Subject, counters: Iterable[str], metrics: Iterable[str] = ()) -> NotApplicable | None:
    """Find counters and metrics that the profile lacks; None where it has all."""
    lacking = [name for name in counters if name not in subject.rows.counters]
    unknown = [name for name in metrics if subject.metric(name) is None]
    if not lacking and not unknown:
        return None
    missing = list_of([*(name.replace("_", " ") for name in lacking), *map(name_code, unknown)])
    option = Code(text="--set full" if lacking else f"--metrics {','.join(unknown)}")
    return NotApplicable(
        SilenceStage.NO_METRICS,
        say("the profile lacks {missing}; record with {option}", missing=missing, option=option),
    )
