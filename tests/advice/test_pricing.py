"""Prices of matches: values, ranges, bounds, what is shown, and when a match is no advice."""

from collections.abc import Mapping
from math import e, inf, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice import pricing
from gpa_lsp.diagnosis.advice.estimators import MOST_HIDING
from gpa_lsp.diagnosis.advice.matches import (
    EliminationMatch,
    EliminationRegion,
    HidingMatch,
    HidingRegion,
    IdleMatch,
    ParallelMatch,
)
from gpa_lsp.diagnosis.advice.model import MOST_REGIONS, Advice, Category, Hotspot, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.pricing import (
    Calibration,
    Label,
    price_elimination,
    price_hiding,
    price_idle,
    price_parallel,
)
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.gpu.device.model import HBM_CEILING
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from tests.advice.subjects import make_subject
from tests.conftest import examples
from tests.rows.written import write_kernel

LABEL = Label(
    name="tested",
    title="Tested",
    category=Category.CODE,
    group="tests",
)
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
KERNEL = Scope(kind=ScopeKind.KERNEL, function="kernel", row=0)

NEST = """
    B-:R-:W-:-:S04  MOV R0, RZ            # k.cu:1 | wait=100/100 selected=20
outer:
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]     # k.cu:3 | long_scoreboard=200/200 selected=20
inner:
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6   # k.cu:5 | long_scoreboard=500/500 selected=100
    B-:R-:W-:-:S05  @P0 BRA `(inner)      # k.cu:5
    B-:R-:W-:-:S05  @P1 BRA `(outer)      # k.cu:3 | wait=60/60
    B-:R-:W-:-:S05  EXIT
"""
"""T = 1,000; A = 140, of which the inner loop has 100 and the outer one 120."""

pytestmark = pytest.mark.usefixtures("uncalibrated")


def nest(dram: float | None = None) -> Subject:
    return make_subject(write_kernel(NEST, metrics={} if dram is None else {DRAM: dram}))


def spot(row: int, samples: float) -> Hotspot:
    return Hotspot(def_row=row, use_row=None, reason="wait", category=None, samples=samples, latency_samples=samples)


def line(
    row: int, samples: float, *, latency: float | None = None, spots: tuple[Hotspot, ...] = ()
) -> EliminationRegion:
    scope = Scope(kind=ScopeKind.LINE, function="kernel", row=row, file="k.cu", line=row + 1)
    latency = samples if latency is None else latency
    return EliminationRegion(scope=scope, samples=samples, latency_samples=latency, hotspots=spots)


def eliminate(
    subject: Subject, *regions: EliminationRegion, work: Mapping[str, float] | None = None
) -> Advice | Silence:
    match = EliminationMatch(regions=regions, hint="do it", work=work or {}, caveats=("careful",))
    return price_elimination(subject, LABEL, match)


def priced(answer: Advice | Silence) -> Advice:
    assert isinstance(answer, Advice), answer
    return answer


def test_elimination_is_equation_2_of_each_region_and_of_all():
    advice = priced(eliminate(nest(), line(1, 100.0), line(2, 400.0, latency=300.0)))
    assert advice.speedup.estimate == advice.speedup.uncapped == pytest.approx(2.0)
    assert [region.speedup.estimate for region in advice.regions] == [pytest.approx(1 / 0.6), pytest.approx(1 / 0.9)]
    assert advice.scope == advice.regions[0].scope
    assert (advice.matched_samples, advice.matched_latency_samples) == (500.0, 400.0)
    assert advice.share.ratio == 0.5
    assert (advice.optimizer, advice.title, advice.group) == ("tested", "Tested", "tests")
    assert (advice.hint, advice.caveats) == ("do it", ("careful",))
    assert "Equation 2: 500 of 1,000 samples would go" in advice.reasons
    assert (advice.speedup.bound, advice.speedup.bound_reason) == (inf, "no unit is known to be busy")


