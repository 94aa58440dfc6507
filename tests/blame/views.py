"""Views of functions written as text."""

import numpy as np

from gpa_lsp.blame.view import FunctionView, view_function
from tests.kernel.written import write_kernel


def view(text: str, compute_capability: tuple[int, int] = (8, 6)) -> FunctionView:
    """The view of the one function that a text in the notation of :mod:`tests.kernel.written` describes."""
    kernel = write_kernel(text, compute_capability=compute_capability)
    function = kernel.functions[0]
    found = view_function(kernel, function, np.ones(len(function.pc_offsets)))
    assert found is not None
    return found
