"""Changes priced by what they leave for each unit: bound, estimate and range, with numbers worked out by hand."""

from collections.abc import Mapping
from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.diagnosis.advice.model import Speedup
from gpa_lsp.diagnosis.advice.unit_pricing import LOW_REACH, REACHED, estimate_units, is_relieved, measure_ends, widen
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import say
from gpa_lsp.gpu.device.model import HBM_CEILING, L1_CEILING
from tests.advice.subjects import make_subject
from tests.rows.written import write_kernel

SHARE = ".avg.pct_of_peak_sustained_elapsed"
DRAM, L1, SM = (f"{name}{SHARE}" for name in ("gpu__dram_throughput", "l1tex__throughput", "sm__throughput"))
TEXT = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | selected=10
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4 | long_scoreboard=90
    B-:R-:W-:-:S05  EXIT
"""


def measured(**metrics: float) -> Subject:
    names = {"dram": DRAM, "l1": L1, "sm": SM}
    return make_subject(write_kernel(TEXT, metrics={names.get(name, name): value for name, value in metrics.items()}))


def estimate(subject: Subject, leaves: Mapping[str, float], reach: float | None = None, most: float = inf) -> Speedup:
    found = estimate_units(subject, leaves, reach, most)
    assert found is not None
    return found


def sampled(gain: float) -> Speedup:
    return Speedup(
        estimate=gain, low=gain, high=gain, bound=9.0, bound_reason=say("no more stalls can go"), uncapped=gain
    )


def test_the_largest_of_what_is_left_bounds() -> None:
    """L1 is busy for 0.9 · 0.25 = 0.225 of the time, DRAM still for 0.4."""
    found = estimate(measured(l1=90.0, dram=40.0), {"l1": 0.25})
    assert found.bound == found.high == pytest.approx(1 / 0.4)
    assert found.bound_reason == "DRAM, at 40 %, becomes the next limit; this does not relieve it"


def test_of_a_change_that_is_known_a_kernel_reaches_nine_tenths_of_what_the_next_unit_sustains() -> None:
    found = estimate(measured(l1=90.0, dram=40.0), {"l1": 0.25})
    assert found.estimate == pytest.approx(REACHED * HBM_CEILING / 0.4)
    assert found.low == pytest.approx(1 + (found.estimate - 1) * LOW_REACH)


def test_a_unit_that_keeps_a_part_bounds_by_it() -> None:
    found = estimate(measured(l1=80.0, dram=10.0), {"l1": 0.5})
    assert found.bound == pytest.approx(1 / 0.4)
    assert found.estimate == pytest.approx(REACHED * L1_CEILING / 0.4)
    assert found.bound_reason == "L1 load/store keeps 50 % of its work, which needs 40 % of the present time"


def test_how_far_a_change_goes_is_a_part_of_the_way_on_a_logarithmic_scale() -> None:
    found = estimate(measured(l1=90.0, dram=25.0), {"l1": 0.1}, reach=0.5)
    assert (found.bound, found.estimate) == (pytest.approx(4.0), pytest.approx(2.0))
    assert found.low == pytest.approx(sqrt(2.0))


def test_the_change_itself_can_be_what_is_least() -> None:
    found = estimate(measured(l1=90.0, dram=10.0), {"l1": 0.1}, reach=0.5, most=2.25)
    assert (found.bound, found.estimate) == (2.25, pytest.approx(1.5))


def test_what_takes_no_work_gains_nothing() -> None:
    """DRAM at 0.88 of what it sustains: nine tenths of that is less than it reaches now."""
    found = estimate(measured(dram=88.0), {"l1": 0.5})
    assert (found.estimate, found.low) == (1.0, 1.0)
    assert found.bound == pytest.approx(1 / 0.88)


def test_the_ends_of_a_launch_stay() -> None:
    ends = {"sm__cycles_active.max": 950.0, "sm__cycles_elapsed.max": 1000.0}
    subject = measured(l1=90.0, dram=40.0, **ends)
    assert measure_ends(subject) == pytest.approx(0.05)
    assert estimate(subject, {"l1": 0.1}).estimate == pytest.approx(1 / (0.4 / HBM_CEILING / REACHED + 0.05))
    assert measure_ends(measured(dram=40.0)) == 0.0
    assert measure_ends(measured(**{**ends, "sm__cycles_active.max": 500.0})) == 0.1, "never more than a tenth"


def test_where_no_unit_was_measured_there_is_no_price() -> None:
    assert estimate_units(measured(), {"l1": 0.5}) is None
    assert estimate_units(measured(sm=90.0), {"l1": 0.5}) is None, "the SMs as a whole sum up other units"


def test_a_change_relieves_the_limiter_where_it_leaves_less_of_it() -> None:
    limiter = find_limiter(measured(dram=85.0, l1=50.0))
    assert is_relieved(limiter, {"dram": 0.5})
    assert not is_relieved(limiter, {"l1": 0.5})
    assert not is_relieved(limiter, {"dram": 1.0})


def test_an_estimate_from_samples_gets_the_range_that_its_model_deserves() -> None:
    """Half of the gain to twice the gain, below the peak of the busiest unit that keeps its work."""
    wide = widen(measured(dram=25.0), list_optimizers()["code_reordering"].reliefs, sampled(1.4))
    assert (wide.low, wide.estimate, wide.high) == (pytest.approx(1.2), 1.4, pytest.approx(1.8))
    assert wide.bound == pytest.approx(4.0)
    assert wide.bound_reason == "DRAM, at 25 %, becomes the next limit; this does not relieve it"
    near = widen(measured(dram=60.0), list_optimizers()["code_reordering"].reliefs, sampled(1.4))
    assert near.high == near.bound == pytest.approx(1 / 0.6)


def test_a_relieved_unit_does_not_bound_and_without_one_the_bound_of_the_samples_stays() -> None:
    free = widen(measured(dram=60.0), list_optimizers()["global_coalescing"].reliefs, sampled(1.4))
    assert (free.low, free.high, free.bound, free.bound_reason) == (1.2, 1.4, 9.0, "no more stalls can go")
    assert widen(measured(), list_optimizers()["code_reordering"].reliefs, sampled(1.4)) == free


@given(
    st.floats(1, 110),
    st.floats(1, 110),
    st.floats(0, 1),
    st.one_of(st.none(), st.floats(0, 1)),
    st.floats(1, 100),
)
def test_estimates_keep_their_order(dram: float, l1: float, left: float, reach: float | None, most: float) -> None:
    found = estimate(measured(dram=dram, l1=l1), {"l1": left}, reach, most)
    assert 1 <= found.low <= found.estimate <= found.high == found.bound <= most
    less = estimate(measured(dram=dram, l1=l1), {"l1": left / 2}, reach, most)
    assert less.estimate >= found.estimate, "who leaves less work gains no less"
