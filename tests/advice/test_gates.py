"""Where a kernel stands, what that silences, what it puts first, and which bounds of a roofline hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.advice.advise import advise_kernel, list_optimizers
from gpa_lsp.advice.bounds import find_peak_roof, find_roof, find_sm_roof
from gpa_lsp.advice.gates import Limit, Standing, find_gate, find_standing, is_relief, rank_advice
from gpa_lsp.advice.model import Advice, Category, MemoryLevel, Speedup
from gpa_lsp.advice.reliefs import OccupancyUse, Relief, find_reliefs, list_reliefs
from gpa_lsp.advice.roofs import list_sure_roofs, measure_roofs
from gpa_lsp.advice.subject import Subject, build_subject
from gpa_lsp.analyses.roofline_model import KernelRoofline
from gpa_lsp.basis.figures import measure_share
from gpa_lsp.blame.blame import blame_kernel
from gpa_lsp.device.model import MemoryLevel as MachineLevel
from gpa_lsp.device.model import OperationKind
from gpa_lsp.rows.scopes import Scope, ScopeKind
from tests.advice.subjects import make_blame
from tests.analyses.starlight.rooflines import make_roofline
from tests.rows.written import write_kernel

T = 1e12
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
TEXT = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | selected=10
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4 | long_scoreboard=90
    B-:R-:W-:-:S05  EXIT
"""


def place(
    dram: float | None = None,
    fp32: float | None = None,
    *,
    shared: float | None = None,
    ceiling: float = 1.0,
    is_certain: bool = True,
    is_exact: bool = True,
) -> KernelRoofline:
    """Shares of the peaks, 0..1."""
    shares = {MachineLevel.DRAM: dram, MachineLevel.SHARED: shared}
    return make_roofline(
        ops_per_s=None if fp32 is None else fp32 * 10 * T,
        peaks={OperationKind.FP32: 10 * T},
        traffic={level: (share * 2 * T, 2 * T) for level, share in shares.items() if share is not None},
        ceilings={MachineLevel.DRAM: ceiling},
        is_certain=is_certain,
        is_exact=is_exact,
    )


def make_subject(
    roofline: KernelRoofline | None = None, metrics: dict[str, float] | None = None, blocks: int = 64
) -> Subject:
    kernel = write_kernel(TEXT, metrics=metrics, grid=(blocks, 1, 1))
    return build_subject(kernel, make_blame(kernel), None, roofline)


def make_advice(optimizer: str, estimate: float) -> Advice:
    return Advice(
        optimizer=optimizer,
        title=optimizer,
        category=Category.CODE,
        group="",
        speedup=Speedup(estimate=estimate, low=estimate, high=estimate, bound=9.0, bound_reason="", uncapped=estimate),
        share=measure_share(0, 100),
        matched_samples=0,
        matched_latency_samples=0,
        scope=Scope(kind=ScopeKind.KERNEL, function="kernel", row=0),
        regions=(),
        hint="",
        caveats=(),
        reasons=(),
    )


class TestReliefs:
    def test_every_optimizer_has_its_line_and_every_line_its_optimizer(self):
        assert set(list_reliefs()) == set(list_optimizers())

    @pytest.mark.parametrize("name", list_reliefs())
    def test_a_line_is_whole(self, name: str):
        reliefs = find_reliefs(name)
        assert reliefs.relieves
        assert bool(reliefs.levels) == (Relief.BYTES in reliefs.relieves)
        assert MemoryLevel.ANY not in reliefs.levels

    def test_nobody_knows_what_an_unknown_optimizer_relieves(self):
        assert find_reliefs("flux_capacitor").relieves == frozenset()


class TestStanding:
    def test_the_nearest_roof_binds_from_four_fifths_of_what_it_sustains(self):
        assert find_standing(make_subject(place(0.69, 0.3, ceiling=0.85))).limit is Limit.MEMORY
        assert find_standing(make_subject(place(0.67, 0.3, ceiling=0.85))).limit is Limit.NEITHER

    def test_full_memory_is_named_with_its_level_and_figure(self):
        standing = find_standing(make_subject(place(0.93, 0.9)))
        assert standing.limit is Limit.MEMORY
        assert standing.levels == {MemoryLevel.DRAM}
        assert standing.words == "the kernel reaches 93 % of the DRAM bandwidth"

    def test_a_nearer_peak_makes_it_compute_bound(self):
        standing = find_standing(make_subject(place(0.85, 0.95)))
        assert standing.limit is Limit.COMPUTE
        assert standing.relief == {Relief.OPERATIONS}

    def test_the_percentages_suffice(self):
        standing = find_standing(make_subject(None, {DRAM: 90.0}))
        assert (standing.limit, standing.words) == (Limit.MEMORY, "DRAM already runs at 90 % of peak")
        # The roofline does not loosen what they say.
        assert find_standing(make_subject(place(0.1, 0.1), {DRAM: 90.0})).limit is Limit.MEMORY
        busy = find_standing(make_subject(None, {DRAM: 10.0, SM: 85.0}))
        assert (busy.limit, busy.relief) == (Limit.COMPUTE, {Relief.OPERATIONS, Relief.ISSUES})

    def test_what_is_not_known_may_be_the_limit(self):
        assert find_standing(make_subject()).limit is Limit.UNKNOWN
        assert find_standing(make_subject(place(0.2))).limit is Limit.UNKNOWN
        assert find_standing(make_subject(place(0.2), {SM: 20.0})).limit is Limit.NEITHER

    def test_assumed_limits_and_guessed_operations_gate_nothing(self):
        assert find_standing(make_subject(place(0.95, 0.1, is_certain=False))).limit is Limit.UNKNOWN
        assert find_standing(make_subject(place(0.1, 0.95, is_exact=False))).limit is Limit.UNKNOWN
        assert list_sure_roofs(place(0.1, 0.95, is_exact=False))[0].level is MachineLevel.DRAM


