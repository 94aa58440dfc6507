"""Blame and advice on every real report: what the measured facts demand, and the one pair whose answer is known."""

from functools import cache
from statistics import median

import pytest

from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, LEAST_SPEEDUP, LIBRARY_USE
from gpa_lsp.diagnosis.blame.blame import blame_kernel, check_conservation
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.read import read_profile
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.compare import AdviceFate, Comparison, compare_reports
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pipeline import analyse
from tests.conftest import find_corpus

CORPUS = find_corpus()
REPORTS = sorted(path.name for path in (CORPUS / "ncu").iterdir()) if CORPUS else []
LEAST_SAMPLES = 500

BEFORE, AFTER = "v100_miniweather_baseline_2022.2.ncu-rep", "v100_miniweather_divtomult_2022.2.ncu-rep"
HOT_KERNEL = "compute_tendencies_x_279_gpu"
HOT_LINE = 288

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(CORPUS is None, reason="the corpus of real reports is not at hand"),
]


@cache
def join(name: str) -> tuple[Kernel, ...]:
    assert CORPUS is not None
    kernels, _ = join_profile(read_profile(CORPUS / "ncu" / name))
    return kernels


@cache
def blame(name: str, blamer: str) -> tuple[tuple[Kernel, KernelBlame], ...]:
    return tuple((kernel, blame_kernel(kernel, blamer)) for kernel in join(name) if kernel.total_samples)


def list_large(blamer: str) -> list[tuple[Kernel, KernelBlame]]:
    return [pair for name in REPORTS for pair in blame(name, blamer) if pair[0].total_samples >= LEAST_SAMPLES]


@cache
def analyse_report(name: str) -> Report:
    assert CORPUS is not None
    return analyse([CORPUS / "ncu" / name])


@cache
def compare_pair() -> Comparison:
    return compare_reports(analyse_report(BEFORE), analyse_report(AFTER))


def find_kernel(report: Report, name: str) -> KernelReport:
    return next(kernel for kernel in report.kernels if kernel.mangled_name == name)


@pytest.mark.parametrize("blamer", ["scoreboard", "paper"])
@pytest.mark.parametrize("name", REPORTS)
def test_no_sample_is_lost_or_invented(name: str, blamer: str) -> None:
    for kernel, found in blame(name, blamer):
        check_conservation(kernel, found)
        assert not found.problems


def test_node_coverage_of_the_scoreboard_blamer() -> None:
    ratios = [found.coverage.after_ratio for _, found in list_large("scoreboard")]
    assert all(ratio is not None and ratio >= 0.85 for ratio in ratios)
    assert median(ratio for ratio in ratios if ratio is not None) >= 0.98


def test_group_coverage_is_high_in_every_kernel() -> None:
    for kernel, found in list_large("scoreboard"):
        assert found.coverage.group_ratio is not None, kernel.name
        assert found.coverage.group_ratio >= 0.95, kernel.name


def test_scoreboard_stalls_have_causes() -> None:
    explained = total = 0.0
    for kernel, found in list_large("scoreboard"):
        waits = [kernel.reasons.index(one) for one in ("long_scoreboard", "short_scoreboard") if one in kernel.reasons]
        samples = sum(int(function.all_samples[:, waits].sum()) for function in kernel.functions)
        total += samples
        explained += samples * (found.coverage.explained_ratio or 0.0)
    assert total > 4_000_000
    assert explained / total >= 0.999


@pytest.mark.parametrize("name", REPORTS)
def test_wait_is_never_unattributed(name: str) -> None:
    for kernel, found in blame(name, "scoreboard"):
        if "wait" not in kernel.reasons:
            continue
        lost = found.unattributed.reason == kernel.reasons.index("wait")
        known = [function.instructions is not None for function in kernel.functions]
        if all(known):
            assert found.unattributed.all_samples[lost].sum() == 0


def test_the_paper_blamer_covers_what_the_paper_covers() -> None:
    after = [found.coverage.after_ratio for _, found in list_large("paper") if found.coverage.after_ratio is not None]
    before = [
        found.coverage.before_ratio for _, found in list_large("paper") if found.coverage.before_ratio is not None
    ]
    assert 0.85 <= median(after) <= 0.95
    assert 0.55 <= median(before) <= 0.75
    assert all(one <= two for one, two in zip(before, after, strict=True))


def test_wait_follows_the_stall_counts() -> None:
    """The model of ``wait`` holds on kernels with many samples: decoding and control flow are right."""
    correlations = [
        found.wait_check.correlation
        for kernel, found in list_large("scoreboard")
        if found.wait_check is not None
        and found.wait_check.correlation is not None
        and found.wait_check.measured_samples >= 2_000
    ]
    assert len(correlations) >= 12
    assert median(correlations) >= 0.95
    assert min(correlations) >= 0.5


@pytest.mark.parametrize("name", REPORTS)
def test_every_kernel_gets_advice_or_reasons_for_none(name: str) -> None:
    report = analyse_report(name)
    assert not [problem for problem in report.problems if "optimizer" in problem.message]
    for kernel in report.kernels:
        if not kernel.total_samples:
            continue
        assert kernel.advice is not None
        assert kernel.advice.advice or kernel.advice.silences
        for advice in kernel.advice.advice:
            speedup = advice.speedup
            least = 1.0 if advice.optimizer in (AT_THE_LIMIT, LIBRARY_USE) else LEAST_SPEEDUP
            assert least <= speedup.estimate <= speedup.bound
            assert speedup.low <= speedup.estimate <= speedup.high
            assert advice.hint
            assert len(advice.regions) <= 5
            assert all(len(region.hotspots) <= 5 for region in advice.regions)


def test_the_known_answer_is_among_the_first_three_and_priced_right() -> None:
    kernel = find_kernel(analyse_report(BEFORE), HOT_KERNEL)
    after = find_kernel(analyse_report(AFTER), HOT_KERNEL)
    assert kernel.duration_ns is not None
    assert after.duration_ns is not None
    assert kernel.advice is not None
    achieved = kernel.duration_ns / after.duration_ns
    first_three = [
        advice for advice in kernel.advice.advice[:3] if advice.optimizer in ("fast_math", "strength_reduction")
    ]
    on_the_line = [advice for advice in first_three if any(region.scope.line == HOT_LINE for region in advice.regions)]
    assert on_the_line
    assert abs(on_the_line[0].speedup.estimate / achieved - 1) <= 0.15
    assert achieved == pytest.approx(1.778, abs=0.001)
    assert on_the_line[0].speedup.uncapped > 2


def test_comparing_the_pair_finds_what_changed_and_only_that() -> None:
    verdicts = {found.before.mangled_name: found.verdict for found in compare_pair().kernels}
    assert verdicts.pop(HOT_KERNEL) is Verdict.FASTER
    assert len(verdicts) == 4
    assert set(verdicts.values()) <= {Verdict.SAME_CODE, Verdict.NO_CHANGE}


def test_comparing_the_pair_says_the_advice_was_taken() -> None:
    hot = next(found for found in compare_pair().kernels if found.before.mangled_name == HOT_KERNEL)
    outcome = next(outcome for outcome in hot.outcomes if outcome.advice.optimizer == "fast_math")
    assert outcome.fate is AdviceFate.TAKEN
    assert outcome.achieved == pytest.approx(1.78, abs=0.01)
    assert hot.lines[0].before_line == HOT_LINE
    assert hot.instructions_ratio == pytest.approx(0.4, abs=0.02)
