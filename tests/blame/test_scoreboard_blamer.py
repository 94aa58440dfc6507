"""The default blamer: its parts laid together, and real reports."""

from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from gpa_lsp.diagnosis.blame.blamers import FunctionBlame
from gpa_lsp.diagnosis.blame.blamers.scoreboard import BLAMER
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency
from gpa_lsp.diagnosis.blame.view import FunctionView, view_function
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.read import read_profile
from tests.blame.listings import sections
from tests.blame.written_views import view_text
from tests.conftest import find_corpus

CORPUS = find_corpus()


def blame(view: FunctionView) -> FunctionBlame:
    return BLAMER.blame(view, WorkBudget.for_function(len(view)))


SAXPY = """
    B-:R-:W-:-:S04  IADD3 R8, R8, 0x1, RZ           # selected=5
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]               # wait=30 selected=5
    B-:R-:W3:-:S02  LDG.E R3, [R6.64]               # lg_throttle=9 selected=5
    B2:R-:W-:-:S04  FADD R2, R2, R8                 # long_scoreboard=60/50 selected=5
    B-:R-:W-:-:S05  BAR.SYNC 0x0                    # selected=5
    B3:R-:W-:-:S04  FADD R3, R2, R3                 # barrier=7 long_scoreboard=20 selected=5
    B-:R-:W-:-:S05  EXIT
"""


def test_each_reason_finds_its_cause_in_its_own_way() -> None:
    view = view_text(SAXPY)
    edges = blame(view).edges
    moved = {
        (view.reasons[edges.reason[number]], int(edges.use_row[number]), int(edges.def_row[number])): float(
            edges.all_samples[number]
        )
        for number in np.flatnonzero(edges.is_moved).tolist()
    }
    assert moved == {
        ("wait", 1, 0): 30,
        ("long_scoreboard", 3, 1): 60,
        ("long_scoreboard", 5, 2): 20,
        ("barrier", 5, 4): 7,
    }
    throttle = edges.reason == view.reasons.index("lg_throttle")
    assert edges.category[throttle].tolist() == [BlameCategory.MEMORY_THROTTLE]


def test_edges_are_in_order_and_groups_of_different_reasons_apart() -> None:
    edges = blame(view_text(SAXPY)).edges
    keys = list(zip(edges.use_row, edges.reason, edges.def_row, strict=True))
    assert keys == sorted(keys)
    assert len(set(edges.group.tolist())) == len(edges)


def test_the_dependency_graph_has_dependences_only() -> None:
    """Not the barrier, nor the issue cost of the first instruction. Its result, which the first FADD reads, and that of this one are pruned:
    the stall counts between have paid for their latencies.
    """
    graph = blame(view_text(SAXPY)).dependencies
    assert graph.after == ((3, 1), (5, 2))
    assert graph.before == ((3, 0), (3, 1), (5, 2), (5, 3))


def test_the_producer_of_a_wait_is_a_dependence() -> None:
    graph = blame(
        view_text("""
            B-:R-:W-:-:S13  ISETP.LT.AND P0, PT, R0, R6, PT
            B-:R-:W-:-:S05  @P0 EXIT                    # wait=12
        """)
    ).dependencies
    assert graph.after == graph.before == ((1, 0),)


def collect(view: FunctionView, found: FunctionBlame) -> tuple[np.ndarray, np.ndarray]:
    every, latency = np.zeros(view.all_samples.shape), np.zeros(view.all_samples.shape)
    for rows, columns in ((found.edges.use_row, found.edges), (found.unattributed.row, found.unattributed)):
        np.add.at(every, (rows, columns.reason), columns.all_samples)
        np.add.at(latency, (rows, columns.reason), columns.latency_samples)
    return every, latency


@given(sections())
def test_samples_are_conserved_and_what_is_left_was_there_before(text: str) -> None:
    view = view_text(text)
    for budget in (WorkBudget.for_function(len(view)), WorkBudget(remaining=50)):
        found = BLAMER.blame(view, budget)
        every, latency = collect(view, found)
        np.testing.assert_allclose(every, view.all_samples)
        np.testing.assert_allclose(latency, view.latency_samples)
        assert set(found.dependencies.after) <= set(found.dependencies.before)
        assert len(set(found.dependencies.before)) == len(found.dependencies.before)


# ------------------------------------------------------------------------------------------------------------------ real reports

