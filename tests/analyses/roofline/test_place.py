"""Placing kernels: several launches, failed ones, ten thousand, and numbers that are none."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.model import MOST_LAUNCHES
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.gpu.device.model import (
    ClockDomain,
    EmpiricalBandwidth,
    EmpiricalRoofs,
    MemoryLevel,
    OperationKind,
    RoofOrigin,
)
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.model import Launch, Metric
from tests.rows.written import write_kernel

TIME = "gpu__time_duration.sum"
CLOCK = "smsp__cycles_elapsed.avg.per_second"
METRICS = {
    CLOCK: 1e9,
    "dram__cycles_elapsed.avg.per_second": 1e9,
    "dram__bytes.sum.peak_sustained": 64.0,
    "dram__bytes_read.sum": 16e6,
    "dram__bytes_write.sum": 16e6,
    "smsp__inst_executed.sum": 1e6,
}
SASS = "FFMA R1, R2, R3, R4  # - | selected=1 | x=1000000 thread_executions_true=32000000\nEXIT  # - | selected=1 | x=1000000"


def write(**overrides: float) -> Kernel:
    return write_kernel(SASS, compute_capability=(8, 0), metrics={**METRICS, **overrides})


def change(launch: Launch, **metrics: float | str | None) -> Launch:
    """The launch with other aggregates; None removes one."""
    values = {**launch.metrics, **{name: Metric(name=name, value=value) for name, value in metrics.items()}}
    return replace(
        launch, metrics={name: metric for name, metric in values.items() if metrics.get(name, 0) is not None}
    )


def repeat(kernel: Kernel, *launches: dict[str, float | str | None]) -> Kernel:
    first = kernel.launches[0]
    return replace(
        kernel,
        launches=tuple(replace(change(first, **one), index=number) for number, one in enumerate(launches)),
    )


def test_launches_stand_under_the_roofs_of_their_own_clocks_and_all_together_under_those_of_the_longest():
    kernel = repeat(write(), {TIME: 1e6}, {TIME: 3e6, CLOCK: 1.5e9})
    placed = place_kernel(kernel)
    assert [one.launch_index for one in placed.launches] == [1, 0]
    issue = [one.roofs[-1].limit_per_s for one in placed.launches]
    assert issue == [pytest.approx(24e9), pytest.approx(16e9)]
    assert placed.machine.clocks.sm_hz == 1.5e9
    assert placed.whole.duration_s == pytest.approx(4e-3)
    binding = placed.whole.binding
    # Twice 32 million bytes in 4 ms, and not the mean of 50 % and 17 %.
    assert binding.level is MemoryLevel.DRAM
    assert binding.share_ratio == pytest.approx(0.25)
    assert placed.whole.is_memory_bound is True


def test_a_failed_launch_is_not_placed():
    kernel = repeat(write(), {}, {})
    first, second = kernel.launches
    placed = place_kernel(replace(kernel, launches=(first, replace(second, failure="the profiler failed"))))
    assert [one.launch_index for one in placed.launches] == [0]
    assert placed.whole.duration_s == pytest.approx(1e-3)


@pytest.mark.parametrize("time", [0.0, -5.0, float("nan"), float("inf"), "long", None])
def test_a_launch_without_a_time_is_not_placed(time):
    assert place_kernel(repeat(write(), {TIME: time})) is None
    placed = place_kernel(repeat(write(), {TIME: time}, {}))
    assert [one.launch_index for one in placed.launches] == [1]


def test_code_without_launches_and_machines_nobody_knows_have_no_place():
    kernel = write()
    assert place_kernel(replace(kernel, launches=())) is None
    device = replace(kernel.device, sm_count=None, attributes={})
    bare = replace(change(kernel.launches[0], **{"dram__bytes.sum.peak_sustained": None}), device=device)
    assert place_kernel(replace(kernel, architecture=None, device=device, launches=(bare,))) is None


def test_what_one_launch_lacks_is_unknown_of_all():
    placed = place_kernel(repeat(write(), {}, {"dram__bytes_read.sum": None}))
    assert [traffic.level for traffic in placed.whole.traffic] == []
    assert MemoryLevel.DRAM in [traffic.level for traffic in placed.launches[0].traffic]
    (missing,) = [one for one in placed.whole.missing if one.what == "bytes of DRAM"]
    assert missing.metrics == ("dram__bytes_read.sum", "dram__bytes_write.sum")
    assert missing.needs_all


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300, "text"])
def test_numbers_that_are_none_are_unknown(value):
    placed = place_kernel(repeat(write(), dict.fromkeys(METRICS, value)))
    assert placed.whole.traffic == ()
    assert all(0 <= roof.share_ratio < float("inf") for roof in placed.whole.roofs)


def test_zero_bytes_are_a_roof_nobody_uses_and_no_point():
    placed = place_kernel(repeat(write(), {"dram__bytes_read.sum": 0.0, "dram__bytes_write.sum": 0.0}))
    assert placed.whole.points == ()
    assert [roof.share_ratio for roof in placed.whole.roofs if roof.level is MemoryLevel.DRAM] == [0.0]


def test_ten_thousand_launches_are_summed_and_the_longest_are_shown():
    kernel = repeat(write(), *({TIME: 1e6 + number} for number in range(10_000)))
    placed = place_kernel(kernel)
    assert len(placed.launches) == MOST_LAUNCHES
    assert placed.left_out == 10_000 - MOST_LAUNCHES
    assert placed.launches[0].launch_index == 9_999
    assert placed.whole.traffic[0].bytes == pytest.approx(10_000 * 32e6)


def test_operations_of_the_only_launch_come_from_the_kernels_own_columns():
    placed = place_kernel(write())
    counted = {count.kind: count.operations for count in placed.whole.operations}
    assert counted[OperationKind.FP32] == 64e6
    assert placed.whole.dominant is OperationKind.FP32


def measure_dram(name: str) -> EmpiricalRoofs:
    return EmpiricalRoofs(
        device_name=name,
        compute_capability=(8, 0),
        sm_count=4,
        measured_on=None,
        tool_version=None,
        sm_hz=None,
        l2_hz=None,
        dram_hz=None,
        peaks=(),
        bandwidths=(
            EmpiricalBandwidth(
                level=MemoryLevel.DRAM,
                bytes_per_s=40e9,
                bytes_per_cycle=40.0,
                clock=ClockDomain.DRAM,
                spread_ratio=None,
            ),
        ),
    )


def test_measured_roofs_stand_in_place_of_theoretical_ones():
    placed = place_kernel(write(), measure_dram("Test GPU"))
    found = placed.machine.find_bandwidth(MemoryLevel.DRAM)
    assert found.origin is RoofOrigin.EMPIRICAL
    (roof,) = [one for one in placed.whole.roofs if one.level is MemoryLevel.DRAM]
    assert (roof.limit_per_s, roof.ceiling_ratio) == (40e9, 1.0)
    assert roof.headroom == pytest.approx(1.25)


def test_stored_shares_are_of_theoretical_peaks_also_under_measured_roofs():
    kernel = repeat(
        write(),
        {"dram__bytes_read.sum": None, "dram__cycles_active.avg.pct_of_peak_sustained_elapsed": 50.0},
    )
    placed = place_kernel(kernel, measure_dram("Test GPU"))
    assert placed.whole.traffic[0].bytes == pytest.approx(32e6)


def test_measured_roofs_of_another_gpu_are_not_used():
    placed = place_kernel(write(), measure_dram("Other GPU"))
    found = placed.machine.find_bandwidth(MemoryLevel.DRAM)
    assert found.origin is RoofOrigin.COUNTERS
    assert any("not used" in doubt for doubt in placed.machine.doubts)
