"""Measured roofs in place of theoretical ones: scaled to the machine's clocks, as they are with a doubt, or refused."""

import pytest
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.device.empirical import apply_roofs
from gpa_lsp.gpu.device.find import find_machine_by_name
from gpa_lsp.gpu.device.model import (
    ClockBasis,
    ClockDomain,
    EmpiricalBandwidth,
    EmpiricalPeak,
    EmpiricalRoofs,
    Machine,
    MemoryLevel,
    OperationKind,
    RoofOrigin,
)

BOOST = find_machine_by_name("RTX 3090")  # 1.695 GHz
BASE = find_machine_by_name("RTX 3090", ClockBasis.BASE)  # 1.395 GHz


def measured(**changes: object) -> EmpiricalRoofs:
    """FP32 at 20,000 operations per cycle of 1.7 GHz; DRAM at 900 GB/s of a memory at 9.751 GHz."""
    roofs = EmpiricalRoofs(
        device_name="NVIDIA GeForce RTX 3090",
        compute_capability=(8, 6),
        sm_count=82,
        measured_on="2026-11-21",
        tool_version="0.1.0",
        sm_hz=1.7e9,
        l2_hz=None,
        dram_hz=9.751e9,
        peaks=(EmpiricalPeak(kind=OperationKind.FP32, ops_per_s=34e12, ops_per_cycle=20_000, spread_ratio=0.004),),
        bandwidths=(EmpiricalBandwidth(level=MemoryLevel.DRAM, bytes_per_s=900e9),),
    )
    return replace(roofs, **changes)  # type: ignore[arg-type]


def fp32(machine: Machine) -> float:
    peak = machine.find_peak(OperationKind.FP32)
    assert peak.ops_per_s is not None
    return peak.ops_per_s


def rate(machine: Machine, level: MemoryLevel) -> float:
    found = machine.find_bandwidth(level)
    assert found.bytes_per_s is not None
    return found.bytes_per_s


def test_a_measured_peak_is_scaled_to_the_clock_of_the_machine() -> None:
    machine = apply_roofs(BASE, measured())
    peak = machine.find_peak(OperationKind.FP32)
    assert (peak.ops_per_cycle, peak.origin, peak.is_certain) == (20_000, RoofOrigin.EMPIRICAL, True)
    assert peak.ops_per_s == pytest.approx(20_000 * 1.395e9)
    assert peak.source == "measured on 2026-11-21, repetitions within 0.4 %, scaled to these clocks"


def test_a_rate_with_the_clock_it_was_measured_at_is_scaled_too() -> None:
    only_rate = (EmpiricalPeak(kind=OperationKind.FP32, ops_per_s=34e12),)
    machine = apply_roofs(BASE, measured(peaks=only_rate))
    assert fp32(machine) == pytest.approx(34e12 / 1.7e9 * 1.395e9)


def test_without_a_clock_the_rate_stands_with_a_doubt() -> None:
    only_rate = (EmpiricalPeak(kind=OperationKind.FP32, ops_per_s=34e12),)
    machine = apply_roofs(BASE, measured(peaks=only_rate, sm_hz=None))
    assert fp32(machine) == 34e12
    assert "Measured ceilings that hold at the clocks of their measurement only: FP32." in machine.doubts


def test_types_and_levels_that_were_not_measured_keep_their_roofs() -> None:
    machine = apply_roofs(BOOST, measured())
    assert machine.find_peak(OperationKind.FP64) == BOOST.find_peak(OperationKind.FP64)
    assert machine.find_bandwidth(MemoryLevel.L1) == BOOST.find_bandwidth(MemoryLevel.L1)
    assert [peak.kind for peak in machine.peaks] == [peak.kind for peak in BOOST.peaks]


def test_memory_is_scaled_by_the_clock_of_the_memory() -> None:
    machine = replace(BASE, clocks=replace(BASE.clocks, dram_hz=9.751e9 / 2))
    assert rate(apply_roofs(machine, measured()), MemoryLevel.DRAM) == pytest.approx(450e9)


