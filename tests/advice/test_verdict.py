"""The order of advice, what each piece is called next to the others, and what the kernel is called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import advise_kernel, list_optimizers
from gpa_lsp.diagnosis.advice.model import Advice, Category, KernelAdvice, Speedup, Standing
from gpa_lsp.diagnosis.advice.verdict import decide_standing, describe_memory, is_memory_full, list_units, rank
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import Confidence, Limit, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.foundation.figures import measure_share
from gpa_lsp.foundation.prose import NOTHING, say
from gpa_lsp.gpu.device.model import HBM_CEILING, L1_CEILING, L2_CEILING
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from tests.advice.subjects import make_blame
from tests.rows.builders import make_cubin
from tests.rows.written import write_kernel

SHARE = ".avg.pct_of_peak_sustained_elapsed"
DRAM, L2, L1, SM = (
    f"{name}{SHARE}" for name in ("gpu__dram_throughput", "lts__throughput", "l1tex__throughput", "sm__throughput")
)
TEXT = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | selected=10
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4 | long_scoreboard=90
    B-:R-:W-:-:S05  EXIT
"""
OPTIMIZERS = list_optimizers()


def make_subject(metrics: dict[str, float] | None = None, *, is_debug: bool = False) -> Subject:
    kernel = write_kernel(TEXT, metrics=metrics, grid=(64, 1, 1))
    if is_debug:
        kernel = replace(kernel, cubin=replace(make_cubin([]), debug_functions=frozenset({kernel.mangled_name})))
    return Subject(kernel, make_blame(kernel))


def make_advice(optimizer: str, estimate: float, *, relieves: bool = False) -> Advice:
    return Advice(
        optimizer=optimizer,
        title=optimizer,
        category=Category.CODE,
        group="",
        speedup=Speedup(
            estimate=estimate, low=estimate, high=estimate, bound=9.0, bound_reason=NOTHING, uncapped=estimate
        ),
        share=measure_share(0, 100),
        matched_samples=0,
        matched_latency_samples=0,
        scope=Scope(kind=ScopeKind.KERNEL, function="kernel", row=0),
        regions=(),
        hint=NOTHING,
        caveats=(),
        reasons=(),
        relieves_limiter=relieves,
    )


def make_limiter(kind: LimiterKind, *limits: Limit, unit: str = "") -> Limiter:
    following = limits[1] if len(limits) > 1 else None
    return Limiter(
        kind=kind,
        unit=unit or (limits[0].unit if limits else ""),
        busy_ratio=limits[0].busy_ratio if limits else None,
        next=following,
        next_factor=1.2 if following else None,
        confidence=Confidence.SURE,
        sentence=say("Something limits it."),
        limits=limits,
    )


FULL_DRAM = Limit(unit="dram", label="DRAM", busy_ratio=0.85, sustained_ratio=0.91)
FULL_FMA = Limit(unit="fma", label="The FMA pipe", busy_ratio=0.7, sustained_ratio=1.0)


class TestRank:
    ADVICE = (make_advice("loop_unrolling", 1.2), make_advice("kernel_fusion", 1.5), make_advice("fast_math", 1.3))

    def test_the_largest_estimate_is_first_and_what_is_outside_the_kernel_last(self):
        ranked = rank(make_limiter(LimiterKind.UNIT, FULL_DRAM), self.ADVICE, OPTIMIZERS)
        assert [one.optimizer for one in ranked] == ["fast_math", "loop_unrolling", "kernel_fusion"]

    def test_what_may_gain_next_to_nothing_comes_behind_what_gains(self):
        unsure = make_advice("vector_accesses", 1.9)
        unsure = replace(unsure, speedup=replace(unsure.speedup, low=1.0))
        ranked = rank(make_limiter(LimiterKind.UNIT, FULL_DRAM), (unsure, *self.ADVICE), OPTIMIZERS)
        assert [one.optimizer for one in ranked] == ["fast_math", "loop_unrolling", "vector_accesses", "kernel_fusion"]

    def test_a_debug_build_comes_first(self):
        advice = (*self.ADVICE, make_advice("debug_build", 1.05))
        ranked = rank(make_limiter(LimiterKind.BUILD, unit="debug"), advice, OPTIMIZERS)
        assert ranked[0].optimizer == "debug_build"

    def test_remedies_outside_the_kernel_are_those_of_launches_of_how_the_grid_divides_and_of_what_data_takes(self):
        outside = {name for name, one in OPTIMIZERS.items() if one.is_outside}
        assert outside == {"data_compression", "kernel_fusion", "lower_precision", "sm_imbalance", "tail_effect"}

    @given(
        st.lists(st.sampled_from(sorted(OPTIMIZERS)), unique=True),
        st.lists(st.floats(1.01, 3), min_size=40, max_size=40),
    )
    def test_nothing_is_lost(self, names: list[str], estimates: list[float]):
        advice = [make_advice(name, estimate) for name, estimate in zip(names, estimates, strict=False)]
        ranked = rank(make_limiter(LimiterKind.UNIT, FULL_DRAM), advice, OPTIMIZERS)
        assert sorted(one.optimizer for one in ranked) == sorted(names)


def stand(limiter: Limiter, *advice: Advice) -> list[Standing]:
    return [one.standing for one in decide_standing(KernelAdvice(advice=advice), limiter, OPTIMIZERS).advice]


class TestStanding:
    def test_what_helps_only_after_the_first_remedy_is_called_so(self):
        """The first takes work from DRAM, behind which the FMA pipe comes at 1.2×; the second leaves DRAM alone."""
        limiter = make_limiter(LimiterKind.UNIT, FULL_DRAM, FULL_FMA)
        first, second = make_advice("global_coalescing", 1.4, relieves=True), make_advice("fast_math", 1.3)
        assert stand(limiter, first, second) == [Standing.NOW, Standing.THEN]
        assert stand(limiter, replace(first, relieves_limiter=False), second) == [Standing.NOW, Standing.NOW]

    def test_what_gains_little_is_small_but_not_the_build(self):
        assert stand(make_limiter(LimiterKind.UNIT, FULL_DRAM), make_advice("fast_math", 1.02)) == [Standing.SMALL]
        assert stand(make_limiter(LimiterKind.LATENCY, FULL_DRAM), make_advice("fast_math", 1.02)) == [Standing.SMALL]
        assert stand(make_limiter(LimiterKind.BUILD), make_advice("debug_build", 1.02)) == [Standing.NOW]

    def test_other_launches_stand_outside(self):
        advice = make_advice("kernel_fusion", 1.5), make_advice("at_the_limit", 1.0)
        assert stand(make_limiter(LimiterKind.LATENCY), *advice) == [Standing.OUTSIDE, Standing.NOTHING]

    def test_a_kernel_with_a_better_suggestion_is_not_at_its_limit(self):
        limiter, nothing = make_limiter(LimiterKind.UNIT, FULL_DRAM), make_advice("at_the_limit", 1.0)
        assert stand(limiter, make_advice("global_coalescing", 1.4, relieves=True), nothing) == [Standing.NOW]
        assert stand(limiter, make_advice("fast_math", 1.02), nothing) == [Standing.SMALL, Standing.NOTHING]


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
