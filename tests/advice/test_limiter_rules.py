"""What the limiter makes of advice: what cannot help, how much is left of an estimate, what comes first, and what a kernel is called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import advise_kernel, list_optimizers
from gpa_lsp.diagnosis.advice.limiter_rules import (
    KEPT_REACH,
    describe_memory,
    forbids,
    hold_to_limiter,
    is_memory_full,
    list_units,
    rank_by_limiter,
    relieves_unit,
)
from gpa_lsp.diagnosis.advice.model import Advice, Category, Silence, SilenceStage, Speedup
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import Confidence, Limit, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.foundation.figures import measure_share
from gpa_lsp.foundation.prose import NOTHING, say
from gpa_lsp.gpu.device.model import HBM_CEILING, L1_CEILING, L2_CEILING
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from tests.advice.subjects import make_blame
from tests.rows.builders import make_cubin
from tests.rows.written import write_kernel

RELIEFS = {name: one.reliefs for name, one in list_optimizers().items()}
SHARE = ".avg.pct_of_peak_sustained_elapsed"
DRAM, L2, L1, SM = (
    f"{name}{SHARE}" for name in ("gpu__dram_throughput", "lts__throughput", "l1tex__throughput", "sm__throughput")
)
TEXT = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | selected=10
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4 | long_scoreboard=90
    B-:R-:W-:-:S05  EXIT
"""


def make_subject(metrics: dict[str, float] | None = None, *, blocks: int = 64, is_debug: bool = False) -> Subject:
    kernel = write_kernel(TEXT, metrics=metrics, grid=(blocks, 1, 1))
    if is_debug:
        kernel = replace(kernel, cubin=replace(make_cubin([]), debug_functions=frozenset({kernel.mangled_name})))
    return Subject(kernel, make_blame(kernel))


def make_advice(optimizer: str, estimate: float, *, bound: float = 9.0) -> Advice:
    return Advice(
        optimizer=optimizer,
        title=optimizer,
        category=Category.CODE,
        group="",
        speedup=Speedup(
            estimate=estimate, low=estimate, high=estimate, bound=bound, bound_reason=NOTHING, uncapped=estimate
        ),
        share=measure_share(0, 100),
        matched_samples=0,
        matched_latency_samples=0,
        scope=Scope(kind=ScopeKind.KERNEL, function="kernel", row=0),
        regions=(),
        hint=NOTHING,
        caveats=(),
        reasons=(),
    )


def hold(subject: Subject, optimizer: str, estimate: float, *, is_priced: bool = False) -> Advice | Silence:
    return hold_to_limiter(subject, make_advice(optimizer, estimate), RELIEFS[optimizer], is_priced=is_priced)


def held(subject: Subject, optimizer: str, estimate: float) -> Speedup:
    answer = hold(subject, optimizer, estimate)
    assert isinstance(answer, Advice), answer
    return answer.speedup


