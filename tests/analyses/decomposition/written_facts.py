"""Facts of kernels written as text."""

from collections.abc import Mapping
from typing import Any

from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from tests.rows.written import write_kernel


def write_facts(
    text: str, metrics: Mapping[str, float] | None = None, *, blamed: bool = True, **options: Any
) -> Subject:
    """The facts of a kernel in the notation of :mod:`tests.rows.written`."""
    kernel = write_kernel(text, metrics=metrics, **options)
    return Subject(kernel, blame_kernel(kernel) if blamed else None, None)


def name_state(state: str) -> str:
    """The aggregate of a warp state."""
    return f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio"
