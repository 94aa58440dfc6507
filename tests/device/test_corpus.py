"""Real reports: our roofs against the peaks and percentages NVIDIA stores in them."""

import pytest

from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.device.find import find_machine
from gpa_lsp.gpu.device.model import ClockBasis, Machine, MemoryLevel, OperationKind
from gpa_lsp.gpu.device.rates import list_operation_rates
from gpa_lsp.profile.model import Launch
from tests.real_reports import REPORTS, read_launches

pytestmark = pytest.mark.corpus

OPERATIONS = (
    (OperationKind.FP32, "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", 2),
    (OperationKind.FP64, "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", 2),
    (OperationKind.FP16, "sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained", 4),
)


def machine_of(launch: Launch, *, with_counters: bool) -> Machine:
    capability = launch.device.compute_capability
    assert capability is not None
    machine = find_machine(launch.device, find_architecture(capability), launch if with_counters else None)
    assert machine is not None
    return machine


@pytest.mark.parametrize("name", REPORTS)
def test_the_tables_agree_with_the_peaks_that_reports_store(name: str) -> None:
    """Found without the counters: SMs × rate of the architecture, bus width × 2, slices × width of the architecture."""
    for launch in read_launches(name):
        machine = machine_of(launch, with_counters=False)
        for kind, metric, operations in OPERATIONS:
            stated, peak = launch.read_number(metric), machine.find_peak(kind)
            if stated is not None:
                assert peak.ops_per_cycle == stated * operations, (kind, launch.index)
        stated, dram = launch.read_number("dram__bytes.sum.peak_sustained"), machine.find_bandwidth(MemoryLevel.DRAM)
        assert stated in (None, dram.bytes_per_cycle)


@pytest.mark.parametrize("name", REPORTS)
def test_l2_and_l1_agree_with_the_peaks_that_reports_store(name: str) -> None:
    for launch in read_launches(name):
        with_counters, without = machine_of(launch, with_counters=True), machine_of(launch, with_counters=False)
        for level in (MemoryLevel.L1, MemoryLevel.L2):
            stated, reckoned = with_counters.find_bandwidth(level), without.find_bandwidth(level)
            assert stated.bytes_per_cycle == reckoned.bytes_per_cycle, (level, launch.index)
        stated_bytes = launch.read_number("derived__lts__lts2xbar_bytes.sum.peak_sustained")
        l2 = with_counters.find_bandwidth(MemoryLevel.L2)
        assert stated_bytes in (None, l2.bytes_per_cycle)


@pytest.mark.parametrize("name", REPORTS)
def test_tensor_rates_of_the_tables_are_the_peaks_that_reports_store(name: str) -> None:
    for launch in read_launches(name):
        machine = machine_of(launch, with_counters=True)
        capability, sm_count = launch.device.compute_capability, launch.device.sm_count
        assert capability is not None and sm_count is not None
        product_rates = {peak.kind: peak for peak in machine_of(launch, with_counters=False).peaks}
        for kind in list_operation_rates(find_architecture(capability)):
            stated = machine.find_peak(kind)
            assert stated.ops_per_cycle is not None
            assert product_rates[kind].ops_per_cycle == pytest.approx(stated.ops_per_cycle), kind


@pytest.mark.parametrize("name", REPORTS)
def test_roofs_stand_at_the_clocks_of_the_launch(name: str) -> None:
    for launch in read_launches(name):
        machine = machine_of(launch, with_counters=True)
        assert machine.clocks.basis is ClockBasis.MEASURED
        boost = launch.device.sm_clock_hz
        assert machine.clocks.sm_hz < 1.03 * boost


@pytest.mark.parametrize("name", REPORTS)
def test_bytes_over_the_dram_roof_are_the_percentage_the_report_stores(name: str) -> None:
    compared = 0
    for launch in read_launches(name):
        roof = machine_of(launch, with_counters=True).find_bandwidth(MemoryLevel.DRAM)
        assert roof is not None and roof.bytes_per_s is not None
        for metric in ("dram__bytes_read", "dram__bytes_write", "dram__bytes_op_read", "dram__bytes_op_write"):
            rate = launch.read_number(f"{metric}.sum.per_second")
            percent = launch.read_number(f"{metric}.sum.pct_of_peak_sustained_elapsed")
            if rate is not None and percent is not None:
                assert 100 * rate / roof.bytes_per_s == pytest.approx(percent, rel=0.02, abs=0.001), launch.index
                compared += 1
    # One recording, made without memory tables, stores no bytes.
    assert compared > 0 or all(
        launch.read_number("dram__bytes.sum.per_second") is None for launch in read_launches(name)
    )


@pytest.mark.parametrize("name", REPORTS)
def test_sectors_over_the_l2_roof_are_the_percentage_the_report_stores(name: str) -> None:
    for launch in read_launches(name):
        roof = machine_of(launch, with_counters=True).find_bandwidth(MemoryLevel.L2)
        sectors = launch.read_number("lts__t_sectors_srcunit_tex.sum.per_second")
        percent = launch.read_number("lts__t_sectors_srcunit_tex.avg.pct_of_peak_sustained_elapsed")
        assert roof is not None and roof.bytes_per_s is not None
        if sectors is not None and percent is not None:
            assert 100 * sectors * 32 / roof.bytes_per_s == pytest.approx(percent, rel=0.02, abs=0.001), launch.index


def test_every_report_is_looked_at() -> None:
    assert len(REPORTS) >= 13
    assert sum(len(read_launches(name)) for name in REPORTS) >= 40
