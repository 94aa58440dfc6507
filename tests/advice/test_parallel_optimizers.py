"""Blocks, threads, warps and SMs: when each remedy speaks, with which numbers, and why it keeps silent."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.advise import find_obstacle, list_optimizers
from gpa_lsp.diagnosis.advice.limiter_rules import hold_to_limiter
from gpa_lsp.diagnosis.advice.model import Advice, Category, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import Optimizer
from gpa_lsp.diagnosis.advice.optimizers.block_increase import OPTIMIZER as BLOCK_INCREASE
from gpa_lsp.diagnosis.advice.optimizers.partial_last_warp import OPTIMIZER as PARTIAL_LAST_WARP
from gpa_lsp.diagnosis.advice.optimizers.sm_imbalance import OPTIMIZER as SM_IMBALANCE
from gpa_lsp.diagnosis.advice.optimizers.small_grid import OPTIMIZER as SMALL_GRID
from gpa_lsp.diagnosis.advice.optimizers.tail_effect import OPTIMIZER as TAIL_EFFECT
from gpa_lsp.diagnosis.advice.optimizers.thread_increase import OPTIMIZER as THREAD_INCREASE
from gpa_lsp.diagnosis.advice.subject import Subject
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.scopes import ScopeKind
from gpa_lsp.profile.read import read_profile
from tests.advice.subjects import make_subject
from tests.conftest import examples, find_corpus
from tests.rows.written import write_kernel

CORPUS = find_corpus()
PARALLEL = (BLOCK_INCREASE, PARTIAL_LAST_WARP, SM_IMBALANCE, SMALL_GRID, TAIL_EFFECT, THREAD_INCREASE)
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SM_USE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
NO_SHARED = {"launch__shared_mem_per_block_static": 0.0, "launch__shared_mem_per_block_dynamic": 0.0}


def subject(
    *,
    blocks: int,
    threads: int,
    sms: int = 80,
    registers: int = 32,
    stalls: str = "long_scoreboard=900",
    selected: int = 100,
    capability: tuple[int, int] = (7, 0),
    **metrics: float,
) -> Subject:
    kernel = write_kernel(
        f"""
        B-:R-:W2:-:S02  LDG.E R2, [R4.64]     # k.cu:3 | selected={selected}
        B2:R-:W-:-:S04  FFMA R2, R2, R3, R6   # k.cu:4 | {stalls}
        B-:R-:W-:-:S05  EXIT
        """,
        compute_capability=capability,
        grid=(blocks, 1, 1),
        block=(threads, 1, 1),
        sm_count=sms,
        registers=registers,
        metrics={**NO_SHARED, **{name.replace("___", "."): value for name, value in metrics.items()}},
    )
    return make_subject(kernel)


def ask(optimizer: Optimizer, of: Subject) -> Advice | Silence:
    answer = find_obstacle(optimizer, of) or optimizer.advise(of)
    return hold_to_limiter(of, answer, optimizer.reliefs, is_priced=False) if isinstance(answer, Advice) else answer


def advice(optimizer: Optimizer, of: Subject) -> Advice:
    answer = ask(optimizer, of)
    assert isinstance(answer, Advice), answer
    return answer


def silence(optimizer: Optimizer, of: Subject) -> tuple[SilenceStage, str]:
    answer = ask(optimizer, of)
    assert isinstance(answer, Silence), answer
    return answer.stage, answer.message


def test_all_of_them_are_in_the_catalogue():
    for optimizer in PARALLEL:
        assert list_optimizers()[optimizer.name] is optimizer
        assert optimizer.category is Category.PARALLEL


# Block increase


def test_few_large_blocks_are_split_so_that_warps_meet_no_others():
    """16 blocks of 8 warps on 80 SMs, half of the samples waiting for other warps: 2 warps per scheduler now, 1 when each block is two."""
    contended = subject(blocks=16, threads=256, stalls="long_scoreboard=400 not_selected=300 math_pipe_throttle=200")
    found = advice(BLOCK_INCREASE, contended)
    assert "Launch 32 blocks of 128 threads" in found.hint
    assert "With 16 blocks of 256 threads, 64 of 80 SMs are idle" in found.hint
    assert found.hint.endswith("each scheduler then has 1 warp instead of 2.")
    assert found.speedup.uncapped == pytest.approx(2 * (0.1 / (1 - 0.9**2)) * 2)
    assert found.speedup.estimate == found.speedup.bound == 2.0
    assert found.speedup.bound_reason == "the busiest of 80 SMs keeps at least 50 % of its work"
    assert found.scope.kind is ScopeKind.KERNEL


def test_a_latency_bound_kernel_gains_little_from_smaller_blocks():
    found = advice(BLOCK_INCREASE, subject(blocks=16, threads=256))
    assert found.speedup.estimate == pytest.approx(2 * 0.1 / (1 - 0.9**2))
    assert found.speedup.estimate < 1.06


def test_a_split_never_promises_more_than_the_free_sms():
    """79 of 80 SMs are busy: the published formula would still promise its factor."""
    contended = subject(blocks=79, threads=1024, stalls="not_selected=800")
    answer = ask(BLOCK_INCREASE, contended)
    if isinstance(answer, Advice):
        assert answer.speedup.estimate <= 80 / 79
    else:
        assert "gives the busiest of 80 SMs less work" in answer.message


def test_blocks_are_split_in_more_parts_where_two_do_not_help():
    """50 blocks on 80 SMs: in halves, one SM still gets two; in 8 parts the busiest gets 5 of 8."""
    found = advice(BLOCK_INCREASE, subject(blocks=50, threads=1024, stalls="not_selected=700 wait=200"))
    assert "Launch 400 blocks of 128 threads" in found.hint
    assert found.speedup.bound == pytest.approx(8 / 5)


def test_blocks_that_share_memory_say_so():
    shared = subject(blocks=16, threads=256, stalls="not_selected=500", launch__shared_mem_per_block_dynamic=4096.0)
    assert "Each smaller block needs its own shared memory." in advice(BLOCK_INCREASE, shared).caveats


@pytest.mark.parametrize(
    ("blocks", "threads", "words"),
    [
        (80, 1024, "the grid of 80 blocks reaches all 80 SMs"),
        (1, 32, "a block of 1 warp gives each scheduler at most one"),
        (40, 128, "a block of 4 warps gives each scheduler at most one"),
    ],
)
def test_block_increase_keeps_silent(blocks: int, threads: int, words: str):
    stage, message = silence(BLOCK_INCREASE, subject(blocks=blocks, threads=threads))
    assert stage is SilenceStage.NOT_MATCHED
    assert message.startswith(words)


@examples(100)
@given(
    blocks=st.integers(1, 79),
    warps=st.integers(1, 32),
    waiting=st.integers(0, 5000),
    selected=st.integers(0, 5000),
)
def test_block_increase_holds_its_bounds(blocks: int, warps: int, waiting: int, selected: int):
    of = subject(blocks=blocks, threads=32 * warps, stalls=f"not_selected={waiting} wait=10", selected=selected)
    answer = ask(BLOCK_INCREASE, of)
    if isinstance(answer, Advice):
        speedup = answer.speedup
        assert 1 <= speedup.low <= speedup.estimate <= speedup.high <= speedup.bound <= 80 / blocks + 1e-9


# Small grid


def test_a_serial_kernel_is_told_that_all_other_sms_are_idle():
    found = advice(SMALL_GRID, subject(blocks=1, threads=1))
    assert found.speedup.estimate == pytest.approx(80**0.5), "half of the way to 80 SMs, on a logarithmic scale"
    assert found.speedup.low == 1.0
    assert found.speedup.high == found.speedup.bound == pytest.approx(80.0)
    assert "with 1 block of 1 thread, 79 of 80 SMs are idle." in found.hint
    assert "whole warps (1 of 32 lanes in use)" in found.hint
    assert "whole warps would gain more" in found.speedup.bound_reason
    whole = advice(SMALL_GRID, subject(blocks=1, threads=32))
    assert "Let each thread do less" in whole.hint
    assert whole.speedup.bound_reason == "80 SMs do at most 80.0× the work of 1"


def test_time_in_which_no_sm_works_cannot_be_won():
    part = subject(blocks=20, threads=128, sm__cycles_active___max=500.0, sm__cycles_elapsed___max=1000.0)
    found = advice(SMALL_GRID, part)
    assert found.speedup.estimate == pytest.approx(1 / (1 - 0.5 / 2))
    assert found.speedup.bound == pytest.approx(1 / (1 - 0.75 / 2))


def test_twice_the_blocks_may_be_more_than_the_sms_can_take():
    found = advice(SMALL_GRID, subject(blocks=60, threads=128))
    assert found.speedup.estimate == found.speedup.bound == pytest.approx(80 / 60)


def test_a_part_of_a_wave_is_priced_half_of_the_way_to_a_whole_one():
    """160 blocks of one warp: half a warp per scheduler, of 8 that fit (32 blocks): half of the way to them, on a logarithmic scale."""
    found = advice(SMALL_GRID, subject(blocks=160, threads=32))
    issued = 1 - 0.9**0.5
    assert found.speedup.estimate == pytest.approx(((1 - 0.9**8) / issued) ** 0.5)
    assert found.speedup.estimate > (1 - 0.9) / issued, "twice the warps, which is the least"
    assert found.speedup.high == found.speedup.bound == pytest.approx((1 - 0.9**8) / issued)
    assert found.speedup.low == 1.0
    assert "160 blocks of 32 threads are 6.2 % of the warps that fit on 80 SMs" in found.hint


@pytest.mark.parametrize(
    ("blocks", "threads", "words"),
    [
        (16, 256, "blocks of 8 warps can be split"),
        (1280, 128, "the grid fills 80 SMs"),
        (640, 128, "the grid is 50 % of what fits on 80 SMs"),
    ],
)
def test_small_grid_keeps_silent(blocks: int, threads: int, words: str):
    stage, message = silence(SMALL_GRID, subject(blocks=blocks, threads=threads))
    assert stage is SilenceStage.NOT_MATCHED
    assert message.startswith(words)


# Thread increase


def test_registers_that_limit_the_warps_are_named_with_the_numbers():
    """V100, 64 registers: 8 blocks of 4 warps."""
    found = advice(THREAD_INCREASE, subject(blocks=65535, threads=128, registers=64))
    assert found.hint == (
        "More warps fit with 56 registers per thread instead of 64 (36 warps, 4 more); the most fit with 32 registers (64 warps, 32 more): "
        "an SM holds 32 of 64 warps, limited by registers."
    )
    assert found.speedup.estimate == pytest.approx((1 - 0.9**9) / (1 - 0.9**8))
    assert found.speedup.bound == pytest.approx((1 - 0.9**16) / (1 - 0.9**8))
    assert any("spill" in caveat for caveat in found.caveats)


def test_thirty_three_registers_cost_a_quarter_of_the_warps():
    found = advice(THREAD_INCREASE, subject(blocks=65535, threads=128, registers=33))
    assert "32 registers per thread instead of 33 (64 warps, 16 more): an SM" in found.hint
    assert "last step" not in found.hint


def test_blocks_of_one_warp_should_grow_to_the_architectures_limit():
    """Blocks limit: 16 of one warp on 8.6, which holds 48 warps, not 64."""
    found = advice(THREAD_INCREASE, subject(blocks=65535, threads=32, registers=24, capability=(8, 6)))
    assert "an SM holds 16 of 48 warps, limited by blocks." in found.hint
    assert "More warps fit with blocks of 96 threads instead of 32 (48 warps, 32 more)" in found.hint
    assert found.speedup.estimate == found.speedup.bound == pytest.approx((1 - 0.9**12) / (1 - 0.9**4))


def test_shared_memory_that_limits_the_warps_is_named():
    tiles = subject(blocks=65535, threads=256, capability=(8, 0), launch__shared_mem_per_block_dynamic=60000.0)
    found = advice(THREAD_INCREASE, tiles)
    assert "54,912 bytes of shared memory per block instead of 60,000 (24 warps, 8 more)" in found.hint
    assert found.caveats == ("Smaller tiles in shared memory may read global memory more often.",)


def test_measured_warps_count_where_they_are_known():
    measured = subject(blocks=65535, threads=128, registers=64, smsp__warps_active___avg___per_cycle_active=7.0)
    found = advice(THREAD_INCREASE, measured)
    assert found.speedup.uncapped == pytest.approx((1 - 0.9 ** (7 * 9 / 8)) / (1 - 0.9**7))


def test_busy_schedulers_and_units_bound_what_warps_can_gain():
    busy = {"blocks": 65535, "threads": 32, "registers": 16, "selected": 50}
    issuing = advice(THREAD_INCREASE, subject(**busy, smsp__issue_active___avg___per_cycle_active=0.8))
    assert issuing.speedup.estimate == issuing.speedup.bound == pytest.approx(1.25)
    assert issuing.speedup.bound_reason == "the schedulers already issue in 80 % of their cycles"
    piped = advice(THREAD_INCREASE, subject(**busy, **{SM_USE.replace(".", "___"): 70.0}))
    assert piped.speedup.bound == pytest.approx(1 / 0.7)
    assert piped.speedup.bound_reason == "the busiest SM unit runs at 70 % of peak"


def test_the_grid_must_have_the_warps():
    stage, message = silence(THREAD_INCREASE, subject(blocks=640, threads=128, registers=64))
    assert stage is SilenceStage.NOT_MATCHED
    assert message == "the grid has only 32 warps per SM, and 32 fit"


def test_below_a_full_memory_more_warps_go_half_of_the_way_to_its_peak():
    of = subject(blocks=65535, threads=128, registers=64, **{DRAM.replace(".", "___"): 89.0})
    speedup = advice(THREAD_INCREASE, of).speedup
    assert speedup.uncapped == pytest.approx(1.08, abs=0.005)
    assert (speedup.low, speedup.bound) == (1.0, pytest.approx(1 / 0.89))
    assert speedup.estimate == pytest.approx(0.91 / 0.89), (
        "the least of the formula, what DRAM sustains, and half of the way"
    )
    assert speedup.bound_reason == "DRAM, at 89 %, is the current limit; this does not relieve it"


def test_a_memory_that_sustains_no_more_gates_more_warps():
    of = subject(blocks=65535, threads=128, registers=64, **{DRAM.replace(".", "___"): 90.5})
    stage, message = silence(THREAD_INCREASE, of)
    assert stage is SilenceStage.GATED
    assert message.startswith("1.08× by the formula alone, but DRAM runs at 90 % of peak (ceiling 91 %)")


def test_warps_that_are_ready_and_not_picked_gate_more_of_them():
    of = subject(blocks=65535, threads=128, registers=64, stalls="long_scoreboard=600 not_selected=300")
    stage, message = silence(THREAD_INCREASE, of)
    assert stage is SilenceStage.GATED
    assert "30 % of the samples are ready warps that were not selected" in message


def test_uneven_residency_is_no_matter_of_limits():
    of = subject(blocks=65535, threads=128, registers=64, smsp__warps_active___avg___per_cycle_active=4.0)
    stage, message = silence(THREAD_INCREASE, of)
    assert stage is SilenceStage.NOT_MATCHED
    assert message == "of 32 warps that fit on an SM, only 16 are resident on average"


def test_full_sms_and_unknown_limits_keep_silent():
    full = subject(blocks=65535, threads=128)
    assert silence(THREAD_INCREASE, full) == (
        SilenceStage.NOT_MATCHED,
        "all 64 warps that an SM holds can be resident",
    )
    kernel = write_kernel("B-:R-:W-:-:S05  EXIT # - | selected=1")
    assert silence(THREAD_INCREASE, make_subject(kernel))[0] is SilenceStage.NO_METRICS


@examples(100)
@given(
    threads=st.integers(1, 1024),
    registers=st.integers(1, 255),
    selected=st.integers(0, 2000),
    capability=st.sampled_from([(7, 0), (7, 5), (8, 0), (8, 6), (9, 0), (12, 0)]),
)
def test_thread_increase_holds_its_bounds(threads, registers, selected, capability):
    of = subject(blocks=10**6, threads=threads, registers=registers, selected=selected, capability=capability)
    answer = ask(THREAD_INCREASE, of)
    if isinstance(answer, Advice):
        speedup = answer.speedup
        assert 1 <= speedup.low <= speedup.estimate <= speedup.high <= speedup.bound


# Partial last warp


def test_lanes_without_threads_are_priced_by_the_warps_they_cost():
    """The vendor's closed form: (1 / warps) · (1 − last / 32)."""
    found = advice(PARTIAL_LAST_WARP, subject(blocks=65536, threads=250))
    assert found.speedup.estimate == pytest.approx(1 / (1 - 1 / 8 * (1 - 26 / 32)))
    assert "8 warps, the last with 26 of 32 lanes in use. Blocks of 256 or 224 threads use all lanes." in found.hint