class TestGate:
    FULL = Standing(
        limit=Limit.MEMORY,
        levels=frozenset({MemoryLevel.DRAM}),
        relief=frozenset({Relief.BYTES}),
        words="DRAM bandwidth is at 93.0 %",
    )

    def test_more_warps_are_of_no_use_below_a_bandwidth_roof(self):
        silence = find_gate(self.FULL, make_subject(), make_advice("thread_increase", 1.3))
        assert silence is not None
        assert silence.message == (
            "1.30× by the formula alone, but DRAM bandwidth is at 93.0 %: more warps would only queue"
        )

    def test_a_small_grid_is_only_occupancy_where_every_sm_has_a_block(self):
        advice = make_advice("small_grid", 1.3)
        assert find_gate(self.FULL, make_subject(blocks=64), advice) is not None
        assert find_gate(self.FULL, make_subject(blocks=2), advice) is None

    def test_idle_sms_are_another_matter(self):
        assert find_gate(self.FULL, make_subject(blocks=2), make_advice("block_increase", 1.3)) is None

    @pytest.mark.parametrize("limit", [Limit.COMPUTE, Limit.NEITHER, Limit.UNKNOWN])
    def test_elsewhere_nothing_is_gated(self, limit: Limit):
        assert find_gate(Standing(limit=limit), make_subject(), make_advice("thread_increase", 1.3)) is None

    def test_only_what_makes_warps_resident_is_gated(self):
        gated = {name for name, reliefs in list_reliefs().items() if reliefs.occupancy is not OccupancyUse.NEVER}
        assert gated == {"thread_increase", "small_grid"}


class TestRank:
    ADVICE = (make_advice("loop_unrolling", 1.2), make_advice("global_coalescing", 1.1), make_advice("fast_math", 1.15))

    def rank(self, standing: Standing) -> list[str]:
        return [one.optimizer for one in rank_advice(standing, self.ADVICE)]

    def test_memory_bound_puts_fewer_bytes_first_and_says_so(self):
        ranked = rank_advice(TestGate.FULL, self.ADVICE)
        assert [one.optimizer for one in ranked] == ["global_coalescing", "loop_unrolling", "fast_math"]
        assert ranked[0].rank_reason == (
            "ranked above larger estimates: DRAM bandwidth is at 93.0 %, and this reduces that traffic"
        )
        assert ranked[1].rank_reason.startswith("ranked below what reduces the traffic")

    def test_only_the_full_level_counts(self):
        shared = Standing(
            limit=Limit.MEMORY, levels=frozenset({MemoryLevel.SHARED}), relief=frozenset({Relief.BYTES}), words="x"
        )
        assert self.rank(shared) == ["loop_unrolling", "fast_math", "global_coalescing"]
        assert is_relief(shared, "shared_bank_conflicts")

    def test_full_queues_count_for_all_bytes(self):
        queues = Standing(limit=Limit.MEMORY, relief=frozenset({Relief.BYTES}), words="x")
        assert self.rank(queues)[0] == "global_coalescing"

    def test_compute_bound_puts_fewer_operations_first(self):
        peak = Standing(limit=Limit.COMPUTE, relief=frozenset({Relief.OPERATIONS}), words="x")
        assert self.rank(peak) == ["fast_math", "loop_unrolling", "global_coalescing"]
        assert not is_relief(peak, "branch_divergence")

    @pytest.mark.parametrize("limit", [Limit.NEITHER, Limit.UNKNOWN])
    def test_below_all_roofs_the_largest_estimate_is_first(self, limit: Limit):
        ranked = rank_advice(Standing(limit=limit), self.ADVICE)
        assert [one.optimizer for one in ranked] == ["loop_unrolling", "fast_math", "global_coalescing"]
        assert {one.rank_reason for one in ranked} == {""}

    @given(
        st.lists(st.sampled_from(sorted(list_reliefs())), unique=True),
        st.lists(st.floats(1.01, 3), min_size=30, max_size=30),
        st.sampled_from(
            [
                TestGate.FULL,
                Standing(limit=Limit.COMPUTE, relief=frozenset({Relief.ISSUES})),
                Standing(limit=Limit.NEITHER),
            ]
        ),
    )
    def test_nobody_is_lost_and_who_moves_is_told_why(self, names: list[str], estimates: list[float], at: Standing):
        advice = [make_advice(name, estimate) for name, estimate in zip(names, estimates, strict=False)]
        ranked = rank_advice(at, advice)
        assert sorted(one.optimizer for one in ranked) == sorted(names)
        by_estimate = sorted(advice, key=lambda one: (-one.speedup.estimate, one.optimizer))
        for before, after in zip(by_estimate, ranked, strict=True):
            assert (before.optimizer == after.optimizer) == (after.rank_reason == "")
        firsts = [is_relief(at, one.optimizer) for one in ranked]
        assert firsts == sorted(firsts, reverse=True)


