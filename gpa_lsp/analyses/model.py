"""Everything the analyses produce for one kernel: :class:`KernelAnalyses`."""

from dataclasses import field

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.analyses.roofline_model import KernelRoofline
from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.packed_records import PackedRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAnalyses(PackedRecord):
    """Everything the analyses say of one kernel.

    Attributes:
        roofline: None when nothing is known of the machine, or nothing was measured.
        answers: one per analysis, in the order to be read.
        problems: analyses that failed.
    """

    roofline: KernelRoofline | None
    answers: tuple[Answer, ...]
    problems: tuple[Problem, ...] = field(default=(), compare=False)

    def find(self, analysis: str) -> Answer | None:
        """The answer of one analysis; None when it was not asked."""
        return next((answer for answer in self.answers if answer.analysis == analysis), None)
