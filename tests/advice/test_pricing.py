"""Prices of matches: values, intervals, bounds, what is shown, and when a match is no advice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.bounds import find_roof
from gpa_lsp.diagnosis.advice.estimators import MOST_HIDING
from gpa_lsp.diagnosis.advice.matches import (
    EliminationMatch,
    EliminationRegion,
    HidingMatch,
    HidingRegion,
    IdleMatch,
    ParallelMatch,
)
from gpa_lsp.diagnosis.advice.model import MOST_REGIONS, Advice, Category, Hotspot, MemoryLevel, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.pricing import Label, price_elimination, price_hiding, price_idle, price_parallel
from gpa_lsp.diagnosis.advice.reliefs import Reliefs
from gpa_lsp.diagnosis.advice.unit_pricing import REACHED
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from tests.advice.subjects import make_subject
from tests.conftest import examples
from tests.rows.written import write_kernel

LABEL = Label(
    optimizer="tested",
    title="Tested",
    category=Category.CODE,
    group="tests",
    reliefs=Reliefs(relieves=frozenset()),
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

EVERY_LEVEL = (MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1)


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
    subject: Subject, *regions: EliminationRegion, relieves: tuple[MemoryLevel, ...] = ()
) -> Advice | Silence:
    match = EliminationMatch(regions=regions, hint="do it", relieves=relieves, caveats=("careful",))
    return price_elimination(subject, LABEL, match)


def priced(answer: Advice | Silence) -> Advice:
    assert isinstance(answer, Advice), answer
    return answer


def test_elimination_is_equation_2_of_each_region_and_of_all():
    advice = priced(eliminate(nest(), line(1, 100.0), line(2, 400.0, latency=300.0)))
    assert advice.speedup.estimate == advice.speedup.uncapped == 2.0
    assert [region.speedup.estimate for region in advice.regions] == [pytest.approx(1 / 0.6), pytest.approx(1 / 0.9)]
    assert advice.scope == advice.regions[0].scope
    assert (advice.matched_samples, advice.matched_latency_samples) == (500.0, 400.0)
    assert advice.share.ratio == 0.5
    assert (advice.optimizer, advice.title, advice.group) == ("tested", "Tested", "tests")
    assert (advice.hint, advice.caveats) == ("do it", ("careful",))
    assert "Equation 2: 500 of 1,000 samples would go" in advice.reasons
    assert advice.speedup.bound_reason == "no more than the matched stalls can go"


def test_the_upper_end_is_wilsons_share_sent_through_the_formula_and_the_lower_one_half_of_the_gain():
    speedup = priced(eliminate(nest(), line(1, 500.0))).speedup
    assert speedup.high == pytest.approx(1 / (1 - 0.531), abs=0.005)
    assert speedup.low == 1.5, "half of the gain: a model's doubt is larger than that of 1,000 samples (1.88)"


def test_the_memory_roof_caps_elimination():
    """The measured pair: 44.6 % of the DRAM's peak; Equation 2 on all division code says 2.287×, achieved were 1.778×."""
    matched = 1000 * (1 - 1 / 2.287)
    advice = priced(eliminate(nest(44.57), line(1, matched)))
    assert advice.speedup.uncapped == pytest.approx(2.287)
    assert advice.speedup.estimate == pytest.approx(REACHED * 0.91 / 0.4457), "what kernels reach of what DRAM sustains"
    assert advice.speedup.estimate == pytest.approx(1.778, rel=0.04)
    assert advice.speedup.bound == pytest.approx(1 / 0.4457), "its peak"
    assert advice.speedup.low < 1.778 < advice.speedup.high
    assert advice.speedup.bound_reason == "DRAM, at 45 %, becomes the next limit; this does not relieve it"
    assert any(reason.startswith("cut from 2.29× to 2.04×: DRAM runs") for reason in advice.reasons)


def test_a_change_that_lessens_the_traffic_is_not_capped_by_it():
    advice = priced(eliminate(nest(80.0), line(1, 500.0), relieves=EVERY_LEVEL))
    assert advice.speedup.estimate == 2.0


def test_a_full_memory_silences_what_leaves_the_traffic():
    answer = eliminate(nest(95.0), line(1, 500.0))
    assert isinstance(answer, Silence)
    assert answer.stage is SilenceStage.GATED
    assert answer.message.startswith("2.00× by the formula alone, but DRAM runs at 95 % of peak")
    assert answer.contradicted_by == "limiter"


def test_a_match_that_covers_everything_leaves_one_sample():
    speedup = priced(eliminate(nest(), line(1, 1000.0))).speedup
    assert speedup.estimate == speedup.uncapped == speedup.bound == 1000.0


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
    answer = eliminate(nest())
    assert isinstance(answer, Silence)
    assert answer.stage is SilenceStage.NO_PLACE
    assert isinstance(eliminate(nest(), line(0, 0.0)), Silence)


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
    assert region.speedup.bound == pytest.approx(1.14, abs=0.01)
    assert region.speedup.bound_reason == "only 100 samples of issuing cycles can fill the stalls"


def test_nested_loops_do_not_fill_their_stalls_with_the_same_instructions():
    """Each alone is worth 100 and 120 samples, together 120: the outer loop has only 20 issues of its own."""
    subject = nest()
    advice = priced(hide(subject, 140.0, loop(subject, 5, 500.0), loop(subject, 3, 200.0)))
    assert [region.speedup.estimate for region in advice.regions] == [
        pytest.approx(1000 / 880),
        pytest.approx(1000 / 900),
    ]
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


