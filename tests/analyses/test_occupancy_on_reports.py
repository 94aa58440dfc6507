"""Occupancy and waves, as the answers show them, against what Nsight Compute printed into real reports: exact for every launch."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer, Chart, Table
from gpa_lsp.diagnosis.analyses.questions import load_balance, occupancy
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.profile.model import Launch
from tests.real_reports import REPORTS, join

pytestmark = pytest.mark.corpus

LIMITS = {
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "barriers": "launch__occupancy_limit_barriers",
}


@cache
def every_launch() -> tuple[tuple[str, Subject, Launch], ...]:
    """Facts of kernels cut down to one launch each."""
    return tuple(_cut_kernels())


def _cut_kernels() -> Iterator[tuple[str, Subject, Launch]]:
    for name in REPORTS:
        for kernel in join(name):
            for launch in kernel.launches:
                if launch.failure is None:
                    facts = Subject(replace(kernel, launches=(launch,), contexts=()))
                    yield f"{name} {launch.index}", facts, launch


@cache
def occupancy_answers() -> tuple[tuple[str, Answer, Launch], ...]:
    return tuple((name, occupancy.ANALYSIS.ask(facts), launch) for name, facts, launch in every_launch())


def read(launch: Launch, metric: str) -> float:
    value = launch.read_number(metric)
    assert value is not None, metric
    return value


def table(answer: Answer, title: str) -> Table:
    return next(one for one in answer.tables if one.title.startswith(title))


def chart(answer: Answer, title: str) -> Chart:
    return next(one for one in answer.charts if one.title == title)


def height(chart: Chart, x: float) -> float:
    series = chart.series[0]
    assert series.xs[0] <= x <= series.xs[-1]
    return series.ys[bisect_right(series.xs, x) - 1]


def test_theoretical_occupancy_and_its_limits_are_those_of_the_report():
    for name, answer, launch in occupancy_answers():
        theoretical = answer.bars[0].ratio
        assert 100 * theoretical == pytest.approx(read(launch, "sm__maximum_warps_per_active_cycle_pct"), rel=1e-12), (
            name
        )
        architecture_warps = read(launch, "sm__maximum_warps_avg_per_active_cycle") / theoretical
        assert theoretical * architecture_warps / 4 == read(launch, "smsp__maximum_warps_avg_per_active_cycle"), name
        limits = {row[0]: row[3] for row in table(answer, "What limits").rows}
        for resource, metric in LIMITS.items():
            assert limits.get(resource) == launch.read_number(metric), f"{name}: {resource}"
    assert len(occupancy_answers()) == 42


def test_what_a_block_is_given_is_what_the_report_says():
    for name, answer, launch in occupancy_answers():
        given = {row[0]: str(row[2]) for row in table(answer, "What limits").rows}
        per_thread, per_block = (
            int(number.replace(",", "")) for number in re.findall(r"[\d,]+\d|\d", given["registers"])
        )
        # Since 2025.1 the report states it per thread, before per block; no block has fewer than 256.
        stated = read(launch, "launch__registers_per_thread_allocated")
        assert stated == (per_thread if stated < 256 else per_block), name
        shared = int(given["shared memory"].split()[0].replace(",", ""))
        assert shared == read(launch, "launch__shared_mem_per_block_allocated"), name


def test_the_table_and_the_chart_over_block_sizes_are_the_curve_of_the_report():
    rows = points = 0
    for name, answer, launch in occupancy_answers():
        metric = launch.metrics["launch__occupancy_per_block_size"]
        printed = {int(x): int(y) for x, y in zip(metric.instance_ids, metric.instance_values, strict=True)}
        for row in table(answer, "Occupancy over the size").rows:
            if row[0] in printed:
                assert row[2] == printed[row[0]], f"{name}: {row[0]} threads"
                rows += 1
        most = read(launch, "sm__maximum_warps_avg_per_active_cycle") / answer.bars[0].ratio
        for threads, warps in printed.items():
            found = height(chart(answer, "Occupancy over block size"), threads) * most
            assert found == pytest.approx(warps, abs=1e-9), f"{name}: {threads} threads"
            points += 1
    assert rows >= 42 * 16
    assert points == 42 * 65


def test_the_charts_over_registers_and_shared_memory_are_the_curves_of_the_report():
    points = 0
    for name, answer, launch in occupancy_answers():
        most = read(launch, "sm__maximum_warps_avg_per_active_cycle") / answer.bars[0].ratio
        registers = launch.metrics["launch__occupancy_per_register_count"]
        for count, warps in zip(registers.instance_ids, registers.instance_values, strict=True):
            if 1 <= int(count) <= 255:  # the report's 0 and 256 are no numbers a compiler can choose
                found = height(chart(answer, "Occupancy over registers"), int(count)) * most
                assert found == pytest.approx(warps, abs=1e-9), f"{name}: {count} registers"
                points += 1
        shared = launch.metrics["launch__occupancy_per_shared_mem_size"]
        reserved = round(read(launch, "launch__shared_mem_per_block_driver"))
        for size, warps in zip(shared.instance_ids, shared.instance_values, strict=True):
            # Sizes of the report include the driver's part; where it says that nothing fits, a kernel would need an opt-in.
            if warps:
                found = height(chart(answer, "Occupancy over shared memory"), max(0, int(size) - reserved)) * most
                assert found == pytest.approx(warps, abs=1e-9), f"{name}: {size} bytes"
                points += 1
    assert points > 15_000


def test_achieved_occupancy_is_the_counter():
    for name, answer, launch in occupancy_answers():
        counted = read(launch, "sm__warps_active.avg.pct_of_peak_sustained_active")
        assert 100 * answer.bars[1].ratio == pytest.approx(counted, rel=1e-12), name


def test_waves_are_those_of_the_report():
    for name, facts, launch in every_launch():
        grids = table(load_balance.ANALYSIS.ask(facts), "Other grids")
        assert grids.current_row is not None
        waves = grids.rows[grids.current_row][1]
        assert waves == pytest.approx(read(launch, "launch__waves_per_multiprocessor"), rel=1e-12), name
