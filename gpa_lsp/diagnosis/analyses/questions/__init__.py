"""The analyses: each file defines ``ANALYSIS``, one question. Adding a file adds a question."""

from collections.abc import Callable

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.facts import KernelFacts


class Analysis(Struct, frozen=True, kw_only=True):
    """One question."""

    name: str  # in snake case, the module's name
    order: int  # answers are read by ascending order
    answer: Callable[[KernelFacts], Answer]  # asks it; never raises for what a kernel lacks, but says so in the answer