def test_hiding_leaves_the_traffic_and_is_capped_by_the_memory():
    subject = nest(80.0)
    speedup = priced(hide(subject, 120.0, loop(subject, 5, 500.0))).speedup
    assert speedup.estimate == pytest.approx(REACHED * 0.91 / 0.80), "less than the 1000 / 900 that could be filled"
    assert speedup.bound == pytest.approx(1 / 0.80)
    speedup = priced(hide(nest(88.0), 120.0, loop(subject, 5, 500.0))).speedup
    assert (speedup.estimate, speedup.bound) == (1.0, pytest.approx(1 / 0.88))


def test_hiding_leaves_the_instructions_and_is_capped_by_their_pipe():
    subject = make_subject(write_kernel(NEST, metrics={"sm__throughput.avg.pct_of_peak_sustained_elapsed": 95.0}))
    speedup = priced(hide(subject, 120.0, loop(subject, 5, 500.0))).speedup
    assert speedup.estimate == pytest.approx(1 / 0.95)
    assert speedup.bound_reason == "the busiest SM unit runs at 95 % of peak"


def parallel(subject: Subject, **overrides: object) -> Advice | Silence:
    values = {
        "scope": KERNEL,
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
    assert (advice.scope, advice.regions) == (KERNEL, ())
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


def idle(subject: Subject, low: float, saved: float, high: float, bound: float = 10.0) -> Advice | Silence:
    match = IdleMatch(
        scope=KERNEL,
        saved_ratio=saved,
        saved_ratio_low=low,
        saved_ratio_high=high,
        bound=bound,
        bound_reason="the blocks",
        hint="fill it",
    )
    return price_idle(subject, LABEL, match)


def test_idle_hardware_is_priced_by_the_time_it_takes():
    advice = priced(idle(nest(), 0.1, 0.2, 0.5))
    speedup = advice.speedup
    assert (speedup.low, speedup.estimate, speedup.high) == (pytest.approx(1 / 0.9), 1.25, 2.0)
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
        assert speedup.estimate <= max(speedup.uncapped, 1) * (1 + 1e-9)


@examples(60)
@given(rooves, st.lists(counts, min_size=1, max_size=8), st.booleans())
def test_elimination_holds_its_order(percent: float | None, parts: list[float], removes: bool):
    subject = nest(percent)
    regions = [line(row % 6, part / len(parts)) for row, part in enumerate(parts)]
    check_speedup(eliminate(subject, *regions, relieves=EVERY_LEVEL if removes else ()))


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
@given(rooves, st.lists(st.floats(0, 0.99), min_size=3, max_size=3), st.floats(1, 100))
def test_idle_holds_its_order(percent: float | None, ratios: list[float], bound: float):
    subject = nest(percent)
    check_speedup(idle(subject, *sorted(ratios), bound))


@examples(60)
@given(rooves, counts, counts)
def test_more_matched_samples_never_gain_less(percent: float | None, one: float, other: float):
    subject = nest(percent)
    fewer, more = (eliminate(subject, line(1, count)) for count in sorted((one, other)))
    if isinstance(fewer, Advice) and isinstance(more, Advice):
        assert fewer.speedup.estimate <= more.speedup.estimate
        assert fewer.speedup.low <= more.speedup.low


def test_a_remedy_that_relieves_one_level_is_capped_by_the_next():
    metrics = {
        DRAM: 60.0,
        "l1tex__throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
    }
    subject = make_subject(write_kernel(NEST, metrics=metrics))
    unrelieved, relieved = (find_roof(subject, levels)[0] for levels in ((), (MemoryLevel.L1,)))
    assert unrelieved.reason.startswith("L1 ")
    assert relieved.reason.startswith("DRAM ")
    assert unrelieved.speedup < relieved.speedup
    assert find_roof(subject, EVERY_LEVEL) == ()


def test_what_the_sms_do_not_do_stays_as_it_is():
    """Half of the samples go, but SMs work for 60 % of the run only: 1 / (1 - 0.6 * 0.5)."""
    metrics = {"sm__cycles_active.max": 60_000.0, "sm__cycles_elapsed.max": 100_000.0}
    subject = make_subject(write_kernel(NEST, metrics=metrics))
    advice = priced(eliminate(subject, line(1, 500.0)))
    assert advice.speedup.estimate == pytest.approx(1 / 0.7)
    assert advice.speedup.uncapped == pytest.approx(2.0)
    assert "SMs are active for 60 % of the run, and only that part speeds up" in advice.reasons
    assert not [reason for reason in advice.reasons if reason.startswith("cut from")]


def test_waiting_that_other_warps_filled_may_gain_nothing():
    subject = make_subject(write_kernel(NEST, metrics={"sm__throughput.avg.pct_of_peak_sustained_elapsed": 80.0}))
    regions = (line(1, 500.0, latency=100.0),)
    kept, gone = (
        price_elimination(subject, LABEL, EliminationMatch(regions=regions, hint="do it", keeps_instructions=keeps))
        for keeps in (True, False)
    )
    assert isinstance(kept, Advice)
    assert isinstance(gone, Advice)
    assert kept.speedup.low < 1.12
    assert gone.speedup.low == 1.5
    assert (kept.speedup.estimate, kept.speedup.bound) == (pytest.approx(1.25), pytest.approx(1.25))
    assert kept.reasons[-1] == "cut from 2.00× to 1.25×: the busiest SM unit runs at 80 % of peak"
    assert gone.speedup.estimate == pytest.approx(2.0)


def test_shown_hotspots_name_the_loops_of_def_and_use():
    """The load is in the outer loop, its use in the inner one, the first MOV in none."""
    pairs = (replace(spot(1, 400.0), use_row=2), replace(spot(0, 50.0), use_row=1))
    advice = priced(eliminate(nest(), line(1, 500.0, spots=pairs)))
    load, move = advice.regions[0].hotspots
    assert (load.def_loop.line, load.use_loop.line) == (3, 5)
    assert move.def_loop is None
    assert move.use_loop == load.def_loop