def test_the_range_is_what_errors_of_such_estimates_were(monkeypatch: pytest.MonkeyPatch):
    """The middle is a power of the model's value, the ends go with the root of its logarithm."""
    written = Calibration(edits=9, families=6, held=0.7, low=-0.2, middle=0.5, high=1.2)
    monkeypatch.setattr(pricing, "find_calibration", lambda optimizer: {"tested": written}[optimizer])
    speedup, root = priced(eliminate(nest(), line(1, 500.0))).speedup, sqrt(log(2))
    assert (speedup.low, speedup.estimate, speedup.high) == tuple(
        map(pytest.approx, (2**0.5 * e ** (-0.2 * root), 2**0.5, 2**0.5 * e ** (1.2 * root)))
    )
    assert speedup.doubt == "anything from 1.20× to 3.84×"
    written = replace(written, held=0.6)
    assert (
        priced(eliminate(nest(), line(1, 500.0))).speedup.doubt
        == "uncertain: such ranges held for 60 % of 9 simulated edits"
    )


def test_few_samples_are_no_number():
    assert priced(eliminate(nest(), line(1, 9.0))).speedup.doubt == "its basis is only 9 samples"
    assert not priced(eliminate(nest(), line(1, 100.0))).speedup.doubt


@pytest.mark.parametrize(
    ("matched", "estimate", "doubt"),
    [(0.0, 2.0, ""), (1.0, 1.0, "its basis is only 1 sample")],
)
def test_work_that_goes_counts_with_no_sample_but_not_with_next_to_none(matched: float, estimate: float, doubt: str):
    """Half of DRAM's work can go although no sample is sure to; one sample of a thousand shows that next to nothing goes."""
    region = replace(line(1, matched), counted=5.0)
    speedup = priced(eliminate(nest(90.0), region, work={"dram": 0.5})).speedup
    assert (speedup.estimate, speedup.doubt) == (pytest.approx(estimate, rel=0.3), doubt)


def test_work_that_goes_from_what_does_not_limit_is_no_number():
    region = replace(line(1, 0.0), counted=5.0)
    speedup = priced(eliminate(nest(90.0), region, work={"fma": 0.5})).speedup
    assert speedup.doubt == "priced by the work that goes, not by samples"


def test_the_memory_keeps_its_work():
    """The measured pair: 44.6 % of DRAM's peak; Equation 2 on all division code says 2.287×, achieved were 1.778×."""
    matched = 1000 * (1 - 1 / 2.287)
    advice = priced(eliminate(nest(44.57), line(1, matched)))
    need = 0.4457 / HBM_CEILING
    latency = (1 - need**4) ** 0.25 / 2.287
    assert advice.speedup.uncapped == pytest.approx(2.287)
    assert advice.speedup.estimate == pytest.approx((need**4 + latency**4) ** -0.25)
    assert advice.speedup.bound == pytest.approx(1 / 0.4457), "its peak"
    assert advice.speedup.low < 1.778 < advice.speedup.high
    assert advice.speedup.bound_reason == "DRAM, at 45 %, becomes the next limit; this does not relieve it"
    assert (
        advice.reasons[-1]
        == f"2.29× by the formula alone; {advice.speedup.estimate:.2f}× with the work that units keep"
    )


def test_a_change_that_takes_the_traffic_is_not_held_by_it():
    """Half of DRAM's work goes with half of the samples."""
    advice = priced(eliminate(nest(80.0), line(1, 500.0), work={"dram": 0.5}))
    assert advice.speedup.estimate == pytest.approx(2.0)
    assert advice.speedup.bound == pytest.approx(1 / 0.4)
    assert advice.speedup.bound_reason == "DRAM keeps 50 % of its work, which needs 40 % of the present time"
    assert advice.relieves_limiter
    assert not priced(eliminate(nest(80.0), line(1, 500.0), work={"l1": 0.5})).relieves_limiter


def test_a_full_memory_silences_what_leaves_the_traffic():
    answer = eliminate(nest(95.0), line(1, 50.0))
    assert isinstance(answer, Silence)
    assert answer.stage is SilenceStage.GATED
    assert answer.message.startswith("1.05× by the formula alone, but DRAM, at 95 %, is the current limit")
    assert answer.contradicted_by == "limiter"


