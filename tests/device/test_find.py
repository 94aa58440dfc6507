"""Roofs of a device and a launch: which source a roof comes from, at which clock, and what is said about it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.gpu.device.find import find_machine, find_machine_by_name
from gpa_lsp.gpu.device.model import ClockBasis, Machine, MemoryLevel, OperationKind, RoofOrigin
from tests.device.builders import make_device, make_launch

Kind = OperationKind

A40 = make_device(
    clock_rate=1_740_000, memory_clock_rate=7_251_000, global_memory_bus_width=384, l2s_count=48
)  # 1.74 GHz, 7.251 GHz
AMPERE = find_architecture((8, 6))

CLOCKS = {
    "smsp__cycles_elapsed.avg.per_second": 1.3e9,
    "lts__cycles_elapsed.avg.per_second": 1.2e9,
    "dram__cycles_elapsed.avg.per_second": 7.2e9,
}


def peak_of(machine: Machine | None, kind: OperationKind) -> tuple[float | None, float | None, RoofOrigin]:
    peak = machine.find_peak(kind)
    assert peak is not None, kind
    return peak.ops_per_cycle, peak.ops_per_s, peak.origin


def level_of(machine: Machine | None, level: MemoryLevel) -> tuple[float | None, float | None, RoofOrigin]:
    found = machine.find_bandwidth(level)
    assert found is not None, level
    return found.bytes_per_cycle, found.bytes_per_s, found.origin


def test_a_launch_at_the_base_clock_is_put_under_roofs_of_that_clock() -> None:
    """84 SMs · 128 lanes · 2 = 21504 per cycle; at 1.3 GHz, though the device boosts to 1.74 GHz."""
    machine = find_machine(A40, AMPERE, make_launch(A40, CLOCKS))
    assert (machine.clocks.basis, machine.clocks.sm_hz) == (ClockBasis.MEASURED, 1.3e9)
    assert peak_of(machine, Kind.FP32) == (21504, 21504 * 1.3e9, RoofOrigin.DEVICE)
    assert level_of(machine, MemoryLevel.SHARED) == (84 * 128, 84 * 128 * 1.3e9, RoofOrigin.DEVICE)
    assert level_of(machine, MemoryLevel.L2) == (48 * 32, 48 * 32 * 1.2e9, RoofOrigin.DEVICE)
    assert level_of(machine, MemoryLevel.DRAM) == (96, 96 * 7.2e9, RoofOrigin.DEVICE)
    assert machine.issue_per_s == 84 * 4 * 1.3e9
    assert not any("clock" in doubt for doubt in machine.doubts)


def test_without_a_launch_the_device_boosts() -> None:
    machine = find_machine(A40, AMPERE, None)
    assert (machine.clocks.basis, machine.clocks.sm_hz) == (ClockBasis.BOOST, 1.74e9)
    assert peak_of(machine, Kind.FP32)[1] == pytest.approx(37.4e12, rel=0.002)
    assert level_of(machine, MemoryLevel.DRAM)[1] == pytest.approx(696e9, rel=0.001)
    assert any("L2 clock is unknown" in doubt for doubt in machine.doubts)


def test_a_launch_without_clocks_gets_boost_roofs_and_a_doubt() -> None:
    machine = find_machine(A40, AMPERE, make_launch(A40, {"gpu__time_duration.sum": 1000}))
    assert machine.clocks.basis is ClockBasis.BOOST
    assert any("may have run at a lower one" in doubt for doubt in machine.doubts)


def test_the_clock_of_the_memory_may_come_from_the_device() -> None:
    """Profilers do not lock it; still it was not measured, and that is said."""
    launch = make_launch(A40, {"smsp__cycles_elapsed.avg.per_second": 1.3e9})
    machine = find_machine(A40, AMPERE, launch)
    assert level_of(machine, MemoryLevel.DRAM)[1] == 96 * 7.251e9
    assert any("memory clock was not collected" in doubt for doubt in machine.doubts)
    nothing = make_device("some GPU", (8, 6), 84, global_memory_bus_width=384)
    machine = find_machine(nothing, AMPERE, make_launch(nothing, {"smsp__cycles_elapsed.avg.per_second": 1.3e9}))
    assert level_of(machine, MemoryLevel.DRAM)[1] is None


def test_cycles_over_time_are_a_clock_too() -> None:
    launch = make_launch(A40, {"sm__cycles_elapsed.max": 1300, "gpu__time_duration.sum": 1000})
    machine = find_machine(A40, AMPERE, launch)
    assert machine.clocks.basis is ClockBasis.MEASURED
    assert machine.clocks.sm_hz == pytest.approx(1.3e9)


def test_the_clock_of_l2_follows_from_sectors_per_second_and_per_cycle() -> None:
    """Older reports lack it: 48 slices at 0.5 sectors per cycle each and 28.8e9 sectors per second make 1.2 GHz."""
    sectors = {
        "lts__t_sectors.sum.per_second": 28.8e9,
        "lts__t_sectors.avg.per_cycle_elapsed": 0.5,
        "smsp__cycles_elapsed.avg.per_second": 1.3e9,
    }
    machine = find_machine(A40, AMPERE, make_launch(A40, sectors))
    assert machine.clocks.l2_hz == pytest.approx(1.2e9)


def test_counters_go_before_the_table() -> None:
    stated = {
        **CLOCKS,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 1000,
        "sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained": 100,
        "dram__bytes.sum.peak_sustained": 64,
        "lts__t_sectors_srcunit_tex.avg.peak_sustained": 2,
        "lts__t_sectors.avg.peak_sustained": 3,
        "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.peak_sustained": 5000,
    }
    machine = find_machine(A40, AMPERE, make_launch(A40, stated))
    assert peak_of(machine, Kind.FP32) == (2000, 2000 * 1.3e9, RoofOrigin.COUNTERS)
    assert peak_of(machine, Kind.FP16)[0] == 400  # a pair of halves, and a multiply-add is two
    assert level_of(machine, MemoryLevel.DRAM) == (64, 64 * 7.2e9, RoofOrigin.COUNTERS)
    assert level_of(machine, MemoryLevel.L2) == (2 * 32 * 48, 2 * 32 * 48 * 1.2e9, RoofOrigin.COUNTERS)
    assert level_of(machine, MemoryLevel.L1) == (5000, 5000 * 1.3e9, RoofOrigin.COUNTERS)


def test_instructions_of_warp_groups_have_the_higher_tensor_peak() -> None:
    device = make_device("NVIDIA H100 PCIe", (9, 0), 114)
    both = {
        "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum.peak_sustained": 2731 * 114,
        "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.peak_sustained": 4096 * 114,
        "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_on.sum.peak_sustained": 8192 * 114,
    }
    machine = find_machine(device, None, make_launch(device, {**CLOCKS, **both}))
    assert peak_of(machine, Kind.TENSOR_FP16)[0] == 4096 * 114


def test_slices_are_those_the_counters_sum_over() -> None:
    """The device states 96 slices on 12.0, and the counters are summed over 48 of twice the width: the same bytes either way."""
    device = make_device("NVIDIA GeForce RTX 5090", (12, 0), 170, l2s_count=96)
    counted = {
        **CLOCKS,
        "lts__t_sectors_srcunit_tex.avg.peak_sustained": 2,
        "lts__cycles_elapsed.sum": 4800,
        "lts__cycles_elapsed.avg": 100,
    }
    with_counters = find_machine(device, None, make_launch(device, counted))
    from_table = find_machine(device, find_architecture((12, 0)), None)
    assert level_of(with_counters, MemoryLevel.L2)[0] == level_of(from_table, MemoryLevel.L2)[0] == 3072


def test_a_failed_launch_states_nothing() -> None:
    zeros = {"sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 0.0, **CLOCKS}
    machine = find_machine(A40, AMPERE, make_launch(A40, zeros, failure="it failed"))
    assert machine.clocks.basis is ClockBasis.BOOST
    assert peak_of(machine, Kind.FP32)[0] == 21504


def test_nothing_known_is_no_machine() -> None:
    unknown = make_device(None, None, None)
    assert find_machine(unknown, None, None) is None
    assert find_machine(make_device("some GPU", (8, 6), None), AMPERE, None) is None


def test_a_known_name_fills_what_the_device_does_not_say() -> None:
    machine = find_machine(make_device("NVIDIA A40", None, None), AMPERE, None)
    assert (machine.clocks.sm_hz, machine.sm_count) == (1.74e9, 84)
    assert level_of(machine, MemoryLevel.L2)[0] == 1536
    assert level_of(machine, MemoryLevel.DRAM)[1] == pytest.approx(696e9, rel=0.001)


def test_another_variant_of_the_same_name_is_not_taken_for_it() -> None:
    """The GeForce RTX 3080 with 12 GB reports the name of the one with 10 GB, and 70 SMs in place of 68."""
    machine = find_machine(make_device("NVIDIA GeForce RTX 3080", (8, 6), 70), AMPERE, None)
    assert machine.clocks.sm_hz is None
    assert machine.find_bandwidth(MemoryLevel.DRAM) is None
    assert peak_of(machine, Kind.TENSOR_BF16)[0] == 70 * 512  # by its brand
    assert any("per cycle only" in doubt for doubt in machine.doubts)


@pytest.mark.parametrize(
    ("name", "sm_count", "per_sm", "is_certain"),
    [
        ("NVIDIA A40", 84, 1024, True),
        ("NVIDIA GeForce RTX 3070", 46, 512, True),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", 30, 512, True),
        ("NVIDIA RTX A4000", 48, 1024, False),
        (None, 10, 1024, False),
    ],
)
def test_boards_accumulate_in_fp32_at_full_or_half_rate(
    name: str | None, sm_count: int, per_sm: float, is_certain: bool
) -> None:
    machine = find_machine(make_device(name, (8, 6), sm_count), AMPERE, None)
    peak = machine.find_peak(Kind.TENSOR_BF16)
    assert (peak.ops_per_cycle, peak.is_certain) == (per_sm * sm_count, is_certain)
    assert ("BF16 tensor" in " ".join(machine.doubts)) is not is_certain
    assert any("half of the FP16 tensor peak" in doubt for doubt in machine.doubts) is ("GeForce" in (name or ""))


def test_a_device_that_states_another_fp64_ratio_raises_a_doubt() -> None:
    """8.6 states 32 where FP32 over FP64 is 64, as its second half of FP32 lanes is left out there: no doubt. 2 is one."""
    quiet = find_machine(make_device(single_to_double_precision_perf_ratio=32), AMPERE, None)
    loud = find_machine(make_device(single_to_double_precision_perf_ratio=2), AMPERE, None)
    assert not any("FP64 rate" in doubt for doubt in quiet.doubts)
    assert any("FP64 rate of 1/2" in doubt for doubt in loud.doubts)


def test_base_clock_by_name() -> None:
    base = find_machine_by_name("RTX 3090", ClockBasis.BASE)
    assert (base.clocks.basis, base.clocks.sm_hz) == (ClockBasis.BASE, 1.395e9)
    assert peak_of(base, Kind.FP32)[1] == pytest.approx(82 * 256 * 1.395e9)
    with pytest.raises(InputError, match="base clock of the H200 is unknown; use its boost clock"):
        find_machine_by_name("H200", ClockBasis.BASE)
    with pytest.raises(ValueError, match="as measured"):
        find_machine_by_name("H200", ClockBasis.MEASURED)


numbers = st.one_of(st.none(), st.floats(), st.integers(), st.text(max_size=3))


@given(
    capability=st.one_of(st.none(), st.sampled_from(list_architectures())),
    sm_count=st.one_of(st.none(), st.integers(0, 1000)),
    attributes=st.dictionaries(
        st.sampled_from(("clock_rate", "memory_clock_rate", "global_memory_bus_width", "l2s_count")), numbers
    ),
    metrics=st.dictionaries(
        st.sampled_from(
            (
                *CLOCKS,
                "dram__bytes.sum.peak_sustained",
                "lts__t_sectors_srcunit_tex.avg.peak_sustained",
                "lts__cycles_elapsed.sum",
                "lts__cycles_elapsed.avg",
                "gpu__time_duration.sum",
                "sm__cycles_elapsed.max",
                "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained",
            )
        ),
        st.one_of(st.floats(), st.integers(-(2**70), 2**70), st.text(max_size=3)),
    ),
)
def test_whatever_a_report_says_roofs_are_rates_times_clocks_or_unknown(capability, sm_count, attributes, metrics):
    device = make_device("GPU", capability, sm_count, **{k: v for k, v in attributes.items() if v is not None})
    architecture = None if capability is None else find_architecture(capability)
    machine = find_machine(device, architecture, make_launch(device, metrics))
    if machine is None:
        return
    for peak in machine.peaks:
        assert peak.ops_per_cycle > 0 and peak.source
        expected = None if machine.clocks.sm_hz is None else peak.ops_per_cycle * machine.clocks.sm_hz
        assert peak.ops_per_s == expected and (expected is None or 0 < expected < math.inf)
        assert machine.find_peak(peak.kind) is peak
    for found in machine.bandwidths:
        assert found.bytes_per_cycle > 0
        assert found.bytes_per_s is None or 0 < found.bytes_per_s < math.inf
        assert machine.find_bandwidth(found.level) is found
