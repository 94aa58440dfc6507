"""Questions to a trace: each file defines ``QUESTION``. Adding a file adds a question."""

from collections.abc import Callable

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.traces.results import TraceAnalyses


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuestion:
    """One question.

    Attributes:
        name: in snake case, the module's name.
        order: answers are read by ascending order.
        answer: asks it; never raises for what a trace lacks, but says so. Titles end with where the numbers come from, ``(emulated)`` or
            ``(predicted)``, so that they are never taken for measured ones. There are no marks: PTX has no pc, and
            :mod:`gpa_lsp.traces.line_facts` has the lines.
    """

    name: str
    order: int
    answer: Callable[[TraceAnalyses], Answer]