def test_without_samples_the_work_that_goes_is_the_price():
    kernel = write_kernel("LDG.E R2, [R4.64]  # k.cu:3\nEXIT", metrics={DRAM: 80.0})
    counted = (EliminationRegion(scope=KERNEL, samples=0.0, latency_samples=None, hotspots=(), counted=5.0),)
    found = price_elimination(
        make_subject(kernel), LABEL, EliminationMatch(regions=counted, hint="do it", work={"dram": 0.5})
    )
    assert priced(found).speedup.estimate == pytest.approx(2.0)
    found = price_elimination(
        make_subject(kernel), LABEL, EliminationMatch(regions=counted, hint="do it", work={"l1": 0.5})
    )
    assert isinstance(found, Silence)
    assert found.stage is SilenceStage.NO_SAMPLES


def test_a_match_that_covers_everything_leaves_one_sample():
    speedup = priced(eliminate(nest(), line(1, 1000.0))).speedup
    assert speedup.estimate == speedup.uncapped == 1000.0


def test_at_most_five_places_with_five_hotspots_are_shown_and_said():
    spots = tuple(spot(row % 6, 10.0 - row) for row in range(8))
    regions = [line(row % 6, 10.0 + row, spots=spots) for row in range(7)]
    advice = priced(eliminate(nest(), *regions))
    assert len(advice.regions) == MOST_REGIONS
    assert [region.matched_samples for region in advice.regions] == [16.0, 15.0, 14.0, 13.0, 12.0]
    assert all(len(region.hotspots) == MOST_REGIONS for region in advice.regions)
    assert advice.regions[0].hotspots[0].samples == 10.0
    assert advice.regions[-1].density == 1.0
    assert "the 5 of 7 places shown hold 77 % of the matched samples" in advice.reasons


def test_density_says_how_much_the_shown_hotspots_hold():
    spots = tuple(spot(0, 2.0) for _ in range(50))
    (region,) = priced(eliminate(nest(), line(1, 100.0, spots=spots))).regions
    assert region.density == pytest.approx(0.1)


def test_a_match_without_a_place_is_no_advice():
    answer = eliminate(nest(), line(0, 0.0))
    assert isinstance(answer, Silence)
    assert answer.stage is SilenceStage.NO_PLACE


def test_a_place_is_a_line_or_an_instruction():
    subject = nest()
    bare = replace(line(1, 100.0), scope=KERNEL)
    assert isinstance(eliminate(subject, bare), Advice)
    functions = tuple(replace(function, instructions=None) for function in subject.rows.functions)
    no_code = replace(subject, kernel=replace(subject.kernel, functions=functions))
    assert isinstance(eliminate(no_code, bare), Silence)
    assert isinstance(eliminate(no_code, line(1, 100.0)), Advice)


def loop(subject: Subject, line_number: int, latency: float, **overrides: float) -> HidingRegion:
    """The loop whose own line is this, with all its active samples."""
    tree = subject.scopes
    number = next(
        number for number, scope in enumerate(tree.scopes) if tree.is_loop[number] and scope.line == line_number
    )
    values = {"samples": latency, "latency_samples": latency, "active_samples": float(tree.active_samples[number])}
    return HidingRegion(scope=tree.scopes[number], hotspots=(), **{**values, **overrides})


def hide(subject: Subject, active: float, *regions: HidingRegion) -> Advice | Silence:
    return price_hiding(subject, LABEL, HidingMatch(regions=regions, active_samples=active, hint="move it"))


def test_hiding_is_equation_5_of_each_scope():
    subject = nest()
    (region,) = priced(hide(subject, 120.0, loop(subject, 5, 500.0))).regions
    assert region.speedup.estimate == pytest.approx(1000 / (1000 - 100))
    assert region.speedup.bound == inf


