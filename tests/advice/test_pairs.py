"""The advice on published before/after pairs, against what the edits achieved; the figures that calibrated constants must hold."""

import json
from dataclasses import dataclass
from functools import cache
from statistics import fmean, geometric_mean
from typing import Any

import pytest

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.advice.model import Advice, KernelAdvice
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from tests.real_reports import CORPUS, join

PAIRS = None if CORPUS is None else CORPUS / "pairs"
NOISE = 0.02
"""Of a measured speedup."""

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(PAIRS is None or not (PAIRS / "pairs.json").is_file(), reason="the pairs are not at hand"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An edit of a kernel and what was said before it."""

    name: str
    is_gain: bool  # the edit made the kernel faster
    achieved: float  # run time before / run time after
    rank: int | None  # of the first piece of advice that asks for the edit, from 1; None where none does
    advice: Advice | None  # that piece

    @property
    def error(self) -> float:
        """Error of the estimate, relative to what was achieved."""
        return abs(self.advice.speedup.estimate - self.achieved) / self.achieved


@cache
def read_pairs() -> tuple[Pair, ...]:
    assert PAIRS is not None
    return tuple(read_pair(one) for one in json.loads((PAIRS / "pairs.json").read_text(encoding="utf-8")))


def read_pair(written: dict[str, Any]) -> Pair:
    advice = next(
        found for name, found in advise_report(f"pairs/{written['before']}").items() if written["kernel_before"] in name
    )
    matching = [(rank, one) for rank, one in enumerate(advice.advice, start=1) if one.optimizer in written["matching"]]
    rank, first = matching[0] if matching else (None, None)
    return Pair(
        name=written["id"],
        is_gain=written["kind"] == "gain",
        achieved=written["achieved"],
        rank=rank,
        advice=first,
    )


@cache
def advise_report(name: str) -> dict[str, KernelAdvice]:
    found = {}
    for kernel in join(name):
        advice, problems = advise_kernel(Subject(kernel, blame_kernel(kernel), place_kernel(kernel)))
        assert not problems, (name, kernel.name, problems)
        found.setdefault(kernel.name, advice)
    return found


def list_matched() -> list[Pair]:
    return [pair for pair in read_pairs() if pair.is_gain and pair.advice is not None]


def test_the_edit_that_helped_is_among_the_first_three() -> None:
    gains = [pair for pair in read_pairs() if pair.is_gain]
    assert len(gains) >= 15
    missed = [pair.name for pair in gains if pair.rank is None or pair.rank > 3]
    assert len(missed) <= 3, missed


def test_estimates_are_near_what_was_achieved() -> None:
    errors = {pair.name: pair.error for pair in list_matched()}
    assert geometric_mean(max(error, 1e-3) for error in errors.values()) <= 0.10, errors
    assert fmean(errors.values()) <= 0.20, errors


def test_ranges_hold_what_was_achieved() -> None:
    matched = list_matched()
    outside = [
        pair.name
        for pair in matched
        if pair.advice is not None
        and not pair.advice.speedup.low * (1 - NOISE) <= pair.achieved <= pair.advice.speedup.high * (1 + NOISE)
    ]
    assert len(outside) <= 0.2 * len(matched), outside


def test_no_bound_is_broken() -> None:
    broken = [
        pair.name
        for pair in list_matched()
        if pair.advice is not None and pair.achieved > pair.advice.speedup.bound * (1 + NOISE)
    ]
    assert not broken


def test_edits_that_gained_nothing_were_not_promised_anything() -> None:
    promised = [
        pair.name
        for pair in read_pairs()
        if not pair.is_gain and pair.advice is not None and pair.advice.speedup.estimate >= 1.03
    ]
    assert len(promised) <= 1, promised