class TestHold:
    def test_a_full_unit_silences_what_keeps_its_work(self):
        """0.85 / 0.91 = 0.93 of what DRAM sustains is more than 0.9."""
        answer = hold(make_subject({DRAM: 85.0}), "code_reordering", 1.3)
        assert isinstance(answer, Silence)
        assert (answer.stage, answer.contradicted_by) == (SilenceStage.GATED, "limiter")
        assert answer.message == "DRAM, at 85 %, is the current limit; this does not relieve it, so it gains nothing"

    def test_what_takes_the_unit_s_work_stands(self):
        assert held(make_subject({DRAM: 85.0}), "global_coalescing", 1.3).estimate == 1.3

    def test_what_is_known_to_leave_the_unit_its_work_does_not_relieve_it(self):
        advice = replace(make_advice("global_coalescing", 1.3), relieves_limiter=False)
        answer = hold_to_limiter(make_subject({DRAM: 85.0}), advice, RELIEFS["global_coalescing"], is_priced=False)
        assert isinstance(answer, Silence), answer

    def test_at_one_slice_of_l2_only_other_atomics_help(self):
        """Its busy share is no counter's of the units: the limiter has it."""
        full = replace(limiter(LimiterKind.UNIT, FULL_DRAM, unit="l2_slice"), busy_ratio=0.99)
        assert forbids(full, RELIEFS["store_drain"])
        assert forbids(full, RELIEFS["memory_transaction_reduction"])
        assert not forbids(full, RELIEFS["atomic_contention"])

    def test_what_was_priced_by_units_stands(self):
        answer = hold(make_subject({DRAM: 85.0}), "tensor_cores", 1.3, is_priced=True)
        assert isinstance(answer, Advice) and answer.speedup.estimate == 1.3

    def test_below_nine_tenths_of_what_a_unit_sustains_an_estimate_is_cut(self):
        """0.75 / 0.91 = 0.82: full enough to be the limiter; 0.91 / 0.75 are left until it is full, of which half is expected."""
        speedup = held(make_subject({DRAM: 75.0}), "code_reordering", 1.3)
        assert speedup.low == 1.0
        assert speedup.estimate == pytest.approx((HBM_CEILING / 0.75) ** KEPT_REACH)
        assert speedup.high == pytest.approx(HBM_CEILING / 0.75)
        assert speedup.bound == pytest.approx(1 / 0.75)
        assert held(make_subject({DRAM: 75.0}), "code_reordering", 1.1).high == 1.1

    def test_more_warps_go_half_of_the_way_to_the_peak(self):
        speedup = held(make_subject({L2: 91.0}), "thread_increase", 1.3)
        assert speedup.estimate == pytest.approx((1 / 0.91) ** 0.5)
        assert (speedup.low, speedup.uncapped) == (1.0, 1.3)
        assert speedup.high == speedup.bound == pytest.approx(1 / 0.91)
        assert speedup.bound_reason == "L2, at 91 %, is the current limit; this does not relieve it"

    def test_a_small_grid_is_only_occupancy_where_every_sm_has_a_block(self):
        assert held(make_subject({DRAM: 85.0}, blocks=64), "small_grid", 1.3).estimate == pytest.approx(
            (1 / 0.85) ** 0.5
        )
        assert isinstance(hold(make_subject({DRAM: 85.0}, blocks=2), "small_grid", 1.3), Silence)

    def test_a_debug_build_halves_every_estimate_but_its_own(self):
        subject = make_subject({DRAM: 85.0}, is_debug=True)
        assert held(subject, "code_reordering", 1.44).estimate == pytest.approx(1.2)
        assert held(subject, "code_reordering", 1.44).low == pytest.approx(1.2**0.5)
        assert held(subject, "debug_build", 6.0).estimate == 6.0

    @pytest.mark.parametrize("metrics", [None, {DRAM: 40.0, L2: 10.0}, {DRAM: 57.0}])
    def test_where_no_unit_is_full_for_sure_estimates_stand(self, metrics: dict[str, float] | None):
        assert held(make_subject(metrics), "code_reordering", 1.3) == make_advice("code_reordering", 1.3).speedup

    @given(
        st.sampled_from(sorted(RELIEFS)),
        st.floats(1, 50),
        st.floats(1, 110),
        st.sampled_from([DRAM, L2, L1, SM]),
    )
    def test_no_estimate_is_raised_and_its_range_keeps_its_order(
        self, optimizer: str, estimate: float, percent: float, metric: str
    ):
        advice = make_advice(optimizer, estimate, bound=estimate)
        answer = hold_to_limiter(make_subject({metric: percent}), advice, RELIEFS[optimizer], is_priced=False)
        if isinstance(answer, Advice):
            speedup = answer.speedup
            assert speedup.estimate <= estimate
            assert 1 <= speedup.low <= speedup.estimate <= speedup.high <= speedup.bound


def limiter(kind: LimiterKind, *limits: Limit, unit: str = "") -> Limiter:
    return Limiter(
        kind=kind,
        unit=unit or (limits[0].unit if limits else ""),
        busy_ratio=limits[0].busy_ratio if limits else None,
        next=None,
        next_factor=None,
        confidence=Confidence.SURE,
        sentence=say("Something limits it."),
        limits=limits,
    )


FULL_DRAM = Limit(unit="dram", label="DRAM", busy_ratio=0.85, sustained_ratio=0.91)
FULL_FMA = Limit(unit="fma", label="The FMA pipe", busy_ratio=0.9, sustained_ratio=1.0)
FULL_SHARED = Limit(unit="shared", label="Shared memory", busy_ratio=0.9, sustained_ratio=0.97)


