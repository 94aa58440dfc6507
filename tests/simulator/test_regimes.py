"""The ranges that are printed beside simulated times are those of launches that were measured, and hold repositories that are left out."""

import json

import pytest

from gpa_lsp.execution.simulator.regimes import REGIMES, Regime
from tests.simulator.ranges import KNOWN, Row, find_range, leave_out

ROWS: list[Row] = [tuple(row) for row in json.loads(KNOWN.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("regime", REGIMES, ids=lambda one: one.key)
def test_a_range_follows_from_what_was_measured(regime: Regime) -> None:
    found = find_range([row for row in ROWS if row[1] == regime.key])
    assert (regime.low, regime.high) == ((None, None) if found is None else pytest.approx(found, abs=0.006))


def test_four_in_five_launches_of_repositories_that_are_left_out_are_within_it() -> None:
    held, count = leave_out(ROWS)
    assert count >= 50
    assert held >= 0.8 * count


def test_a_range_is_printed_as_times_and_its_lack_is_said() -> None:
    memory, short = REGIMES[0], REGIMES[-1]
    assert memory.describe_range(100_000.0).startswith("4 in 5 launches that memory limits take ")
    assert short.describe_range(9_000.0) == "how far off launches this short are is unknown"