def test_resident_warps_only_save_their_issue_cycles():
    small = subject(
        blocks=8, threads=48, launch__waves_per_multiprocessor=0.05, smsp__issue_active___avg___per_cycle_active=0.2
    )
    found = advice(PARTIAL_LAST_WARP, small)
    assert found.speedup.estimate == pytest.approx(1 / (1 - 0.25 * 0.2))
    assert found.speedup.low == pytest.approx(1 + (found.speedup.estimate - 1) / 2)
    assert found.speedup.high == pytest.approx(1 / (1 - 0.25))


@pytest.mark.parametrize(
    ("blocks", "threads", "words"),
    [(100, 256, "blocks of 256 threads are whole warps"), (1, 20, "the threads of the grid fill no fewer warps")],
)
def test_full_warps_and_single_ones_keep_silent(blocks: int, threads: int, words: str):
    assert silence(PARTIAL_LAST_WARP, subject(blocks=blocks, threads=threads)) == (SilenceStage.NOT_MATCHED, words)


# Tail effect


def tail(blocks: int, waves: float, achieved: float = 60.0, **more: float) -> Subject:
    metrics = {
        "launch__waves_per_multiprocessor": waves,
        "sm__warps_active___avg___pct_of_peak_sustained_active": achieved,
        "sm__maximum_warps_per_active_cycle_pct": 100.0,
    }
    return subject(blocks=blocks, threads=128, **{**metrics, **more})


