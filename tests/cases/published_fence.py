"""Fences ``published``: what GPA says about the kernel as published, its causes and its estimates, in the notation of fences ``advice``.

Instructions are named as in fences ``blame``, of the blamer ``paper``. A line ``coverage 0.60 -> 0.80`` gives the single-dependency coverage before
and after pruning.
"""

import re

from gpa_lsp.diagnosis.advice.gpa import advise_as_published
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.kernel.model import Kernel
from tests.cases.advice_fence import compare_advice, is_equal

_COVERAGE = re.compile(r"^coverage (?P<before>[\d.]+) -> (?P<after>[\d.]+)\n", re.MULTILINE)


def check_published(kernel: Kernel, _: KernelBlame, text: str) -> None:
    """Compare what GPA says as published with a fence.

    Raises:
        ValueError: a line is none of the notation.
        AssertionError: anything differs.
    """
    blame = blame_kernel(kernel, "paper")
    if found := _COVERAGE.search(text):
        coverage = blame.coverage
        assert is_equal(found["before"], coverage.before_ratio), coverage
        assert is_equal(found["after"], coverage.after_ratio), coverage
        text = _COVERAGE.sub("", text)
    if text.strip():
        compare_advice(kernel, *advise_as_published(Subject(kernel, blame)), text)
