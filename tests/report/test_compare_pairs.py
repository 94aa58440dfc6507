"""Kernels that people changed for a reason they wrote down: what comparing them says."""

import json
from typing import Any

import pytest

from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.compare import AdviceOutcome, KernelComparison, compare_reports
from gpa_lsp.report.differences import Trait
from gpa_lsp.report.model import Report
from gpa_lsp.report.taken import AdviceFate
from tests.real_reports import CORPUS, analyse_report

FOLDER = None if CORPUS is None else CORPUS / "pairs"
IS_THERE = FOLDER is not None and (FOLDER / "pairs.json").is_file()
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not IS_THERE, reason="the corpus of changed kernels is not at hand"),
]

PAIRS: list[dict[str, Any]] = json.loads((FOLDER / "pairs.json").read_text()) if FOLDER is not None and IS_THERE else []
GAINS = [pair for pair in PAIRS if pair["kind"] == "gain"]
RENAMED = ("hpca-naive-v1", "suh-smem-1d", "suh-G-naive-coal", "arm-v1-v6", "arm-v7b-v8", "neg-laks-gemm")
"""Pairs of reports with one kernel each, whose names differ."""


def read(name: str) -> Report:
    return analyse_report(f"pairs/{name}")


def compare(pair: dict[str, Any]) -> KernelComparison:
    names = [(pair["kernel_before"], pair["kernel_after"])]
    (found,) = compare_reports(read(pair["before"]), read(pair["after"]), names).kernels
    return found


def find_outcome(found: KernelComparison, optimizers: list[str]) -> AdviceOutcome | None:
    return next((outcome for outcome in found.outcomes if outcome.advice.optimizer in optimizers), None)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
def test_it_is_as_much_faster_as_was_measured(pair: dict[str, Any]) -> None:
    found = compare(pair)
    assert found.time is not None
    # Cycles are compared where both have them; those who measured in time had clocks that differ by some percent.
    assert found.time.speedup == pytest.approx(pair["achieved"], rel=0.01 if pair["basis"] == "cycles" else 0.1)
    is_same = found.verdict is Verdict.SAME_CODE
    assert is_same == (pair["id"] == "neg-arm-unroll")
    assert bool(found.differences) != is_same


@pytest.mark.parametrize("pair", GAINS, ids=lambda pair: pair["id"])
def test_the_change_that_was_made_is_advice_taken(pair: dict[str, Any]) -> None:
    outcome = find_outcome(compare(pair), pair["matching"])
    assert outcome is not None
    assert outcome.fate is AdviceFate.TAKEN
    assert outcome.signs
    assert outcome.achieved is not None


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair["kind"] != "gain"], ids=lambda pair: pair["id"])
def test_what_changed_nothing_of_its_matter_takes_no_advice(pair: dict[str, Any]) -> None:
    fates = {outcome.fate for outcome in compare(pair).outcomes}
    assert fates.isdisjoint({AdviceFate.TAKEN, AdviceFate.PARTLY_TAKEN})


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
def test_advice_that_asks_for_something_else_is_open(pair: dict[str, Any]) -> None:
    """Asynchronous copies and tensor cores came into none of these kernels, whatever their speed."""
    found = compare(pair)
    for optimizer in ("async_copy", "tensor_cores"):
        outcome = find_outcome(found, [optimizer])
        assert outcome is None or outcome.fate is AdviceFate.OPEN


def test_a_report_without_samples_says_nothing_of_stalls() -> None:
    found = compare(next(pair for pair in PAIRS if pair["id"] == "lumina-lb4"))
    assert found.no_stalls == "stalls unknown: the report after has no samples"
    assert (found.reasons, found.lines) == ((), ())
    assert {outcome.after_ratio for outcome in found.outcomes} == {None}
    changed = {difference.trait: (difference.before, difference.after) for difference in found.differences}
    assert changed[Trait.REGISTERS] == (76, 64)
    assert changed[Trait.OCCUPANCY] == (pytest.approx(0.5), pytest.approx(2 / 3))
    divergence = find_outcome(found, ["branch_divergence"])
    assert divergence is not None and divergence.fate is AdviceFate.UNKNOWN


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair["id"] in RENAMED], ids=lambda pair: pair["id"])
def test_a_renamed_kernel_is_recognised(pair: dict[str, Any]) -> None:
    found = compare_reports(read(pair["before"]), read(pair["after"]))
    assert found.kernels == ()
    (likely,) = found.likely_pairs
    assert pair["kernel_before"] in likely.before.name
    assert pair["kernel_after"] in likely.after.name
