"""Optimizers that look at the launch: bounds whatever the launch is, and real reports. The files named after them hold the numbers."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.diagnosis.advice.model import Advice, Category, Silence
from tests.advice.subjects import make_subject
from tests.advice.test_matches import NO_SHARED, PARALLEL, ask
from tests.conftest import examples
from tests.real_reports import REPORTS, join
from tests.rows.written import write_kernel


def test_their_category_is_parallel() -> None:
    assert {name for name, one in list_optimizers().items() if one.category is Category.PARALLEL} >= set(PARALLEL)


@examples(200)
@given(
    name=st.sampled_from(["block_increase", "thread_increase"]),
    launch=st.tuples(st.integers(1, 79) | st.just(10**6), st.integers(1, 1024), st.integers(1, 255)),
    samples=st.tuples(st.integers(0, 5000), st.integers(0, 5000)),
    capability=st.sampled_from([(7, 0), (7, 5), (8, 0), (8, 6), (9, 0), (12, 0)]),
)
def test_bounds_hold(name, launch, samples, capability):
    (blocks, threads, registers), (waiting, selected) = launch, samples
    text = f"""
        B-:R-:W2:-:S02  LDG.E R2, [R4.64]     # k.cu:3 | selected={selected}
        B2:R-:W-:-:S04  FFMA R2, R2, R3, R6   # k.cu:4 | long_scoreboard=900 not_selected={waiting}
        B-:R-:W-:-:S05  EXIT
    """
    given_launch = {"grid": (blocks, 1, 1), "block": (threads, 1, 1), "registers": registers, "metrics": NO_SHARED}
    kernel = write_kernel(text, compute_capability=capability, sm_count=80, **given_launch)
    answer = ask(name, make_subject(kernel))
    if isinstance(answer, Advice):
        speedup = answer.speedup
        assert 1 <= speedup.low <= speedup.estimate <= speedup.high <= speedup.bound
        assert name != "block_increase" or speedup.bound <= 80 / blocks + 1e-9


@cache
def answers(report: str) -> dict[str, dict[str, Advice | Silence]]:
    """Kernel → optimizer → answer."""
    return {
        kernel.mangled_name: {name: ask(name, make_subject(kernel)) for name in PARALLEL}
        for kernel in join(f"{report}.ncu-rep")
    }


def find(report: str, kernel: str, optimizer: str) -> Advice | Silence:
    return next(found[optimizer] for name, found in answers(report).items() if kernel in name)


@pytest.mark.corpus
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
        assert 1 <= found.speedup.low < found.speedup.estimate <= found.speedup.high

    def test_a_tail_of_four_blocks_is_not_half_the_time(self):
        found = find("rtx5090_matmul_2026.2", "matmul", "tail_effect")
        assert isinstance(found, Advice)
        assert found.speedup.estimate < 1.03
        assert found.speedup.bound_reason.startswith("L1 load/store, at 74 %, is the current limit")

    def test_a_kernel_of_one_thread_leaves_81_of_82_sms_idle(self):
        found = find("rtx3090_mergesort_2023.1", "testSortedSegments", "small_grid")
        assert isinstance(found, Advice)
        assert found.speedup.bound == pytest.approx(80.2, abs=0.1), "the first access to memory takes as long as now"

    def test_every_answer_is_sound(self):
        spoken = 0
        for name in REPORTS:
            for found in answers(name.removesuffix(".ncu-rep")).values():
                for answer in found.values():
                    assert not isinstance(answer, Silence) or answer.message
                    if isinstance(answer, Advice):
                        spoken += 1
                        speedup = answer.speedup
                        assert 1 <= speedup.low <= speedup.estimate <= speedup.high <= speedup.bound
        assert spoken > 10
