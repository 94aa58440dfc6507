"""Parts of the program do not contradict each other on a kernel, for every real report."""

import pytest

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.diagnosis.advice.model import UNPRICED
from gpa_lsp.diagnosis.advice.pricing import NO_GAIN, WIDEST
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.model import Confidence, LimiterKind
from gpa_lsp.document.advice_words import describe_limit, describe_limit_briefly
from gpa_lsp.document.blame_words import describe_bounds
from gpa_lsp.report.model import KernelReport
from tests.real_reports import REPORTS, analyse_report

pytestmark = pytest.mark.corpus

# The first promises what no unit's work bounds, the second nothing.
FULL_RATIO = 0.9  # Of what a unit sustains

SPECULATIVE = frozenset({"debug_build", "library_use"})


def list_kernels() -> list[KernelReport]:
    return [kernel for name in REPORTS for kernel in analyse_report(name).kernels]


def test_where_a_unit_is_full_nothing_that_keeps_its_work_is_advised() -> None:
    full = 0
    for kernel in list_kernels():
        limiter = kernel.limiter
        if limiter is None or kernel.advice is None or limiter.kind is not LimiterKind.UNIT:
            continue
        first = limiter.find(limiter.unit)
        if first is None or limiter.confidence is not Confidence.SURE or first.nearness < FULL_RATIO:
            continue
        full += 1
        for one in kernel.advice.advice:
            left = 1.01 / min(first.nearness, 0.98)
            assert one.relieves_limiter or one.speedup.estimate <= left or one.optimizer in SPECULATIVE, (
                kernel.name,
                one.optimizer,
            )
    assert full >= 5


def test_the_largest_sure_estimate_comes_first_and_what_is_outside_of_the_kernel_last() -> None:
    optimizers = list_optimizers()
    for kernel in list_kernels():
        if kernel.limiter is None or kernel.advice is None or kernel.limiter.kind is LimiterKind.BUILD:
            continue
        places = [
            (optimizers[one.optimizer].is_outside, one.speedup.low <= NO_GAIN, -one.speedup.estimate)
            for one in kernel.advice.advice
        ]
        assert places == sorted(places), kernel.name


def test_a_number_is_neither_wide_nor_begins_at_no_gain() -> None:
    """Kernels with several launch contexts, whose gains are weighted, are among them."""
    kernels = [*list_kernels(), *analyse_report("more_pairs/rtx3080_lab3_part1.ncu-rep").kernels]
    assert any(kernel.contexts for kernel in kernels)
    for kernel in kernels:
        for one in () if kernel.advice is None else kernel.advice.advice:
            is_number = one.speedup.low > NO_GAIN and one.speedup.high <= 1.001 * WIDEST * one.speedup.low
            assert one.speedup.doubt or is_number or one.optimizer in UNPRICED, (kernel.name, one.optimizer)


def find_answer(kernel: KernelReport, analysis: str) -> Answer:
    assert kernel.analyses is not None
    return next(answer for answer in kernel.analyses.answers if answer.analysis == analysis)


def test_more_warps_are_not_called_for_where_a_unit_surely_limits_the_kernel() -> None:
    bound = 0
    for kernel in list_kernels():
        limiter = kernel.limiter
        if limiter is None or limiter.most_speedup is None:
            continue
        bound += 1
        said = " ".join(f"{finding.text} {finding.remedy}" for finding in find_answer(kernel, "occupancy").findings)
        assert "More warps cannot help" in said or "More warps would gain at most" in said, kernel.name
        assert kernel.advice is None or not [
            one
            for one in kernel.advice.advice
            if one.optimizer == "thread_increase" and one.speedup.high > 1.001 * limiter.most_speedup
        ], kernel.name
        assert str(limiter.sentence) in find_answer(kernel, "roofline").summary, kernel.name
    assert bound >= 10


def test_every_view_quotes_the_limiter() -> None:
    known = 0
    for kernel in list_kernels():
        limiter = kernel.limiter
        if limiter is None or kernel.analyses is None:
            continue
        said = limiter.sentence.removesuffix(".")
        summary = next(answer.summary for answer in kernel.analyses.answers if answer.analysis == "limiter")
        assert summary == limiter.sentence
        assert describe_limit(kernel).startswith(said), kernel.name
        assert describe_bounds(kernel).startswith(said), kernel.name
        brief = describe_limit_briefly(kernel)
        assert said.startswith(brief.partition(":")[0]), kernel.name
        known += bool(brief)
    assert known >= 20
