"""Single-dependency coverage: the published count of nodes, and the shares of samples with one cause."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from gpa_lsp.diagnosis.blame.blame import join_pairs, measure_coverage
from gpa_lsp.diagnosis.blame.model import (
    BlameCategory,
    Dependency,
    SingleDependencyCoverage,
    Unattributed,
    UnattributedCause,
)
from tests.advice.subjects import NOTHING_LOST, build_edges
from tests.real_reports import REPORTS, blame
from tests.rows.written import write_kernel

KERNEL = write_kernel("""
    LDG.E R0, [R2.64]
    LDG.E R1, [R4.64]
    LDS R6, [R7]
    MOV R8, R9
    IADD3 R10, R0, R1, R6   # long_scoreboard=10 short_scoreboard=4 wait=2 selected=3
    MOV R11, R10            # wait=6
    EXIT                    # selected=1
""")
ISSUES = np.ones(7)
REASONS = {reason: number for number, reason in enumerate(KERNEL.reasons)}


def edge(use: int, definition: int, reason: str, samples: float, group: int) -> dict[str, Any]:
    dependency = Dependency.ITSELF if use == definition else Dependency.READ_AFTER_WRITE
    return {
        "use_row": use, "def_row": definition, "reason": REASONS[reason], "category": BlameCategory.MISC, "dependency": dependency,
        "resource": -1, "group": group, "all_samples": samples, "latency_samples": 0.0, "distance_cycles": 1, "distance_instructions": 1,
    }  # fmt: skip


def pair_rows(pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


NO_PAIRS = pair_rows([])


def measure(
    edges: list[dict[str, Any]],
    before: list[tuple[int, int]],
    after: list[tuple[int, int]],
    lost: Unattributed = NOTHING_LOST,
) -> SingleDependencyCoverage:
    pairs = {"before": pair_rows(before), "after": pair_rows(after)}
    return measure_coverage(KERNEL, build_edges(edges), lost, **pairs, issue_counts=ISSUES)


def test_a_node_is_single_with_one_source_of_each_class():
    pairs = [(4, 0), (4, 2), (5, 4)]
    found = measure([], pairs, pairs)
    assert found.nodes == 5  # three sampled instructions, and two defs nobody sampled
    assert found.before_ratio == found.after_ratio == 1


def test_two_memory_sources_or_two_others_make_a_node_multiple():
    assert measure([], [(4, 0), (4, 1)], [(4, 0)]).before_ratio == pytest.approx(4 / 5)
    assert measure([], [(4, 0), (4, 1)], [(4, 0)]).after_ratio == 1
    assert measure([], [(4, 2), (4, 3)], []).before_ratio == pytest.approx(
        4 / 5
    )  # shared memory counts with the others


def test_functions_are_laid_one_after_the_other():
    pairs = join_pairs([(pair_rows([(1, 0)]), 0), (pair_rows([(2, 0), (2, 1)]), 2)])
    assert pairs.tolist() == [[1, 0], [4, 2], [4, 3]]
    found = measure([], [(4, 2), (4, 3)], [])
    assert found.before_ratio == pytest.approx(4 / 5)
    assert found.nodes == 5


def test_samples_with_one_group_of_causes_count_as_grouped():
    edges = [
        edge(4, 0, "long_scoreboard", 5, 1),
        edge(4, 1, "long_scoreboard", 5, 1),
        edge(4, 2, "short_scoreboard", 3, 2),
        edge(4, 3, "short_scoreboard", 1, 3),
        edge(4, 4, "wait", 2, 4),
        edge(5, 4, "wait", 6, 5),
        edge(4, 4, "selected", 3, 6),
    ]
    found = measure(edges, [], [])
    assert found.group_samples == 22
    assert found.group_ratio == pytest.approx(18 / 22)
    assert found.explained_ratio == 1


@pytest.mark.parametrize(
    ("issues", "ratio"),
    [
        ([1, 1, 1, 1, 1], 0),
        ([1, 1, 1, 1, 4], 0),
        ([1, 1, 4, 4, 4], 3 / 5),
        ([1, 1, 0, 4, 4], 1),
        ([0, 0, 2, 2, 2], 1),
    ],
)
def test_a_wait_for_several_groups_counts_as_often_as_it_has_one(issues, ratio):
    """Loads 0 and 1 are one group, in one block with load 2, the other."""
    edges = [
        edge(4, row, "long_scoreboard", samples, group) for row, samples, group in ((0, 5, 1), (1, 4, 1), (2, 1, 2))
    ]
    counts = np.array([*issues, 1, 1], dtype=np.float64)
    found = measure_coverage(
        KERNEL, build_edges(edges), NOTHING_LOST, before=NO_PAIRS, after=NO_PAIRS, issue_counts=counts
    )
    assert found.group_ratio == pytest.approx(ratio)


def test_staying_with_the_instruction_or_getting_lost_explains_nothing():
    lost = Unattributed.from_rows([(4, REASONS["long_scoreboard"], UnattributedCause.NO_PRODUCER, 10.0, 9.0)])
    found = measure([edge(4, 4, "short_scoreboard", 4, 0)], [], [], lost)
    assert found.explained_ratio == 0
    assert found.group_ratio == pytest.approx(4 / 14)


def test_without_anything_to_count_there_is_no_ratio():
    kernel = write_kernel("EXIT  # selected=1")
    none: dict[str, Any] = {"before": NO_PAIRS, "after": NO_PAIRS, "issue_counts": ISSUES[:1]}
    found = measure_coverage(kernel, build_edges([]), NOTHING_LOST, **none)
    assert (found.before_ratio, found.nodes) == (1, 1)
    assert (found.group_ratio, found.explained_ratio, found.group_samples) == (None, None, 0)
    silent = measure_coverage(write_kernel("EXIT"), build_edges([]), NOTHING_LOST, **none)
    assert silent.before_ratio is silent.after_ratio is None


FEWEST_SAMPLES = 500


@cache
def measure_corpus(blamer: str) -> tuple[SingleDependencyCoverage, ...]:
    """Kernels with enough samples; the one that two reports hold counts once."""
    found = {}
    for name in REPORTS:
        for kernel, blamed in blame(name, blamer):
            if kernel.total_samples >= FEWEST_SAMPLES:
                found[kernel.mangled_name, kernel.total_samples] = blamed.coverage
    return tuple(found.values())


def list_ratios(blamer: str, name: str) -> np.ndarray:
    ratios = [getattr(coverage, name) for coverage in measure_corpus(blamer)]
    return np.array([ratio for ratio in ratios if ratio is not None])


@pytest.mark.corpus
def test_the_published_rules_reach_on_real_reports_what_was_published():
    before, after = list_ratios("paper", "before_ratio"), list_ratios("paper", "after_ratio")
    assert len(after) >= 20
    assert np.median(before) == pytest.approx(0.63, abs=0.03)
    assert np.median(after) == pytest.approx(0.90, abs=0.02)
    assert after.min() >= 0.78


@pytest.mark.corpus
def test_the_scoreboards_reach_more():
    after = list_ratios("scoreboard", "after_ratio")
    assert np.median(after) >= 0.98
    assert after.min() >= 0.85
    assert list_ratios("scoreboard", "group_ratio").min() >= 0.95
    assert list_ratios("scoreboard", "explained_ratio").min() >= 0.99
