"""The optimizers: each file defines ``OPTIMIZER``, one remedy. Adding a file adds a remedy.

An optimizer is of one of five kinds, by what it matches; the kind decides the formula, and a match of one kind given to the formula of
another does not type-check.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from gpa_lsp.diagnosis.advice.matches import EliminationMatch, HidingMatch, IdleMatch, ParallelMatch
from gpa_lsp.diagnosis.advice.model import Advice, Category, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.naming import name_code
from gpa_lsp.diagnosis.advice.pricing import (
    Label,
    price_elimination,
    price_hiding,
    price_idle,
    price_parallel,
)
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, Sentence, list_of, say

Match = TypeVar("Match")

# Why an optimizer that reads instructions does not apply
DISASSEMBLY_FAILED = say("the code could not be disassembled")

# Why one that needs limits of the hardware does not apply
NO_ARCHITECTURE = say("no table describes this architecture")

# Why one that looks at the grid does not apply
NO_GRID = say("the profile does not record the number of blocks and SMs")

# Why more warps are not priced
NO_STATES = say("the profile has neither stall samples nor warp states, which say how often warps issue")


class Optimizer(ABC):
    """One remedy."""

    name: ClassVar[str]  # in snake case, the module's name
    title: ClassVar[str]  # a few words for people
    category: ClassVar[Category]  # what has to be changed
    group: ClassVar[str]  # name of the alternatives that share samples with it
    needs_samples: ClassVar[bool] = True  # it cannot match or price without stall samples
    # per-instruction counters without which it cannot match (:data:`gpa_lsp.kernel.place.COUNTERS`)
    needs_counters: ClassVar[tuple[str, ...]] = ()
    # metrics of the launch without which it cannot match; ``ncu --metrics`` collects them
    needs_metrics: ClassVar[tuple[str, ...]] = ()
    # it cannot match or price without knowing which samples were taken without issue
    needs_split: ClassVar[bool] = False
    is_outside: ClassVar[bool] = False  # it changes other launches or how the grid divides, not the kernel's code
    is_compiled: ClassVar[bool] = False  # the compiler makes its edit, and makes none with -G
    needs_grid: ClassVar[bool] = False  # it cannot match without knowing blocks and threads of the launch

    @abstractmethod
    def advise(self, subject: Subject) -> Advice | Silence:
        """Match and price."""

    def silent(self, stage: SilenceStage, message: Sentence) -> Silence:
        """Why it does not apply."""
        return Silence(optimizer=self.name, stage=stage, message=message)

    def unmatched(self, message: Sentence) -> Silence:
        """Why its pattern is not there."""
        return self.silent(SilenceStage.NOT_MATCHED, message)

    def find_lack(self, subject: Subject, counters: Iterable[str], metrics: Iterable[str]) -> Silence | None:
        """Why it does not apply where the profile lacks one of these; None where it has all."""
        lacking = [name for name in counters if name not in subject.rows.counters]
        unknown = [name for name in metrics if subject.metric(name) is None]
        if not lacking and not unknown:
            return None
        missing = list_of([*(name.replace("_", " ") for name in lacking), *map(name_code, unknown)])
        option = Code(text="--set full" if lacking else f"--metrics {','.join(unknown)}")
        message = say("the profile lacks {missing}; record with {option}", missing=missing, option=option)
        return self.silent(SilenceStage.NO_METRICS, message)

    @property
    def label(self) -> Label:
        """What an advice of this optimizer is called."""
        return Label(optimizer=self.name, title=self.title, category=self.category, group=self.group)


class _MatchingOptimizer(Optimizer, Generic[Match]):
    """Finds a match and prices it by the formula of its kind."""

    @abstractmethod
    def match(self, subject: Subject) -> Match | Silence:
        """What it matches, or why nothing."""

    @abstractmethod
    def price(self, subject: Subject, match: Match) -> Advice | Silence:
        """What it gains."""

    def advise(self, subject: Subject) -> Advice | Silence:
        """Match and price."""
        found = self.match(subject)
        return found if isinstance(found, Silence) else self.price(subject, found)


class EliminationOptimizer(_MatchingOptimizer[EliminationMatch]):
    """Finds stalls and work that a change would remove (GPA Equation 2)."""

    def price(self, subject: Subject, match: EliminationMatch) -> Advice | Silence:
        """What it gains."""
        return price_elimination(subject, self.label, match)


class HidingOptimizer(_MatchingOptimizer[HidingMatch]):
    """Finds latency that rearranged code could fill (GPA Equations 4 and 5)."""

    needs_split = True

    def price(self, subject: Subject, match: HidingMatch) -> Advice | Silence:
        """What it gains."""
        return price_hiding(subject, self.label, match)


class ParallelOptimizer(_MatchingOptimizer[ParallelMatch]):
    """Finds a better number of blocks or threads (GPA Equations 6 to 10)."""

    needs_grid = True

    def price(self, subject: Subject, match: ParallelMatch) -> Advice | Silence:
        """What it gains."""
        return price_parallel(subject, self.label, match)


class IdleOptimizer(_MatchingOptimizer[IdleMatch]):
    """Finds hardware that has nothing to do for a part of the run."""

    def price(self, subject: Subject, match: IdleMatch) -> Advice | Silence:
        """What it gains."""
        return price_idle(subject, self.label, match)