class TestBounds:
    def test_the_tighter_of_percentages_and_roofline_holds(self):
        tight = make_subject(place(0.8), {DRAM: 50.0})
        assert min(bound.speedup for bound in find_roof(tight)) == pytest.approx(1.25)
        loose = make_subject(place(0.2), {DRAM: 50.0})
        assert min(bound.speedup for bound in find_roof(loose)) == pytest.approx(0.85 / 0.5)

    def test_a_relieved_level_sets_no_bound_and_shared_memory_is_one_of_its_own(self):
        subject = make_subject(place(0.8, shared=0.5))
        every = (MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.DRAM)
        assert [bound.speedup for bound in find_roof(subject, every)] == [pytest.approx(2.0)]
        assert find_roof(subject, (*every, MemoryLevel.SHARED)) == ()

    def test_peaks_bound_what_keeps_the_operations(self):
        subject = make_subject(place(0.1, 0.8), {SM: 40.0})
        assert [bound.speedup for bound in find_sm_roof(subject)] == [pytest.approx(2.5), pytest.approx(1.25)]
        (bound,) = find_peak_roof(subject, "global_coalescing")
        assert bound.speedup == pytest.approx(1.25)
        assert bound.reason == "the kernel reaches 80 % of the FP32 peak and its operations are unchanged"
        assert find_peak_roof(subject, "fast_math") == ()

    def test_integers_bound_only_what_saves_no_instruction(self):
        roofline = make_roofline(
            ops_per_s=8 * T,
            peaks={OperationKind.INT32: 10 * T},
            traffic={MachineLevel.DRAM: (0.1 * T, 2 * T)},
            kind=OperationKind.INT32,
        )
        assert [bound.speedup for bound in find_peak_roof(make_subject(roofline), "global_coalescing")] == [1.25]
        assert find_peak_roof(make_subject(roofline), "memory_transaction_reduction") == ()

    @given(st.floats(0.01, 1.2), st.floats(0.01, 1.2), st.floats(1, 100), st.floats(1, 100))
    def test_a_roofline_never_loosens_a_bound(self, dram: float, fp32: float, percent: float, sm: float):
        metrics = {DRAM: percent, SM: sm}
        plain, placed = make_subject(None, metrics), make_subject(place(dram, fp32), metrics)
        for find in (find_roof, find_sm_roof):
            assert min(one.speedup for one in find(placed)) <= min(one.speedup for one in find(plain))
        assert measure_roofs(plain).is_bandwidth_bound <= (find_standing(placed).limit is Limit.MEMORY)


def test_a_roofline_takes_no_advice_above_its_headroom():
    """The barrier's 400 samples of 1,000 would gain 1.67×; FP32 is at 10/11 of its peak, and the operations stay."""
    kernel = write_kernel(
        """
        B-:R-:W-:-:S06 BAR.SYNC 0x0             # k.cu:5 | selected=300
        B-:R-:W-:-:S02 STG.E [R6.64], R3        # k.cu:6 | barrier=400/390 selected=300
        B-:R-:W-:-:S05 EXIT                     # k.cu:7
        """
    )
    (plain,) = advise_kernel(kernel, blame_kernel(kernel))[0].advice
    (placed,) = advise_kernel(kernel, blame_kernel(kernel), None, place(0.1, 10 / 11))[0].advice
    assert plain.speedup.estimate == pytest.approx(1 / 0.6)
    assert placed.speedup.estimate == pytest.approx(1.1)
    assert placed.speedup.uncapped == plain.speedup.uncapped
    assert "cut from 1.67× to 1.10×: the kernel reaches 91 % of the FP32 peak" in placed.reasons[-1]


def test_the_kernel_s_words_are_the_roofline_s_where_the_percentages_say_nothing():
    kernel = write_kernel(TEXT)
    placed, _ = advise_kernel(kernel, blame_kernel(kernel), None, place(0.93))
    assert (placed.memory, placed.is_bandwidth_bound) == ("the kernel reaches 93 % of the DRAM bandwidth", True)
    plain, _ = advise_kernel(kernel, blame_kernel(kernel))
    assert (plain.memory, plain.is_bandwidth_bound) == ("", False)
