"""The model's time with measured volumes beside that with predicted ones: 40 shapes of the 3D star of range 4 on a V100."""

from collections.abc import Sequence
from typing import Any

import pytest

from gpa_lsp.diagnosis.analyses.answers import ChartKind
from gpa_lsp.document.charts.answer_chart import build_answer_chart
from gpa_lsp.execution.volumes.devices import find_device, find_paper_device
from gpa_lsp.execution.volumes.expressions import cover_updates
from gpa_lsp.execution.volumes.measured_volumes import (
    VolumeComparison,
    answer_compared,
    compare_volumes,
    scatter_volumes,
)
from gpa_lsp.execution.volumes.model import Limiter, VolumeMode
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.profile.model import Launch, Metric
from tests.volumes.written_kernels import DATA, read_json, write_star

INTERIOR = (632, 504, 504)
CELLS = INTERIOR[0] * INTERIOR[1] * INTERIOR[2]
ROWS: Sequence[Any] = read_json(DATA / "measured_v100_star3d.json")["rows"]


def build_launch(totals: dict[str, float]) -> Launch:
    metrics = {name: Metric(name=name, value=value) for name, value in totals.items()}
    return Launch(index=0, mangled_name="star", metrics=metrics)


def list_totals(row: Any) -> dict[str, float]:
    _, dram_load, dram_store, l2_load, l2_store, giga_updates = row[:6]
    return {
        "dram__bytes_read.sum": dram_load * CELLS,
        "dram__bytes_write.sum": dram_store * CELLS,
        "lts__t_sectors_op_read.sum": l2_load * CELLS / 32,
        "lts__t_sectors_op_write.sum": l2_store * CELLS / 32,
        "gpu__time_duration.sum": CELLS / giga_updates,
    }


def compare(row: Any, mode: VolumeMode, totals: dict[str, float]) -> VolumeComparison | None:
    device = find_paper_device("V100") if mode is VolumeMode.PAPER else find_device("V100 PCIe")
    launch = cover_updates(INTERIOR, tuple(row[0]))
    predicted = predict_volumes(write_star(4, (640, 512, 512)), launch, device, registers=32, mode=mode)
    return compare_volumes(predicted, build_launch(totals))


def measure_errors(mode: VolumeMode) -> tuple[float, float]:
    """Mean absolute errors of both times."""
    found = [compare(row, mode, list_totals(row)) for row in ROWS]
    known = [one for one in found if one is not None]
    assert len(known) == len(ROWS) == 40
    own = sum(abs(one.predicted_ns / one.measured_ns - 1) for one in known) / 40
    return own, sum(abs(one.from_measured_ns / one.measured_ns - 1) for one in known) / 40


@pytest.mark.parametrize(("mode", "error"), [(VolumeMode.PAPER, 0.215), (VolumeMode.CORRECTED, 0.092)])
def test_what_is_off_with_measured_volumes_is_the_model_s(mode: VolumeMode, error: float) -> None:
    """Section 5.8: performance is off by as much whether volumes are estimated or measured."""
    own, from_measured = measure_errors(mode)
    assert own == pytest.approx(error, abs=0.005) and from_measured == pytest.approx(own, abs=0.005)


def test_volumes_of_the_model_give_its_own_time() -> None:
    row = ROWS[0]
    for mode in VolumeMode:
        predicted = compare(row, mode, list_totals(row))
        assert predicted is not None
        names = {"dram_load": "dram__bytes_read.sum", "dram_store": "dram__bytes_write.sum"}
        same = {names[one.name]: one.predicted_bytes for one in predicted.moved if one.name in names}
        found = compare(row, mode, {**list_totals(row), **same})
        only_time = {**same, "gpu__time_duration.sum": 1e6}
        without_l2 = compare(row, mode, only_time)
        assert found is not None and without_l2 is not None
        assert without_l2.from_measured_ns == pytest.approx(without_l2.predicted_ns)
        assert [one.measured_bytes is None for one in without_l2.moved] == [True, True, False, False]


def test_a_launch_that_moved_twice_as_much_takes_twice_as_long_at_its_own_clock() -> None:
    row = next(
        one
        for one in ROWS
        if (found := compare(one, VolumeMode.PAPER, list_totals(one))) and found.limiter is Limiter.DRAM
    )
    once = compare(row, VolumeMode.PAPER, list_totals(row))
    totals = list_totals(row)
    twice = {name: 2 * totals[name] for name in ("dram__bytes_read.sum", "dram__bytes_write.sum")}
    both = compare(row, VolumeMode.PAPER, {**totals, **twice})
    assert once is not None and both is not None
    assert both.from_measured_ns == pytest.approx(2 * once.from_measured_ns) and both.predicted_ns == once.predicted_ns
    # Half of the clock of the SMs leaves DRAM as it is, and makes L1 and L2 half as fast.
    slow = compare(row, VolumeMode.PAPER, {**totals, "smsp__cycles_elapsed.avg.per_second": 0.69e9})
    assert slow is not None and slow.sm_hz == 0.69e9
    assert once.from_measured_ns <= slow.from_measured_ns <= 2 * once.from_measured_ns


def test_what_a_reader_sees() -> None:
    row = ROWS[0]
    found = compare(row, VolumeMode.CORRECTED, {**list_totals(row), "smsp__cycles_elapsed.avg.per_second": 1.38e9})
    assert found is not None
    answer = answer_compared(found)
    assert answer.summary.startswith("Measured: ") and answer.summary.endswith("both at the launch's 1.38 GHz.")
    (table,) = answer.tables
    assert [row[:2] for row in table.rows] == [
        ("L2 → L1", "loads"), ("L1 → L2", "stores"), ("DRAM → L2", "loads"), ("L2 → DRAM", "stores"),
    ]  # fmt: skip


def test_nothing_is_compared_where_nothing_was_measured() -> None:
    row = ROWS[0]
    assert compare(row, VolumeMode.PAPER, {}) is None
    assert compare(row, VolumeMode.PAPER, {"gpu__time_duration.sum": 1e6}) is None
    volumes = {name: value for name, value in list_totals(row).items() if "time" not in name}
    assert compare(row, VolumeMode.PAPER, volumes) is None


def test_volumes_of_several_launches_are_drawn_over_those_measured() -> None:
    found = [one for row in ROWS[:8] if (one := compare(row, VolumeMode.CORRECTED, list_totals(row))) is not None]
    chart = scatter_volumes(found)
    assert chart is not None and chart.kind is ChartKind.SCATTER and scatter_volumes(found[:1]) is None
    assert [one.label for one in chart.series] == [
        "L2 → L1 loads",
        "L1 → L2 stores",
        "DRAM → L2 loads",
        "L2 → DRAM stores",
    ]
    assert all(len(one.xs) == 8 and list(one.xs) == sorted(one.xs) for one in chart.series)
    spec = build_answer_chart(chart)
    diagonal, points = spec["layer"]
    assert len(spec["data"]["values"]) == 32 and points["encoding"]["x"]["scale"]["type"] == "log"
    ends = [(one["x"], one["y"]) for one in diagonal["data"]["values"]]
    every = [value for one in found for moved in one.moved for value in (moved.measured_bytes, moved.predicted_bytes)]
    assert ends == [(min(every), min(every)), (max(every), max(every))]  # type: ignore[type-var]
