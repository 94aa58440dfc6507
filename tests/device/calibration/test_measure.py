"""Measured rates are those of the simulated GPU, whatever its launches cost."""

import pytest

from gpa_lsp.execution.calibration.benchmark_sources import (
    Timing,
    list_arithmetic_benchmarks,
    make_common_benchmark,
    make_l1_benchmark,
    make_shared_benchmark,
)
from gpa_lsp.execution.calibration.calibrate import Patience, choose_plateau, measure_arithmetic, measure_shared, sweep
from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.gpu.device.model import OperationKind
from tests.device.calibration.simulated_gpu import BYTES_PER_S, FACTS, SM_HZ, SimulatedGpu, compile_nothing

QUICK = Patience(least_seconds=0.02, repetitions=3)
EXPECTED_PER_CYCLE = {
    OperationKind.FP64: 4 * 80,
    OperationKind.FP32: 256 * 80,
    OperationKind.FP16: 256 * 80,
    OperationKind.INT32: 128 * 80,
    OperationKind.SPECIAL: 16 * 80,
    OperationKind.TENSOR_FP16: 1024 * 80,
    OperationKind.TENSOR_INT8: 1024 * 80,
}


@pytest.mark.parametrize("kind", EXPECTED_PER_CYCLE)
def test_peaks_come_out(kind: OperationKind) -> None:
    benchmarks, _ = list_arithmetic_benchmarks(FACTS.compute_capability)
    benchmark = next(benchmark for benchmark in benchmarks if benchmark.kind is kind)
    rate = measure_arithmetic(SimulatedGpu(), benchmark, compile_nothing, QUICK)
    assert rate.per_cycle == pytest.approx(EXPECTED_PER_CYCLE[kind], rel=1e-3)
    assert rate.per_s == pytest.approx(EXPECTED_PER_CYCLE[kind] * SM_HZ, rel=1e-3)
    assert rate.sm_hz == pytest.approx(SM_HZ, rel=1e-3)


def test_the_best_run_counts_and_the_worst_is_told() -> None:
    benchmark = list_arithmetic_benchmarks(FACTS.compute_capability)[0][1]
    probe = SimulatedGpu()
    measure_arithmetic(probe, benchmark, compile_nothing, QUICK)
    rate = measure_arithmetic(SimulatedGpu(slow_runs=(probe.runs,)), benchmark, compile_nothing, QUICK)
    assert rate.low_per_s == pytest.approx(rate.per_s / 2, rel=1e-3)


def test_without_a_timer_there_is_no_rate_per_cycle() -> None:
    benchmark = list_arithmetic_benchmarks(FACTS.compute_capability)[0][1]
    rate = measure_arithmetic(SimulatedGpu(timer_ticks=False), benchmark, compile_nothing, QUICK)
    assert (rate.per_cycle, rate.sm_hz) == (None, None)
    assert rate.per_s == pytest.approx(256 * 80 * SM_HZ, rel=1e-3)


def test_a_kernel_that_does_nothing_is_not_believed() -> None:
    class Idle(SimulatedGpu):
        def run(self, kernel: int, blocks: int, threads: int, arguments: tuple[int, ...], turns: int) -> Timing:
            return Timing(seconds=1e-6, sm_cycles=10, block_seconds=1e-6)

    benchmark = list_arithmetic_benchmarks(FACTS.compute_capability)[0][1]
    with pytest.raises(ToolError, match="always too short"):
        measure_arithmetic(Idle(), benchmark, compile_nothing, QUICK)


def test_levels_of_the_memory_come_out() -> None:
    gpu = SimulatedGpu()
    shared = measure_shared(gpu, make_shared_benchmark(), compile_nothing, QUICK)
    assert shared.per_s == pytest.approx(BYTES_PER_S["shared"], rel=1e-3)
    inside = sweep(gpu, make_l1_benchmark(), compile_nothing, (32 << 10, 64 << 10, 256 << 10), QUICK)
    assert [point.rate.per_s for point in inside] == pytest.approx(
        [BYTES_PER_S["L1"], BYTES_PER_S["L1"], BYTES_PER_S["L2"]], rel=1e-3
    )
    common = sweep(gpu, make_common_benchmark(), compile_nothing, (2 << 20, 64 << 20), QUICK)
    assert [point.rate.per_s for point in common] == pytest.approx([BYTES_PER_S["L2"], BYTES_PER_S["DRAM"]], rel=1e-3)
    assert gpu.allocated == [80 * (256 << 10), 64 << 20]


def test_a_plateau_is_the_fastest_set_inside_the_level() -> None:
    points = sweep(SimulatedGpu(), make_common_benchmark(), compile_nothing, (1 << 20, 2 << 20, 64 << 20), QUICK)
    best = choose_plateau(points, 0, 2 << 20)
    assert best.working_set_bytes in (1 << 20, 2 << 20)
    assert choose_plateau(points, 1 << 30, 2 << 30) is None