MEASURED = {
    ((7, 0), "long_scoreboard"): (830_607, 0.075, 0.834),
    ((7, 0), "short_scoreboard"): (23_168, 0.966, 0.034),
    ((8, 0), "long_scoreboard"): (2_471_198, 0.954, 0.005),
    ((8, 0), "short_scoreboard"): (1_571, 0.973, 0.002),
    ((8, 6), "long_scoreboard"): (661_012, 0.118, 0.833),
    ((8, 6), "short_scoreboard"): (66_406, 0.931, 0.064),
    ((9, 0), "long_scoreboard"): (87_738, 0.965, 0.035),
    ((9, 0), "short_scoreboard"): (2_874, 0.936, 0.054),
    ((12, 0), "long_scoreboard"): (3_612, 0.008, 0.850),
    ((12, 0), "short_scoreboard"): (16, 1.0, 0.0),
}
"""Compute capability, reason → samples, and the shares of samples with one and with two causes.

Source: an independent prototype on the same reports; the samples at two places whose reason fits nobody count with those who stay.
"""


@cache
def blame_corpus() -> tuple[tuple[tuple[int, int], FunctionView, BlameEdges], ...]:
    assert CORPUS is not None
    found = []
    for path in sorted((Path(CORPUS) / "ncu").iterdir()):
        kernels, _ = join_profile(read_profile(path))
        for kernel in kernels:
            for function in kernel.functions:
                view = view_function(kernel, function, np.ones(len(function.pc_offsets)))
                if view is not None:
                    assert kernel.device.compute_capability is not None
                    found.append((kernel.device.compute_capability, view, blame(view).edges))
    return tuple(found)


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="the corpus of real reports is not at hand")
def test_real_scoreboard_samples_have_as_many_causes_as_were_measured() -> None:
    samples: dict[tuple[tuple[int, int], str], int] = defaultdict(int)
    by_count: dict[tuple[tuple[int, int], str, int], float] = defaultdict(float)
    for capability, view, edges in blame_corpus():
        for reason in ("long_scoreboard", "short_scoreboard"):
            column = view.reason_index(reason)
            if column is None:
                continue
            samples[capability, reason] += int(view.all_samples[:, column].sum())
            chosen = edges.reason == column
            for row in np.unique(edges.use_row[chosen]).tolist():
                shares = edges.all_samples[chosen & (edges.use_row == row)]
                by_count[capability, reason, len(shares)] += float(shares.sum())
    for (capability, reason), (total, one, two) in MEASURED.items():
        assert samples[capability, reason] == total
        assert by_count[capability, reason, 1] / total == pytest.approx(one, abs=0.002)
        assert by_count[capability, reason, 2] / total == pytest.approx(two, abs=0.002)
    assert sum(by_count.values()) / sum(samples.values()) >= 0.99999


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="the corpus of real reports is not at hand")
def test_real_scoreboard_samples_wait_for_one_counter() -> None:
    grouped = total = 0.0
    for _, view, edges in blame_corpus():
        wanted = [column for column, name in enumerate(view.reasons) if name.endswith("_scoreboard")]
        chosen = np.isin(edges.reason, wanted)
        keys = np.stack([edges.use_row[chosen], edges.reason[chosen], edges.group[chosen]], axis=1)
        groups, samples = np.unique(keys, axis=0), edges.all_samples[chosen]
        uses, counts = np.unique(groups[:, :2], axis=0, return_counts=True)
        alone = {tuple(use) for use, count in zip(uses.tolist(), counts.tolist(), strict=True) if count == 1}
        grouped += sum(
            share for key, share in zip(keys.tolist(), samples.tolist(), strict=True) if tuple(key[:2]) in alone
        )
        total += float(samples.sum())
    assert grouped / total >= 0.97


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="the corpus of real reports is not at hand")
def test_most_real_scoreboard_causes_are_values_that_are_read() -> None:
    by_dependency: dict[Dependency, float] = defaultdict(float)
    for _, view, edges in blame_corpus():
        wanted = [column for column, name in enumerate(view.reasons) if name.endswith("_scoreboard")]
        for dependency in Dependency:
            chosen = np.isin(edges.reason, wanted) & (edges.dependency == dependency)
            by_dependency[dependency] += float(edges.all_samples[chosen].sum())
    total = sum(by_dependency.values())
    assert by_dependency[Dependency.READ_AFTER_WRITE] / total > 0.9
