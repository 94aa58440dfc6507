"""Blame and advice of every real report: what the measured facts demand, the one pair whose answer is known, and every form they are shown in."""

import json
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, LEAST_SPEEDUP, LIBRARY_USE
from gpa_lsp.diagnosis.blame.blame import check_conservation
from gpa_lsp.document.advice_notices import list_advice_notices
from gpa_lsp.document.advice_view import build_advice
from gpa_lsp.document.layout import read_plain
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import build_sarif, write_github
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.compare import AdviceFate, Comparison, compare_reports
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pairs import build_pair_index
from gpa_lsp.report.saved.store import read_report, write_report
from tests.real_reports import REPORTS, analyse_report, blame
from tests.render.test_advice_markdown import check_tables
from tests.render.test_sarif import check_required
from tests.report_file.json_documents import expand

BEFORE, AFTER = "v100_miniweather_baseline_2022.2.ncu-rep", "v100_miniweather_divtomult_2022.2.ncu-rep"
HOT_KERNEL = "compute_tendencies_x_279_gpu"
HOT_LINE = 288

pytestmark = pytest.mark.corpus


@pytest.mark.parametrize("name", REPORTS)
def test_saved_and_read_back(name: str, tmp_path: Path) -> None:
    report = analyse_report(name)
    write_report(report, tmp_path / "r.json", with_sources=False)
    back = read_report(tmp_path / "r.json")
    for saved, kernel in zip(back.kernels, report.kernels, strict=True):
        assert saved.advice == kernel.advice
        assert expand(saved.blame) == expand(kernel.blame)


@pytest.mark.parametrize("name", REPORTS)
def test_pairs_of_every_line_add_up_to_its_samples(name: str) -> None:
    for kernel in analyse_report(name).kernels:
        index = build_pair_index(kernel)
        assert index is not None
        for row in kernel.lines:
            if row.source_line is None:
                continue
            found = index.measure_line(row.source_line)
            parts = found.waiting_samples + found.own_samples + found.unattributed_samples
            assert parts == pytest.approx(row.inclusive_samples)
            waits = sum(pair.samples for pair in index.list_waits(row.source_line))
            assert waits == pytest.approx(found.waiting_samples)


@pytest.mark.parametrize("name", REPORTS)
def test_shown_in_every_form(name: str, tmp_path: Path) -> None:
    report, places = analyse_report(name), PlaceNames()
    advice = [one for kernel in report.kernels if kernel.advice is not None for one in kernel.advice.advice]
    lines = [
        read_plain(line)
        for line in write_terminal(build_advice(report, places, max_kernels=None, max_advice=None), None, indent=0)
    ]
    priced = [one for one in advice if one.optimizer != LIBRARY_USE]  # which states no gain
    assert sum(line.strip().startswith(("expected ", "at most ")) for line in lines) == len(priced)
    silent = [kernel for kernel in report.kernels if kernel.advice is None or not kernel.advice.advice]
    assert lines.count("No advice") == len(silent)
    check_tables(
        list(
            write_markdown(build_advice(report, places, max_kernels=None, max_advice=None, has_table=True), folds=True)
        )
    )
    notices = list_advice_notices(report, places)
    log = json.loads(json.dumps(build_sarif(notices, places, tmp_path), allow_nan=False))
    check_required(log)
    assert len(log["runs"][0]["results"]) == len(advice)
    commands = write_github(notices, places).splitlines()
    assert len(commands) == len(report.problems) + len(advice)


@cache
def compare_pair() -> Comparison:
    return compare_reports(analyse_report(BEFORE), analyse_report(AFTER))


def find_kernel(report: Report, name: str) -> KernelReport:
    return next(kernel for kernel in report.kernels if kernel.mangled_name == name)


@pytest.mark.parametrize("blamer", ["scoreboard", "paper"])
@pytest.mark.parametrize("name", REPORTS)
def test_no_sample_is_lost_or_invented(name: str, blamer: str) -> None:
    for kernel, found in blame(name, blamer):
        if not kernel.total_samples:
            continue
        check_conservation(kernel, found)
        assert not found.problems


@pytest.mark.parametrize("name", REPORTS)
def test_wait_is_never_unattributed(name: str) -> None:
    for kernel, found in blame(name, "scoreboard"):
        if "wait" not in kernel.reasons:
            continue
        lost = found.unattributed.reason == kernel.reasons.index("wait")
        known = [function.instructions is not None for function in kernel.functions]
        if all(known):
            assert found.unattributed.all_samples[lost].sum() == 0


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
