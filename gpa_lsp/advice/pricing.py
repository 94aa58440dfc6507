"""From matches to :class:`~gpa_lsp.advice.model.Advice`: shares, estimates with interval and bound, the regions that are shown."""

from dataclasses import dataclass

from gpa_lsp.advice.matches import EliminationMatch, HidingMatch, IdleMatch, ParallelMatch
from gpa_lsp.advice.model import Advice, Category, Silence
from gpa_lsp.advice.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What an optimizer is called; the fields of :class:`~gpa_lsp.advice.model.Advice` of the same names."""

    optimizer: str
    title: str
    category: Category
    group: str


def price_elimination(subject: Subject, label: Label, match: EliminationMatch) -> Advice | Silence:
    """Price stalls that a change would remove."""
    raise NotImplementedError


def price_hiding(subject: Subject, label: Label, match: HidingMatch) -> Advice | Silence:
    """Price latency that rearranged code could fill."""
    raise NotImplementedError


def price_parallel(subject: Subject, label: Label, match: ParallelMatch) -> Advice | Silence:
    """Price another number of blocks or threads."""
    raise NotImplementedError


def price_idle(subject: Subject, label: Label, match: IdleMatch) -> Advice | Silence:
    """Price hardware that has nothing to do."""
    raise NotImplementedError
