"""The head of the page: what limits each kernel, in the words of the editor's lens, and what is said once."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.questions.occupancy import draw_bars
from gpa_lsp.document.html_report.page import build_groups, list_facts, render_html_report
from gpa_lsp.document.layout import UNBROKEN
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.foundation.prose import say
from tests.analyses_samples import ANALYSES
from tests.render.advice_examples import LIMITER
from tests.report_builder import build_kernel, build_report


def test_what_limits_a_kernel_is_the_limiters_word() -> None:
    """Kernels of several launches have another share of a ceiling over all of them: one figure in the list, that of the verdict."""
    plain = build_kernel("k.cu:3  EXIT  ; selected=3")
    kernel = replace(plain, limiter=LIMITER, analyses=ANALYSES)
    (row,) = build_groups([kernel], {kernel.name: "k"}, {})[0].rows
    words, busy = row.limit
    assert words == "DRAM" and busy is not None and format_percent(busy.ratio) == "71 %"
    (unknown,) = build_groups([plain], {kernel.name: "k"}, {})[0].rows
    assert unknown.limit == ("", None)


def test_occupancy_in_the_list_is_the_achieved_one() -> None:
    answer = Answer(analysis="occupancy", title="Occupancy", summary=say("so"), bars=draw_bars(1.0, 0.75))
    kernel = replace(build_kernel("k.cu:3  EXIT  ; selected=3"), analyses=replace(ANALYSES, answers=(answer,)))
    (row,) = build_groups([kernel], {kernel.name: "k"}, {})[0].rows
    assert row.occupancy is not None and row.occupancy.ratio == 0.75


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_told_at_a_kernel_is_not_told_above(count: int) -> None:
    """Warnings of several kernels stand at the head too, because one kernel is open."""
    kernel, other = build_kernel("k.cu:3  EXIT  ; selected=3"), build_kernel("o.cu:3  EXIT  ; selected=3", name="o")
    problems = [
        Problem(severity=severity, message=f"the {severity.value}", kernel=kernel.mangled_name)
        for severity in (ProblemSeverity.NOTE, ProblemSeverity.WARNING)
    ]
    page = render_html_report(build_report(*(kernel, other)[:count], problems=problems))
    assert ("the warning" in page) == (count > 1) and "the note" not in page  # what is said at the kernel is packed


def test_what_was_measured_apart_is_never_added_up() -> None:
    """Shares are of the time of one profile on one GPU; the head of the page has no time of all."""
    one = build_kernel(name="f", durations_ns=(3e6,))
    other = replace(build_kernel(name="g", durations_ns=(1e6,)), device=replace(one.device, name="another GPU"))
    both = [one, build_kernel(name="h", durations_ns=(1e6,)), other]
    first, second = build_groups(both, {kernel.name: kernel.name for kernel in both}, {})
    assert [format_percent(row.share.ratio) for row in first.rows if row.share is not None] == ["75 %", "25 %"]
    assert [format_percent(row.share.ratio) for row in second.rows if row.share is not None] == ["100 %"]
    assert "another GPU" in second.title.replace(UNBROKEN, " ")
    assert "Time" not in dict(list_facts(build_report(*both)))
    assert dict(list_facts(build_report(*both[:2])))["Time"] == "4.00 ms"
