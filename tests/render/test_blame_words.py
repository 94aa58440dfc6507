"""Sentences on a kernel's limit, the basis of the answer and the profiler's own estimates."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.model import IssueCounts
from gpa_lsp.document.advice_view import build_estimate_table, convert_saving
from gpa_lsp.document.blame_words import describe_basis, describe_bounds, measure_causes
from gpa_lsp.report.model import KernelReport, RuleNote
from tests.report_builder import build_kernel

LISTING = """
    k.cu:1  LDG.E R2, [R4.64]  ; selected=10 lg_throttle=20
    k.cu:2  FADD R2, R2, R3    ; long_scoreboard=60 wait=8 not_selected=2
"""


def grounds(kernel: KernelReport) -> dict[str, str]:
    return dict(describe_basis(kernel))


@pytest.mark.parametrize(
    ("listing", "blame", "words"),
    [
        (LISTING, "1 <- 0 long_scoreboard memory_local",
         "stalled on data from local memory (spills, stack) (60 %), the full queue for global and local memory (20 %)"),
        (LISTING, None, "mostly long_scoreboard 60 %, lg_throttle 20 %"),
        ("k.cu:1  NOP  ; selected=5", "", "issuing, not stalled"),
        ("k.cu:1  NOP  ; selected=5", None, "issuing, not stalled"),
        ("", "", ""),
    ],
    ids=["blamed", "unblamed", "no stall blamed", "no stall", "no samples"],
)  # fmt: skip
def test_what_bounds_a_kernel(listing: str, blame: str | None, words: str) -> None:
    assert describe_bounds(build_kernel(listing, blame=blame)) == words


def test_causes_add_up_with_what_is_unattributed() -> None:
    kernel = build_kernel(LISTING, blame="1 <- 0 long_scoreboard=50\n1 <- ? long_scoreboard=10")
    assert kernel.blame is not None
    ratios = sum(ratio for _, ratio in measure_causes(kernel, kernel.blame))
    assert ratios == pytest.approx(0.9)


def test_the_basis_of_the_attribution() -> None:
    kernel = build_kernel(LISTING, blame="1 <- ? long_scoreboard=10 no_code\n1 <- ? wait=3 work_bound")
    found = grounds(kernel)
    assert found["attribution"].startswith("by scoreboard; single-dependency coverage 62 % → 94 % of 2 instructions; ")
    assert found["unattributed"] == (
        "13 % of the samples: 10 (their code is not in the profile), 3 (in a function too large to search)"
    )
    assert found["issue counts"] == "sampled: no execution counts"
    assert found["wait check"] == "correlation 0.980 over 3 instructions; 100 samples measured, 98 predicted"
    assert grounds(build_kernel(LISTING)) == {}


def test_what_is_not_known_is_not_claimed() -> None:
    kernel = build_kernel(LISTING, blame="")
    assert kernel.blame is not None
    unknown = replace(
        kernel.blame.coverage, before_ratio=None, after_ratio=None, group_ratio=None, explained_ratio=None
    )
    check = replace(kernel.blame.wait_check, correlation=None) if kernel.blame.wait_check else None
    counts = kernel.blame.issue_counts.counts
    exact = IssueCounts(counts=counts, is_exact=True, why="", chi_square_per_row=1.04)
    found = grounds(
        replace(kernel, blame=replace(kernel.blame, coverage=unknown, wait_check=check, issue_counts=exact))
    )
    assert found["attribution"] == "by scoreboard; no samples to measure coverage on"
    assert found["unattributed"] == "no samples"
    assert found["issue counts"] == "exact: chi-square per instruction 1.04"
    assert found["wait check"].startswith("correlation – over")


def test_the_profilers_estimates_are_those_of_the_longest_launch_that_has_some() -> None:
    def note(rule: str, percent: float | None, is_global: bool | None) -> RuleNote:
        return RuleNote(rule=rule, kind="optimization", text="t", speedup_percent=percent, speedup_is_global=is_global)

    kernel = build_kernel(LISTING, durations_ns=(10.0, 30.0, 20.0))
    first, second, third = kernel.launches
    kernel = replace(
        kernel,
        launches=(
            replace(first, rules=(note("Short", 90.0, True),)),
            replace(second, rules=(note("Mute", None, None), note("Zero", 0.0, True))),
            replace(third, rules=(note("Local", 50.0, False), note("Small", 20.0, True), note("Small", 20.0, True))),
        ),
    )
    assert [[text for text, _ in row] for row in build_estimate_table(kernel).rows] == [
        ["1.25×", "20 %", "the kernel", "Small", "t"],
        ["2.00×", "50 %", "its part", "Local", "t"],
    ]
    assert not build_estimate_table(build_kernel(LISTING)).rows


@pytest.mark.parametrize(("percent", "factor"), [(0.0, 1.0), (75.0, 4.0), (100.0, None), (250.0, None)])
def test_savings_as_factors(percent: float, factor: float | None) -> None:
    assert convert_saving(percent) == factor