def test_l2_measured_in_cycles_of_the_sms_is_not_scaled_by_its_own() -> None:
    l2 = EmpiricalBandwidth(level=MemoryLevel.L2, bytes_per_s=2e12, bytes_per_cycle=1200, clock=ClockDomain.SM)
    far, near = apply_roofs(BASE, measured(bandwidths=(l2,))), apply_roofs(BOOST, measured(bandwidths=(l2,)))
    assert rate(far, MemoryLevel.L2) == rate(near, MemoryLevel.L2) == 2e12
    assert any("of their measurement only: L2" in doubt for doubt in far.doubts)
    assert not any("of their measurement only" in doubt for doubt in near.doubts)  # 1.7 and 1.695 GHz are the same


def test_l1_is_scaled_by_the_clock_of_the_sms() -> None:
    l1 = EmpiricalBandwidth(level=MemoryLevel.L1, bytes_per_s=17e12, bytes_per_cycle=10_000, clock=ClockDomain.SM)
    assert rate(apply_roofs(BASE, measured(bandwidths=(l1,))), MemoryLevel.L1) == pytest.approx(1.395e13)


def test_a_level_the_theory_does_not_know_is_added() -> None:
    l2 = EmpiricalBandwidth(level=MemoryLevel.L2, bytes_per_s=2e12)
    machine = find_machine_by_name("RTX 4090")
    assert machine.find_bandwidth(MemoryLevel.L2) is None
    roofs = measured(bandwidths=(l2,), device_name="NVIDIA GeForce RTX 4090", compute_capability=(8, 9), sm_count=128)
    assert rate(apply_roofs(machine, roofs), MemoryLevel.L2) == 2e12


def test_a_measured_tensor_peak_is_scaled_to_the_clock_tensor_cores_have() -> None:
    """H100's published tensor rates hold at 1.83 GHz and not at 1.98."""
    machine = find_machine_by_name("H100 SXM5")
    peak = EmpiricalPeak(kind=OperationKind.TENSOR_FP16, ops_per_s=8e14, ops_per_cycle=500_000)
    roofs = measured(peaks=(peak,), device_name="NVIDIA H100 80GB HBM3", compute_capability=(9, 0), sm_count=132)
    found = apply_roofs(machine, roofs).find_peak(OperationKind.TENSOR_FP16)
    assert found.ops_per_s == pytest.approx(500_000 * 1.83e9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device_name": "NVIDIA A40"}, "ceilings of 'NVIDIA A40' are not those of 'RTX 3090'"),
        ({"device_name": None, "compute_capability": (8, 0)}, "compute capability 8.0"),
        ({"device_name": None, "sm_count": 84}, "ceilings of 84 SMs"),
    ],
)
def test_roofs_of_another_gpu_are_refused_unless_any_will_do(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match="calibrate") as caught:
        apply_roofs(BOOST, measured(**change))
    assert words in str(caught.value)
    machine = apply_roofs(BOOST, measured(**change), any_device=True)
    assert fp32(machine) == pytest.approx(20_000 * 1.695e9)
    assert any(words in doubt for doubt in machine.doubts)


def test_a_file_that_names_no_gpu_is_taken_with_a_doubt() -> None:
    machine = apply_roofs(BOOST, measured(device_name=None, compute_capability=None, sm_count=None))
    assert any("does not name their GPU" in doubt for doubt in machine.doubts)


def test_a_roof_above_the_theory_raises_a_doubt() -> None:
    """The RTX 3090 does 20,992 FP32 operations per cycle."""
    high = (EmpiricalPeak(kind=OperationKind.FP32, ops_per_s=1, ops_per_cycle=22_000),)
    machine = apply_roofs(BOOST, measured(peaks=high))
    assert any("ceiling of FP32 is above the theoretical one" in doubt for doubt in machine.doubts)
    assert not any("above" in doubt for doubt in apply_roofs(BOOST, measured()).doubts)


def test_a_machine_without_clocks_takes_the_rates_as_they_are() -> None:
    clocks = replace(BOOST.clocks, basis=ClockBasis.UNKNOWN, sm_hz=None, l2_hz=None, dram_hz=None)
    machine = apply_roofs(replace(BOOST, clocks=clocks, peaks=(), bandwidths=()), measured())
    assert fp32(machine) == 34e12
    assert rate(machine, MemoryLevel.DRAM) == 900e9
