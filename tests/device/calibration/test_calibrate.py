"""The whole calibration on a simulated GPU: what it is set to comes out, and what fails costs only itself."""

from pathlib import Path

import msgspec.structs
import pytest

from gpa_lsp.execution.calibration.calibrate import Patience, calibrate
from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.gpu.device.model import ClockDomain, MemoryLevel, OperationKind
from gpa_lsp.gpu.device.roofs_file import read_roofs, write_roofs
from tests.device.calibration.simulated_gpu import BYTES_PER_S, FACTS, SM_HZ, SimulatedGpu, compile_nothing

QUICK = Patience(least_seconds=0.01, repetitions=2)


def test_all_roofs_come_out(tmp_path: Path) -> None:
    told: list[str] = []
    found = calibrate(SimulatedGpu(), compile_nothing, patience=QUICK, tell=told.append)
    roofs = found.roofs
    peaks = {peak.kind: peak for peak in roofs.peaks}
    assert peaks[OperationKind.FP32].ops_per_cycle == pytest.approx(256 * 80, rel=2e-3)
    assert peaks[OperationKind.FP64].ops_per_cycle == pytest.approx(4 * 80, rel=2e-3)
    assert peaks[OperationKind.TENSOR_FP16].ops_per_s == pytest.approx(1024 * 80 * SM_HZ, rel=2e-3)
    bandwidths = {bandwidth.level: bandwidth for bandwidth in roofs.bandwidths}
    for level, name in zip(MemoryLevel, ("shared", "L1", "L2", "DRAM"), strict=True):
        assert bandwidths[level].bytes_per_s == pytest.approx(BYTES_PER_S[name], rel=2e-3), level
    assert (bandwidths[MemoryLevel.L1].clock, bandwidths[MemoryLevel.L2].clock) == (ClockDomain.SM, None)
    assert bandwidths[MemoryLevel.DRAM].bytes_per_cycle == pytest.approx(0.7e12 / 9.5e9, rel=2e-3)
    assert roofs.sm_hz == pytest.approx(SM_HZ, rel=1e-3)
    assert {skip.what for skip in found.skipped} == {"FP8 tensor", "FP4 tensor"}
    assert told[0] == "FP64: DFMA"
    write_roofs(roofs, tmp_path / "roofs.json")
    assert read_roofs(tmp_path / "roofs.json") == roofs


def test_sweeps_show_where_a_level_ends() -> None:
    found = calibrate(SimulatedGpu(), compile_nothing, patience=QUICK)
    rates = {point.working_set_bytes: point.rate.per_s for point in found.common_sweep}
    assert rates[2 << 20] == pytest.approx(BYTES_PER_S["L2"], rel=2e-3)
    assert rates[max(rates)] == pytest.approx(BYTES_PER_S["DRAM"], rel=2e-3)
    assert found.l1_sweep[0].rate.per_s > 2 * found.l1_sweep[-1].rate.per_s


def test_little_memory_costs_the_dram_figure_and_says_so() -> None:
    gpu = SimulatedGpu(facts=msgspec.structs.replace(FACTS, free_bytes=16 << 20))
    found = calibrate(gpu, compile_nothing, patience=QUICK)
    assert MemoryLevel.DRAM not in {bandwidth.level for bandwidth in found.roofs.bandwidths}
    assert any(skip.what == "DRAM" and "too little memory" in skip.why for skip in found.skipped)


def test_a_benchmark_that_fails_costs_only_itself() -> None:
    def compile_some(source: str) -> bytes:
        if "fma.rn.f64" in source:
            raise ToolError("NVRTC", "does not compile")
        return compile_nothing(source)

    found = calibrate(SimulatedGpu(), compile_some, patience=QUICK)
    assert OperationKind.FP64 not in {peak.kind for peak in found.roofs.peaks}
    assert OperationKind.FP32 in {peak.kind for peak in found.roofs.peaks}
    assert any(skip.what == "FP64" and "does not compile" in skip.why for skip in found.skipped)


def test_when_everything_fails_the_first_reason_is_told() -> None:
    def compile_none(source: str) -> bytes:
        raise ToolError("NVRTC", "is broken")

    with pytest.raises(ToolError, match="is broken"):
        calibrate(SimulatedGpu(), compile_none, patience=QUICK)


def test_an_architecture_without_a_table_is_measured_all_the_same() -> None:
    gpu = SimulatedGpu(facts=msgspec.structs.replace(FACTS, compute_capability=(8, 7)))
    found = calibrate(gpu, compile_nothing, patience=QUICK)
    assert found.roofs.compute_capability == (8, 7)
    assert {bandwidth.level for bandwidth in found.roofs.bandwidths} == set(MemoryLevel)
