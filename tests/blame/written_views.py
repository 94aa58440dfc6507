"""Views of kernels written as text, with issue counts of the test's own."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpa_lsp.diagnosis.blame.fixed_latency import find_wait_causes
from gpa_lsp.diagnosis.blame.model import BlameEdges, Unattributed
from gpa_lsp.diagnosis.blame.view import FunctionView, WorkBudget, view_function
from gpa_lsp.kernel.model import Kernel
from tests.advice.subjects import list_rows
from tests.rows.written import write_kernel


def view_kernel(kernel: Kernel, issue_counts: Sequence[float] | None = None) -> FunctionView:
    """The view of a kernel's own function; without counts everything issues alike."""
    function = kernel.functions[0]
    counts = np.ones(len(function.pc_offsets)) if issue_counts is None else np.array(issue_counts, dtype=np.float64)
    found = view_function(kernel, 0, counts)
    assert found is not None
    return found


def view_text(
    text: str, compute_capability: tuple[int, int] = (8, 6), *, issue_counts: Sequence[float] | None = None
) -> FunctionView:
    """The view of the one function that a text in the notation of :mod:`tests.rows.written` describes."""
    return view_kernel(write_kernel(text, compute_capability=compute_capability), issue_counts)


def blame_wait(view: FunctionView, budget: WorkBudget) -> list[Any]:
    """The causes of ``wait`` as rows."""
    return list_rows(find_wait_causes(view, budget))


def check_conserved(view: FunctionView, edges: BlameEdges, lost: Unattributed, left_out: Iterable[str] = ()) -> None:
    """Every sample of every instruction and reason is blamed, or lost, once; of reasons that are left out none."""
    for kind in ("all_samples", "latency_samples"):
        found = np.zeros(view.all_samples.shape)
        np.add.at(found, (edges.use_row, edges.reason), getattr(edges, kind))
        np.add.at(found, (lost.row, lost.reason), getattr(lost, kind))
        expected = getattr(view, kind).astype(np.float64)
        expected[:, [view.reasons.index(name) for name in left_out]] = 0
        np.testing.assert_allclose(found, expected, atol=1e-9)
