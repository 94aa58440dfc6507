"""Views of kernels written as text, with issue counts of the test's own."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import fields

from gpa_lsp.diagnosis.blame.edge_list import Edge, Lost
from gpa_lsp.diagnosis.blame.fixed_latency import find_wait_causes
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency
from gpa_lsp.diagnosis.blame.view import FunctionView, view_function
from gpa_lsp.diagnosis.blame.walk_back import find_other_causes
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.kernel.model import Kernel
from tests.rows.written import write_kernel


def view_kernel(kernel: Kernel, issue_counts: Sequence[float] | None = None) -> FunctionView:
    """The view of a kernel's own function; without counts everything issues alike."""
    function = kernel.functions[0]
    counts = np.ones(len(function.pc_offsets)) if issue_counts is None else np.array(issue_counts, dtype=np.float64)
    found = view_function(kernel, function, counts)
    assert found is not None
    return found


def view_text(
    text: str, compute_capability: tuple[int, int] = (8, 6), *, issue_counts: Sequence[float] | None = None
) -> FunctionView:
    """The view of the one function that a text in the notation of :mod:`tests.rows.written` describes."""
    return view_kernel(write_kernel(text, compute_capability=compute_capability), issue_counts)


def list_edges(edges: BlameEdges) -> list[Edge]:
    """Columns as objects, in their order."""
    rows = zip(*(getattr(edges, field.name).tolist() for field in fields(BlameEdges)), strict=True)
    return [Edge(*row[:3], BlameCategory(row[3]), Dependency(row[4]), *row[5:]) for row in rows]


def blame_wait(view: FunctionView, budget: WorkBudget) -> list[Edge]:
    """The causes of ``wait`` as objects."""
    return list_edges(find_wait_causes(view, budget))


def blame_other_reasons(view: FunctionView, budget: WorkBudget) -> tuple[list[Edge], list[Lost]]:
    """The causes of all samples but those of scoreboards and ``wait``, as objects."""
    edges, lost = find_other_causes(view, budget)
    return list_edges(edges), lost
