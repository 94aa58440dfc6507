"""Loops shortened to their steady state stand for all of their turns."""

import numpy as np
import pytest

from gpa_lsp.execution.simulator.warp_walk import keep_turns


def run_loop(turns: int, body: int) -> np.ndarray:  # type: ignore[type-arg]
    """Rows of: two instructions, a loop, one more."""
    return np.array([0, 1, *[2 + step for _ in range(turns) for step in range(body)], 2 + body], dtype=np.int32)


def test_what_is_short_enough_is_kept() -> None:
    rows = run_loop(5, 4)
    indexes, weights = keep_turns(rows, 1.0)
    assert indexes.tolist() == list(range(len(rows)))
    assert set(weights.tolist()) == {1.0}


@pytest.mark.parametrize("share", [0.01, 0.1, 0.4])
def test_weights_add_up_to_every_execution_of_every_row(share: float) -> None:
    rows = run_loop(100, 7)
    indexes, weights = keep_turns(rows, share)
    assert len(indexes) < len(rows)
    counted = np.bincount(rows[indexes], weights=weights)
    assert counted == pytest.approx(np.bincount(rows))


def test_the_first_and_the_last_turn_stand_for_themselves() -> None:
    rows = run_loop(100, 7)
    indexes, weights = keep_turns(rows, 0.1)
    assert indexes[:2].tolist() == [0, 1]
    assert weights[2] == 1.0
    assert indexes[-1] == len(rows) - 1
    assert weights[-1] == weights[-2] == 1.0


def test_loops_within_loops_are_shortened_too() -> None:
    inner = [1, 2, 3] * 50
    rows = np.array([*[row for _ in range(40) for row in [0, *inner, 4]], 5], dtype=np.int32)
    indexes, weights = keep_turns(rows, 0.02)
    assert len(indexes) < 0.1 * len(rows)
    assert np.bincount(rows[indexes], weights=weights) == pytest.approx(np.bincount(rows), rel=0.01)


def test_what_does_not_loop_is_kept() -> None:
    rows = np.arange(1000, dtype=np.int32)
    indexes, _ = keep_turns(rows, 0.1)
    assert len(indexes) == 1000