def test_nested_loops_do_not_fill_their_stalls_with_the_same_instructions():
    """Each alone is worth 100 and 120 samples, together 120: the outer loop has only 20 issues of its own."""
    subject = nest()
    advice = priced(hide(subject, 140.0, loop(subject, 5, 500.0), loop(subject, 3, 200.0)))
    assert [region.speedup.estimate for region in advice.regions] == [
        pytest.approx(1000 / 900),
        pytest.approx(1000 / 880),
    ], "most matched first"
    assert advice.speedup.estimate == pytest.approx(1000 / 880)
    assert advice.speedup.uncapped == pytest.approx(1000 / 860), "as published: 100 + 120, at most all 140"
    assert any(reason.startswith("Equation 5: 120 of 1,000 samples can be hidden") for reason in advice.reasons)


def test_a_line_in_a_loop_draws_on_the_loops_instructions():
    subject = nest()
    inside = replace(
        loop(subject, 5, 80.0, active_samples=90.0), scope=Scope(kind=ScopeKind.LINE, function="kernel", row=2, line=5)
    )
    advice = priced(hide(subject, 140.0, loop(subject, 5, 60.0), inside))
    assert advice.speedup.estimate == pytest.approx(1000 / 900)


def test_hiding_leaves_the_traffic_and_the_instructions():
    """100 of 1,000 samples can be filled; DRAM needs 0.88 of the time, and SMs 0.95."""
    speedup = priced(hide(nest(80.0), 120.0, loop(nest(80.0), 5, 500.0))).speedup
    need = 0.80 / HBM_CEILING
    assert speedup.estimate == pytest.approx((need**4 + (1 - need**4) * 0.9**4) ** -0.25)
    assert speedup.bound == pytest.approx(1 / 0.80)
    subject = make_subject(write_kernel(NEST, metrics={"sm__throughput.avg.pct_of_peak_sustained_elapsed": 95.0}))
    speedup = priced(hide(subject, 120.0, loop(subject, 5, 500.0))).speedup
    assert speedup.estimate == pytest.approx((0.95**4 + (1 - 0.95**4) * 0.9**4) ** -0.25)
    assert speedup.bound_reason == "The SM, at 95 %, becomes the next limit; this does not relieve it"


def parallel(subject: Subject, **overrides: object) -> Advice | Silence:
    values = {
        "warps_per_scheduler": 4.0,
        "new_warps_per_scheduler": 8.0,
        "issue_ratio": 0.1,
        "scales_warps": False,
        "factor": 1.0,
        "bound": 3.0,
        "bound_reason": "the grid",
        "hint": "more warps",
    }
    return price_parallel(subject, LABEL, ParallelMatch(**{**values, **overrides}))


def test_parallel_is_equation_10():
    advice = priced(parallel(nest()))
    expected = (1 - 0.9**8) / (1 - 0.9**4)
    assert advice.speedup.estimate == advice.speedup.uncapped == pytest.approx(expected)
    assert advice.speedup.low < expected < advice.speedup.high
    assert (advice.scope, advice.regions) == (nest().scopes.scopes[0], ())
    assert advice.matched_samples == advice.matched_latency_samples == 860
    assert advice.reasons == ("Equations 7 to 9: from 4 to 8 warps per scheduler, 10 % of 1,000 samples issued",)


def test_fewer_warps_on_more_schedulers_gain_one_over_c_w():
    spread = priced(parallel(nest(), new_warps_per_scheduler=2.0, scales_warps=True, factor=1.25))
    assert spread.speedup.estimate == pytest.approx(2 * (1 - 0.9**2) / (1 - 0.9**4) * 1.25)
    assert spread.reasons[0].startswith("Equations 6 to 10")


def test_parallel_is_cut_at_its_bound():
    advice = priced(parallel(nest(), bound=1.2))
    assert advice.speedup.estimate == advice.speedup.high == advice.speedup.bound == 1.2
    assert advice.speedup.bound_reason == "the grid"


def idle(subject: Subject, saved: float, bound: float = 10.0) -> Advice | Silence:
    match = IdleMatch(saved_ratio=saved, bound=bound, bound_reason="the blocks", hint="fill it")
    return price_idle(subject, LABEL, match)