def test_a_started_wave_is_priced_as_a_full_one():
    found = advice(TAIL_EFFECT, tail(1600, 1.25))
    assert found.speedup.estimate == pytest.approx(1 / (1 - 0.75 / 2))
    assert found.speedup.low == 1.0
    assert "1,600 blocks are 1 full wave of 1,280 and a last one of 320." in found.hint


def test_missing_warps_bound_the_tail():
    assert advice(TAIL_EFFECT, tail(1600, 1.25, achieved=75.0)).speedup.estimate == pytest.approx(1 / 0.75)


def test_measured_idle_time_is_the_estimate_and_the_waves_the_upper_end():
    """1,024 blocks in waves of 1,020 look like half the time lost; the SMs were idle for 2 % of it, and held 69 % of the warps in the rest."""
    measured = tail(1024, 1024 / 1020, 69.0, sm__cycles_active___avg=980.0, sm__cycles_active___max=1000.0)
    speedup = advice(TAIL_EFFECT, measured).speedup
    assert speedup.estimate == pytest.approx(1 / 0.98)
    assert speedup.low == pytest.approx(1 + (speedup.estimate - 1) / 2)
    assert speedup.high == pytest.approx(1 / (0.69 * 0.98))


@pytest.mark.parametrize(
    ("waves", "achieved", "words"),
    [
        (0.8, 50.0, "all blocks run at once: they are 80 % of a wave"),
        (2.0, 50.0, "the blocks are 2 whole waves"),
        (7.5, 50.0, "one wave of 8 is too small a part to matter"),
        (1.5, 90.0, "90 % of the warps that fit were resident on average: the last wave overlapped the others"),
    ],
)
def test_no_tail_keeps_silent(waves: float, achieved: float, words: str):
    assert silence(TAIL_EFFECT, tail(1000, waves, achieved)) == (SilenceStage.NOT_MATCHED, words)


