"""The list of kernels says what each is closest to, and what limits it, in the words of the editor's lens."""

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.model import BusyUnit
from gpa_lsp.document.html_report.page import build_groups, find_nearest_roof, list_facts
from gpa_lsp.document.layout import UNBROKEN
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.report.model import KernelReport
from tests.analyses_samples import ANALYSES
from tests.render.advice_examples import LIMITER
from tests.report_builder import build_kernel, build_report


def make_kernel(busiest: BusyUnit | None) -> KernelReport:
    assert ANALYSES.roofline is not None
    assert ANALYSES.roofline.whole is not None
    whole = replace(ANALYSES.roofline.whole, busiest=busiest)
    return replace(
        build_kernel("k.cu:3  EXIT  ; selected=3"),
        analyses=replace(ANALYSES, roofline=replace(ANALYSES.roofline, whole=whole)),
    )


def test_a_unit_nearer_to_full_than_any_roof_stands_in_the_list() -> None:
    unit = BusyUnit(name="L1 load/store wavefronts", is_memory=True, share_ratio=0.9, ceiling_ratio=0.97)
    meter = find_nearest_roof(make_kernel(unit))
    assert meter is not None
    assert (meter[0], format_percent(meter[1].ratio), meter[1].ceiling) == (
        "L1 load/store wavefronts",
        "90 %",
        0.97,
    )


def test_without_such_a_unit_it_is_the_roof() -> None:
    nearest = find_nearest_roof(make_kernel(None))
    assert nearest is not None
    assert (nearest[0], format_percent(nearest[1].ratio)) == ("DRAM bandwidth", "53 %")


def test_what_limits_a_kernel_is_the_limiters_word() -> None:
    kernel = replace(make_kernel(None), limiter=LIMITER)
    (row,) = build_groups([kernel], {kernel.name: "k"}, {})[0].rows
    assert row.limiter == "Limited by DRAM: 71 % of peak"
    (unknown,) = build_groups([make_kernel(None)], {kernel.name: "k"}, {})[0].rows
    assert unknown.limiter == ""


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