def test_idle_hardware_is_priced_by_the_time_it_takes():
    advice = priced(idle(nest(), 0.2))
    assert (advice.speedup.estimate, advice.speedup.bound, advice.speedup.bound_reason) == (1.25, 10.0, "the blocks")
    assert advice.matched_samples == 0
    assert "20 % of the run time would go" in advice.reasons


counts = st.floats(0, 1000, allow_nan=False)
rooves = st.one_of(st.none(), st.floats(1, 100))


def check_speedup(answer: Advice | Silence) -> None:
    if isinstance(answer, Silence):
        assert answer.stage in (SilenceStage.GATED, SilenceStage.NO_PLACE)
        return
    for speedup in (answer.speedup, *(region.speedup for region in answer.regions)):
        assert 1 <= speedup.low <= speedup.estimate <= speedup.high <= speedup.bound


@examples(60)
@given(rooves, st.lists(counts, min_size=1, max_size=8), st.floats(0, 1.5))
def test_elimination_holds_its_order(percent: float | None, parts: list[float], left: float):
    subject = nest(percent)
    regions = [line(row % 6, part / len(parts)) for row, part in enumerate(parts)]
    check_speedup(eliminate(subject, *regions, work={"dram": left}))


@examples(60)
@given(rooves, counts, counts, counts)
def test_hiding_holds_its_order_and_the_theorem(percent: float | None, inner: float, outer: float, active: float):
    subject = nest(percent)
    regions = (loop(subject, 5, inner / 2), loop(subject, 3, outer / 2))
    answer = hide(subject, active / 2, *regions)
    check_speedup(answer)
    if isinstance(answer, Advice):
        assert answer.speedup.estimate <= MOST_HIDING


configurations = st.fixed_dictionaries(
    {
        "issue_ratio": st.floats(0, 1, allow_subnormal=False),
        "warps_per_scheduler": st.floats(0.25, 16),
        "new_warps_per_scheduler": st.floats(0.25, 16),
        "scales_warps": st.booleans(),
        "bound": st.floats(1, 100),
    }
)


@examples(60)
@given(rooves, configurations)
def test_parallel_holds_its_order(percent: float | None, configuration: dict[str, object]):
    check_speedup(parallel(nest(percent), **configuration))


@examples(60)
@given(rooves, st.floats(0, 0.99), st.floats(1, 100))
def test_idle_holds_its_order(percent: float | None, saved: float, bound: float):
    check_speedup(idle(nest(percent), saved, bound))


@examples(60)
@given(rooves, counts, counts)
def test_more_matched_samples_never_gain_less(percent: float | None, one: float, other: float):
    subject = nest(percent)
    fewer, more = (eliminate(subject, line(1, count)) for count in sorted((one, other)))
    if isinstance(fewer, Advice) and isinstance(more, Advice):
        assert fewer.speedup.estimate <= more.speedup.estimate
        assert fewer.speedup.low <= more.speedup.low


def test_what_the_sms_do_not_do_stays_as_it_is():
    """Half of the samples go, but SMs work for 60 % of the run only: 1 / (1 - 0.6 * 0.5)."""
    metrics = {"sm__cycles_active.max": 60_000.0, "sm__cycles_elapsed.max": 100_000.0}
    subject = make_subject(write_kernel(NEST, metrics=metrics))
    advice = priced(eliminate(subject, line(1, 500.0)))
    assert advice.speedup.estimate == pytest.approx(1 / 0.7)
    assert advice.speedup.uncapped == pytest.approx(2.0)
    assert "SMs are active for 60 % of the run, and only that part speeds up" in advice.reasons


def test_shown_hotspots_name_the_loops_of_def_and_use():
    """The load is in the outer loop, its use in the inner one, the first MOV in none."""
    pairs = (replace(spot(1, 400.0), use_row=2), replace(spot(0, 50.0), use_row=1))
    advice = priced(eliminate(nest(), line(1, 500.0, spots=pairs)))
    load, move = advice.regions[0].hotspots
    assert (load.def_loop.line, load.use_loop.line) == (3, 5)
    assert move.def_loop is None
    assert move.use_loop == load.def_loop
