"""What different parts say of one kernel, on every real report: they must not contradict each other."""

import pytest

from gpa_lsp.advice.gates import Limit, Standing, is_relief
from gpa_lsp.advice.reliefs import Relief
from gpa_lsp.analyses.answers import Answer
from gpa_lsp.analyses.roofline_model import Roofline
from gpa_lsp.render.roof_words import name_limiter
from gpa_lsp.render.roofline_text import choose_roofline, name_bound
from gpa_lsp.report.model import KernelReport
from tests.e2e.test_advice_corpus import CORPUS, REPORTS, analyse_report

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(CORPUS is None, reason="the corpus of real reports is not at hand"),
]

ANY_WORK = Standing(limit=Limit.COMPUTE, relief=frozenset({Relief.OPERATIONS, Relief.ISSUES, Relief.BYTES}))
"""Everything that lessens some work lessens this."""


def list_kernels() -> list[KernelReport]:
    return [kernel for name in REPORTS for kernel in analyse_report(name).kernels]


def find_line(kernel: KernelReport) -> Roofline | None:
    placed = None if kernel.analyses is None else kernel.analyses.roofline
    return None if placed is None else choose_roofline(placed)


def find_answer(kernel: KernelReport, analysis: str) -> Answer:
    assert kernel.analyses is not None
    return next(answer for answer in kernel.analyses.answers if answer.analysis == analysis)


def test_the_advisor_and_the_roofline_give_a_kernel_one_name() -> None:
    named = 0
    for kernel in list_kernels():
        line = find_line(kernel)
        if line is not None and kernel.advice is not None:
            assert name_limiter(kernel.advice) == name_bound(line), kernel.name
            named += name_bound(line) is not None
    assert named >= 20


def test_no_estimate_is_above_the_headroom_unless_it_lessens_work() -> None:
    above = set()
    for kernel in list_kernels():
        line = find_line(kernel)
        if line is None or line.headroom is None or kernel.advice is None:
            continue
        for one in kernel.advice.advice:
            if one.speedup.estimate > 1.02 * line.headroom:
                assert is_relief(ANY_WORK, one.optimizer), (kernel.name, one.optimizer)
                above.add(one.optimizer)
    assert above == {"memory_transaction_reduction", "fast_math"}


def test_more_warps_are_not_called_for_where_a_kernel_is_bound_by_memory() -> None:
    bound = 0
    for kernel in list_kernels():
        line = find_line(kernel)
        if line is None or name_bound(line) != "memory-bound":
            continue
        bound += 1
        said = " ".join(f"{finding.text} {finding.remedy}" for finding in find_answer(kernel, "occupancy").findings)
        assert "More warps cannot help" in said or "more would not help" in said, kernel.name
        assert kernel.advice is None or not [
            one for one in kernel.advice.advice if one.optimizer == "thread_increase"
        ], kernel.name
        assert "latenc" not in find_answer(kernel, "roofline").summary, kernel.name
    assert bound >= 10