# SM imbalance


def imbalance(blocks: int, mean: float, longest: float, elapsed: float) -> Subject:
    return subject(
        blocks=blocks,
        threads=128,
        sm__cycles_active___avg=mean,
        sm__cycles_active___max=longest,
        sm__cycles_elapsed___max=elapsed,
    )


def test_sms_that_end_early_are_priced_by_their_idle_time():
    found = advice(SM_IMBALANCE, imbalance(8000, 700.0, 900.0, 1000.0))
    assert found.speedup.estimate == pytest.approx(1 / (1 - (1 - 7 / 9) * 0.9))
    assert "some of the 8,000 blocks run longer than others" in found.hint


def test_blocks_that_do_not_divide_by_the_sms_are_named():
    """426 blocks on 80 SMs: 26 get 6, 54 get 5, as uneven as measured."""
    found = advice(SM_IMBALANCE, imbalance(426, 888.0, 1000.0, 1000.0))
    assert "426 blocks do not divide evenly among 80 SMs: 26 get 6, the others 5." in found.hint


def test_no_imbalance_keeps_silent():
    assert silence(SM_IMBALANCE, imbalance(40, 500.0, 1000.0, 1000.0))[0] is SilenceStage.NOT_MATCHED
    assert silence(SM_IMBALANCE, imbalance(800, 1000.0, 1000.0, 1000.0)) == (
        SilenceStage.NOT_MATCHED,
        "all SMs were active equally long",
    )
    assert silence(SM_IMBALANCE, subject(blocks=800, threads=128))[0] is SilenceStage.NO_METRICS


