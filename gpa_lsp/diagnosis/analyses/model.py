"""Everything the analyses produce for one kernel: :class:`KernelAnalyses`."""

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.records import PartlyCompared


class KernelAnalyses(PartlyCompared, frozen=True, kw_only=True):
    """Everything the analyses say of one kernel."""

    UNCOMPARED = ("problems",)

    roofline: KernelRoofline | None  # None when nothing is known of the machine, or nothing was measured
    answers: tuple[Answer, ...]  # one per analysis, in the order to be read
    problems: tuple[Problem, ...] = ()  # analyses that failed

    def find(self, analysis: str) -> Answer | None:
        """The answer of one analysis; None when it was not asked."""
        return next((answer for answer in self.answers if answer.analysis == analysis), None)
