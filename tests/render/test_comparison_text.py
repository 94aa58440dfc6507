"""A comparison as people and programs read it."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.model import Confidence, Limit, Limiter, LimiterKind
from gpa_lsp.document.comparison_view import (
    build_comparison,
    describe_limiters,
    describe_range,
    make_comparison_document,
)
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.foundation.prose import say
from gpa_lsp.report.changes import TimeChange
from gpa_lsp.report.compare import Comparison, compare_kernels, compare_reports
from tests.report.test_compare import ADVICE, AFTER, BEFORE, measured, named, without_samples
from tests.report_builder import build_kernel, build_report


def write(comparison: Comparison, width: int | None = None) -> str:
    return write_plain(build_comparison(comparison, PlaceNames()), width)


def limited(kind: LimiterKind, unit: str = "", ratio: float | None = None) -> Limiter:
    limit = Limit(unit="dram", label="DRAM", busy_ratio=0.9, sustained_ratio=0.95)
    return Limiter(
        kind=kind,
        unit=unit,
        busy_ratio=ratio,
        next=None,
        next_factor=None,
        confidence=Confidence.SURE,
        sentence=say("It is so."),
        limits=(limit,),
    )


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            limited(LimiterKind.LATENCY, "long_scoreboard", 0.4),
            limited(LimiterKind.UNIT, "dram", 0.9),
            "limited by: latency, long_scoreboard (40 %) → DRAM (90 %)",
        ),
        (
            limited(LimiterKind.BUILD),
            limited(LimiterKind.UNIT, "l2_slice", 0.98),
            "limited by: a build without optimization → one slice of L2 (98 %)",
        ),
        (limited(LimiterKind.PARALLELISM, "", 0.5), None, "limited by: parallelism (50 %) → unknown"),
        (None, limited(LimiterKind.UNKNOWN), ""),
    ],
)
def test_what_limits_the_kernel_before_and_after(before: Limiter | None, after: Limiter | None, words: str) -> None:
    kernels = (replace(build_kernel(BEFORE), limiter=before), replace(build_kernel(AFTER), limiter=after))
    found = compare_kernels(*kernels)
    assert describe_limiters(found) == words
    text = write(Comparison(kernels=(found,), only_before=(), only_after=()))
    assert ("limited by" in text) == bool(words)


def test_without_samples_no_stall_is_said_to_be_gone() -> None:
    before = measured(build_kernel(BEFORE, advice=ADVICE), 8e6, unit="ns")
    after = measured(without_samples(build_kernel(AFTER)), 4e6, unit="ns")
    text = write(compare_reports(build_report(before), build_report(after)))
    assert "  stalls unknown: the report after has no samples" in text
    assert "by stall reason" not in text
    assert "0 %" not in [cell for line in text.splitlines() for cell in line.split("  ")]


def test_kernels_that_look_alike_are_named_and_why() -> None:
    found = compare_reports(build_report(named("conv_base")), build_report(named("conv_tiled", AFTER)))
    text = write(found)
    assert "could be compared: conv_base with conv_tiled (the same number of threads" in text
    assert "add --yes" in text
    assert make_comparison_document(found)["likely_pairs"][0]["after"] == "conv_tiled"


def test_two_kernels_are_both_named() -> None:
    report = build_report(named("gemm_naive"), named("gemm_tiled", AFTER))
    text = write(compare_reports(report, report, [("naive", "tiled")]))
    assert text.startswith("gemm_naive → gemm_tiled")


@pytest.mark.parametrize(
    ("low", "high", "said"), [(1.94, 2.06, "between 1.94× and 2.06× (x)"), (4.801, 4.803, "4.80× (x)")]
)
def test_a_range_whose_ends_are_written_alike_is_one_number(low: float, high: float, said: str) -> None:
    time = TimeChange(before=2.0, after=1.0, unit="ns", speedup=low, low=low, high=high, basis="x")
    assert describe_range(time) == said
