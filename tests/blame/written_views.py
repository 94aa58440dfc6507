"""Views of kernels written as text, with issue counts of the test's own."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpa_lsp.diagnosis.blame.fixed_latency import find_wait_causes
from gpa_lsp.diagnosis.blame.view import FunctionView, view_function
from gpa_lsp.diagnosis.blame.work import WorkBudget
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
