"""The blamers: each file defines ``BLAMER``, one way of finding the cause of a sample. Adding a file adds a blamer."""

from typing import Protocol, runtime_checkable

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.blame.model import BlameEdges, Unattributed
from gpa_lsp.blame.view import FunctionView
from gpa_lsp.blame.work import WorkBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyGraph:
    """Who was taken into account, before and after pruning, for the node coverage; pairs are unique.

    Attributes:
        before: (use, def) rows before pruning, reasons that stay with their instruction left out.
        after: after pruning; a subset of ``before``.
    """

    before: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionBlame:
    """What a blamer found in one function. Rows are instruction numbers of the function, groups count from 0.

    Attributes:
        edges: who is blamed.
        unattributed: samples without a cause.
        dependencies: for the coverage.
    """

    edges: BlameEdges
    unattributed: Unattributed
    dependencies: DependencyGraph


@runtime_checkable
class Blamer(Protocol):
    """One way of finding causes.

    Attributes:
        name: as on the command line.
        description: one sentence.
    """

    name: str
    description: str

    def blame(self, view: FunctionView, budget: WorkBudget) -> FunctionBlame:
        """Find the causes of all samples of a function; conservation holds per row and reason, whatever the budget."""
        ...
