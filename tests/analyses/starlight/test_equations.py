"""Starlight's Equations 2 to 4, and what Equation 3 is of GPA's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.estimators import estimate_elimination
from gpa_lsp.diagnosis.advice.model import LEAST_SPEEDUP as LEAST_OF_ADVICE
from gpa_lsp.diagnosis.analyses.starlight.movement import (
    LEAST_SPEEDUP,
    estimate_line_speedup,
    estimate_new_rate,
    measure_line_share,
)

COUNTS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), min_size=1).filter(
    lambda lines: sum(map(sum, lines)) > 0
)


def test_the_paper_s_equations_by_hand():
    """A line with 30 issues and 170 stalls of 1,000 samples; 150 of them are of one kind."""
    assert measure_line_share(30, 170, 1000) == pytest.approx(0.2)
    speedup = estimate_line_speedup(1000, 150)
    assert speedup == pytest.approx(1000 / 850)
    assert estimate_new_rate(speedup, 850e9) == pytest.approx(1e12)


@given(COUNTS)
def test_shares_of_all_lines_are_the_whole(lines: list[tuple[int, int]]):
    total = sum(map(sum, lines))
    assert sum(measure_line_share(*line, total) for line in lines) == pytest.approx(1.0)


@given(st.integers(1, 10**9), st.floats(0, 0.999))
def test_equation_3_is_gpa_s_equation_2_without_any_bound(total: int, part: float):
    """N_op + N_stall is T. Taken of stalls without issue alone it would be GPA's Equation 3, which hides them without limit."""
    removed = part * total
    assert estimate_line_speedup(total, removed) == estimate_elimination(total, removed)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_stalls_gain_more(total: int, first: int, second: int):
    low, high = sorted((first % total, second % total))
    assert 1 <= estimate_line_speedup(total, low) <= estimate_line_speedup(total, high)


@pytest.mark.parametrize(("operations", "stalls", "total"), [(-1, 2, 10), (6, 5, 10), (0, 0, 0)])
def test_what_is_no_part_is_refused(operations: float, stalls: float, total: float):
    with pytest.raises(ValueError, match="no part"):
        measure_line_share(operations, stalls, total)


def test_a_kernel_cannot_lose_all_its_samples():
    with pytest.raises(ValueError, match="nothing would be left"):
        estimate_line_speedup(10, 10)


def test_a_line_is_shown_from_the_speedup_on_from_which_advice_is():
    assert LEAST_SPEEDUP == LEAST_OF_ADVICE