# Real reports


@cache
def answers(report: str) -> dict[str, dict[str, Advice | Silence]]:
    """Kernel → optimizer → answer."""
    assert CORPUS is not None
    path = CORPUS / "ncu" / f"{report}.ncu-rep"
    if not path.is_file():
        pytest.skip("this report is not in the corpus")
    kernels, _ = join_profile(read_profile(path), with_text=False)
    return {
        kernel.mangled_name: {optimizer.name: ask(optimizer, make_subject(kernel)) for optimizer in PARALLEL}
        for kernel in kernels
    }


def find(report: str, kernel: str, optimizer: str) -> Advice | Silence:
    return next(found[optimizer] for name, found in answers(report).items() if kernel in name)


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="the corpus of real reports is not at hand")
class TestRealReports:
    def test_the_kernel_of_the_measured_pair_is_limited_by_registers_before_and_by_bandwidth_after(self):
        before = find("v100_miniweather_baseline_2022.2", "x_279", "thread_increase")
        after = find("v100_miniweather_divtomult_2022.2", "x_279", "thread_increase")
        assert isinstance(before, Advice)
        assert "More warps fit with 56 registers per thread instead of 64" in before.hint
        assert isinstance(after, Advice)
        assert after.speedup.estimate < 1.1, "DRAM runs at 81 %, and more warps go half of the way to its peak"
        assert after.speedup.bound_reason == "DRAM, at 81 %, is the current limit; this does not relieve it"

    def test_uneven_blocks_explain_the_imbalance_of_a_real_kernel(self):
        found = find("a100_cutlass_s8_2024.1", "ReferenceGemm", "sm_imbalance")
        assert isinstance(found, Advice)
        assert "576 blocks do not divide evenly among 108 SMs: 36 get 6, the others 5." in found.hint
        assert found.speedup.high == pytest.approx(1.126, abs=0.001), "where the rest comes of them, too"
        assert 1 <= found.speedup.low < found.speedup.estimate < found.speedup.high

    def test_a_tail_of_four_blocks_is_not_half_the_time(self):
        found = find("rtx5090_matmul_2026.2", "matmul", "tail_effect")
        assert isinstance(found, Advice)
        assert found.speedup.estimate < 1.03
        assert found.speedup.bound_reason.startswith("L1 runs at 74 % of peak")

    def test_a_kernel_of_one_thread_leaves_81_of_82_sms_idle(self):
        found = find("rtx3090_mergesort_2023.1", "testSortedSegments", "small_grid")
        assert isinstance(found, Advice)
        assert found.speedup.bound == pytest.approx(82)

    def test_every_answer_is_sound(self):
        assert CORPUS is not None
        spoken = 0
        for path in sorted((CORPUS / "ncu").glob("*.ncu-rep")):
            for found in answers(path.name.removesuffix(".ncu-rep")).values():
                for answer in found.values():
                    assert not isinstance(answer, Silence) or answer.message
                    if isinstance(answer, Advice):
                        spoken += 1
                        speedup = answer.speedup
                        assert 1 <= speedup.low <= speedup.estimate <= speedup.high <= speedup.bound
        assert spoken > 10
