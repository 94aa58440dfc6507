"""Questions to a trace, one file per subject: each defines ``QUESTIONS``, name → :class:`TraceQuestion`."""

from collections.abc import Callable

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.traces.results import TraceAnalyses


class TraceQuestion(Struct, frozen=True, kw_only=True):
    """One question."""

    order: int  # answers are read by ascending order
    # asks it; never raises for what a trace lacks, but says so. Titles end with where the numbers come from, ``(emulated)`` or ``(predicted)``, so
    # that they are never taken for measured ones. There are no marks: PTX has no pc, and :mod:`gpa_lsp.execution.traces.line_facts` has the lines.
    answer: Callable[[TraceAnalyses], Answer]