class TestRank:
    ADVICE = (make_advice("loop_unrolling", 1.2), make_advice("global_coalescing", 1.1), make_advice("fast_math", 1.15))

    def rank(self, by: Limiter) -> list[str]:
        return [one.optimizer for one in rank_by_limiter(by, self.ADVICE, RELIEFS)]

    def test_a_full_memory_puts_fewer_bytes_first_and_says_so(self):
        ranked = rank_by_limiter(limiter(LimiterKind.UNIT, FULL_DRAM), self.ADVICE, RELIEFS)
        assert [one.optimizer for one in ranked] == ["global_coalescing", "loop_unrolling", "fast_math"]
        assert ranked[0].rank_reason == "ranked above larger estimates: relieves DRAM, the current limit"
        assert {one.rank_reason for one in ranked[1:]} == {"ranked lower: does not relieve DRAM, the current limit"}

    def test_only_the_full_level_counts(self):
        assert self.rank(limiter(LimiterKind.UNIT, FULL_SHARED)) == ["loop_unrolling", "fast_math", "global_coalescing"]
        assert relieves_unit("shared", RELIEFS["shared_bank_conflicts"])

    def test_a_full_pipe_puts_fewer_operations_first(self):
        assert self.rank(limiter(LimiterKind.UNIT, FULL_FMA)) == ["fast_math", "loop_unrolling", "global_coalescing"]
        assert relieves_unit("issue", RELIEFS["branch_divergence"])

    def test_idle_sms_put_more_parallel_work_first(self):
        advice = (*self.ADVICE, make_advice("small_grid", 1.05))
        ranked = rank_by_limiter(limiter(LimiterKind.PARALLELISM, unit="grid"), advice, RELIEFS)
        assert ranked[0].optimizer == "small_grid"
        assert ranked[0].rank_reason == "ranked above larger estimates: adds parallel work"

    def test_a_debug_build_comes_first_and_then_what_relieves_its_busiest_unit(self):
        advice = (*self.ADVICE, make_advice("debug_build", 1.05))
        ranked = rank_by_limiter(limiter(LimiterKind.BUILD, FULL_DRAM, unit="debug"), advice, RELIEFS)
        assert [one.optimizer for one in ranked[:2]] == ["debug_build", "global_coalescing"]

    @pytest.mark.parametrize("kind", [LimiterKind.LATENCY, LimiterKind.UNKNOWN])
    def test_where_nothing_is_full_the_largest_estimate_is_first(self, kind: LimiterKind):
        ranked = rank_by_limiter(limiter(kind), self.ADVICE, RELIEFS)
        assert [one.optimizer for one in ranked] == ["loop_unrolling", "fast_math", "global_coalescing"]
        assert {one.rank_reason for one in ranked} == {""}

    @given(
        st.lists(st.sampled_from(sorted(RELIEFS)), unique=True),
        st.lists(st.floats(1.01, 3), min_size=40, max_size=40),
        st.sampled_from(
            [limiter(LimiterKind.UNIT, FULL_DRAM), limiter(LimiterKind.UNIT, FULL_FMA), limiter(LimiterKind.LATENCY)]
        ),
    )
    def test_nobody_is_lost_and_who_moves_is_told_why(self, names: list[str], estimates: list[float], by: Limiter):
        advice = [make_advice(name, estimate) for name, estimate in zip(names, estimates, strict=False)]
        ranked = rank_by_limiter(by, advice, RELIEFS)
        assert sorted(one.optimizer for one in ranked) == sorted(names)
        by_estimate = sorted(advice, key=lambda one: (-one.speedup.estimate, one.optimizer))
        for before, after in zip(by_estimate, ranked, strict=True):
            assert (before.optimizer == after.optimizer) == (after.rank_reason == "")
        if by.kind is LimiterKind.UNIT:
            firsts = [
                relieves_unit(by.unit, RELIEFS[one.optimizer]) for one in ranked if one.optimizer != "debug_build"
            ]
            assert firsts == sorted(firsts, reverse=True)


def test_only_what_keeps_the_work_of_a_full_unit_is_forbidden():
    assert forbids(limiter(LimiterKind.UNIT, FULL_DRAM), RELIEFS["code_reordering"])
    assert not forbids(limiter(LimiterKind.UNIT, FULL_DRAM), RELIEFS["global_coalescing"])
    assert not forbids(limiter(LimiterKind.LATENCY, FULL_DRAM), RELIEFS["code_reordering"])
    likely = replace(limiter(LimiterKind.UNIT, FULL_DRAM), confidence=Confidence.LIKELY)
    assert not forbids(likely, RELIEFS["code_reordering"])


class TestKernel:
    def test_a_kernel_is_bound_by_its_memory_where_the_limiter_is(self):
        assert is_memory_full(find_limiter(make_subject({DRAM: 85.0})))
        assert not is_memory_full(find_limiter(make_subject({DRAM: 40.0}))), "latency"
        assert not is_memory_full(find_limiter(make_subject({DRAM: 40.0, SM: 90.0}))), "a pipe"
        assert not is_memory_full(find_limiter(make_subject({DRAM: 85.0}, is_debug=True)))

    def test_a_full_queue_alone_is_no_full_memory(self):
        text = TEXT.replace("selected=10", "mio_throttle=500 selected=10")
        kernel = write_kernel(text, metrics={DRAM: 5.0})
        subject = Subject(kernel, make_blame(kernel))
        assert find_limiter(subject).unit == "mio"
        assert not is_memory_full(find_limiter(subject))

    def test_the_advice_quotes_the_limiter(self):
        kernel = write_kernel(TEXT, metrics={DRAM: 85.0, L2: 20.0, L1: 30.0, SM: 31.5})
        advice, problems = advise_kernel(Subject(kernel, blame_kernel(kernel)))
        assert not problems
        assert (advice.memory, advice.is_bandwidth_bound) == ("DRAM is 85 % busy", True)
        assert [(unit.name, unit.achieved_ratio, unit.ceiling_ratio) for unit in advice.units] == [
            ("DRAM", pytest.approx(0.85), HBM_CEILING),
            ("L2", pytest.approx(0.2), L2_CEILING),
            ("L1", pytest.approx(0.3), L1_CEILING),
            ("SM", pytest.approx(0.315), 1.0),
        ]

    def test_where_nothing_was_measured_nothing_is_said(self):
        bare = find_limiter(make_subject())
        assert (describe_memory(bare), list_units(bare)) == ("", ())
