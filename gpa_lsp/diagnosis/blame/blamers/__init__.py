"""The blamers: each file defines ``BLAMER``, one way of finding the cause of a sample. Adding a file adds a blamer."""

from typing import Protocol, runtime_checkable

from msgspec import Struct

from gpa_lsp.diagnosis.blame.model import BlameEdges, Unattributed
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget


class DependencyGraph(Struct, frozen=True, kw_only=True):
    """Who was taken into account, before and after pruning, for the node coverage; pairs are unique."""

    # (use, def) rows before pruning, reasons that stay with their instruction left out
    before: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, int], ...]  # after pruning; a subset of ``before``


class FunctionBlame(Struct, frozen=True, kw_only=True):
    """What a blamer found in one function. Rows are instruction numbers of the function, groups count from 0."""

    edges: BlameEdges  # who is blamed
    unattributed: Unattributed  # samples without a cause
    dependencies: DependencyGraph  # for the coverage


@runtime_checkable
class Blamer(Protocol):
    """One way of finding causes."""

    name: str  # as on the command line
    description: str  # one sentence

    def blame(self, view: FunctionView, budget: WorkBudget) -> FunctionBlame:
        """Find the causes of all samples of a function; conservation holds per row and reason, whatever the budget."""
        ...
