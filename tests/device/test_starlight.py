"""Starlight's own example, the RTX A5000 (section 4.2), out of our code; and where ours differs."""

import pytest
from msgspec.structs import replace

from gpa_lsp.gpu.device.find import find_machine_by_name
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from tests.device.starlight_roofs import reckon_starlight_roofs

GIGA = 1e9


def test_the_example_of_the_paper() -> None:
    roofs = reckon_starlight_roofs(find_machine_by_name("RTX A5000"))
    assert roofs is not None and roofs.dram_bytes_per_s is not None
    assert roofs.fp32_ops_per_s / GIGA == pytest.approx(27_770.88, abs=0.005)
    assert roofs.int32_ops_per_s / GIGA == pytest.approx(27_770.88, abs=0.005)
    assert roofs.dram_bytes_per_s / GIGA == pytest.approx(768, abs=0.005)
    assert roofs.l1_bytes_per_s / GIGA == pytest.approx(13_885.44, abs=0.005)
    assert roofs.l2_bytes_per_s / GIGA == pytest.approx(3_471.36, abs=0.005)


def test_ours_agrees_but_for_integers_doubles_and_l2() -> None:
    """The L2 of that chip has 48 slices of 32 bytes per cycle, and not 32 bytes for each of 64 SMs: 48 · 32 · 1.695 GHz = 2603.52 GB/s."""
    machine = find_machine_by_name("RTX A5000")
    peaks = {peak.kind: (peak.ops_per_s or 0) / GIGA for peak in machine.peaks}
    levels = {found.level: (found.bytes_per_s or 0) / GIGA for found in machine.bandwidths}
    assert peaks[OperationKind.FP32] == pytest.approx(27_770.88, abs=0.005)
    assert levels[MemoryLevel.L1] == pytest.approx(13_885.44, abs=0.005)
    assert levels[MemoryLevel.DRAM] == pytest.approx(768, abs=0.005)
    assert peaks[OperationKind.INT32] == pytest.approx(27_770.88 / 2, abs=0.005)
    assert peaks[OperationKind.FP64] == pytest.approx(27_770.88 / 64, abs=0.005)
    assert levels[MemoryLevel.L2] == pytest.approx(2_603.52, abs=0.005)


def test_what_starlight_measured_lies_under_our_roofs() -> None:
    """Its published empirical peaks of an A5000: FP32 25,842, INT32 13,458.75, FP64 413.3 GFLOP/s; 675.1, 885.25, 1565.65 GB/s."""
    machine = find_machine_by_name("RTX A5000")
    reached = {OperationKind.FP32: 25_842, OperationKind.INT32: 13_458.75, OperationKind.FP64: 413.3}
    for kind, giga in reached.items():
        peak = machine.find_peak(kind)
        assert peak is not None and peak.ops_per_s is not None
        assert 0.9 < giga * GIGA / peak.ops_per_s < 1, kind
    for level, giga in {MemoryLevel.DRAM: 675.1, MemoryLevel.L2: 885.25, MemoryLevel.L1: 1565.65}.items():
        found = machine.find_bandwidth(level)
        assert found is not None and found.bytes_per_s is not None and giga * GIGA < found.bytes_per_s


def test_nothing_is_reckoned_without_a_clock() -> None:
    machine = find_machine_by_name("RTX A5000")
    assert reckon_starlight_roofs(replace(machine, sm_count=None)) is None
    assert reckon_starlight_roofs(replace(machine, clocks=replace(machine.clocks, sm_hz=None))) is None
    assert reckon_starlight_roofs(replace(machine, peaks=())) is None


def test_starlight_s_own_ratios_are_kept_as_published() -> None:
    """Its code takes FP64 as a 32nd of FP32 and FP16 as twice of it, which is right on 7.5 only: 27,770.88 / 32 and × 2."""
    roofs = reckon_starlight_roofs(find_machine_by_name("RTX A5000"))
    assert roofs is not None
    assert roofs.fp64_ops_per_s / GIGA == pytest.approx(867.84, abs=0.005)
    assert roofs.fp16_ops_per_s / GIGA == pytest.approx(55_541.76, abs=0.005)
