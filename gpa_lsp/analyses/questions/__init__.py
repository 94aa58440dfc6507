"""The analyses: each file defines ``ANALYSIS``, one question. Adding a file adds a question."""

from collections.abc import Callable

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One question.

    Attributes:
        name: in snake case, the module's name.
        order: answers are read by ascending order.
        answer: asks it; never raises for what a kernel lacks, but says so in the answer.
    """

    name: str
    order: int
    answer: Callable[[KernelFacts], Answer]
