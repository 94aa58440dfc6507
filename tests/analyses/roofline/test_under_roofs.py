"""Work under roofs: Equation 1, nearness, dominance, and laws that hold for all numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.roofline.place import ISSUE, build_roofline, find_attainable
from gpa_lsp.diagnosis.analyses.roofline.work import Work, sum_work
from gpa_lsp.gpu.device.model import (
    GDDR_CEILING,
    HBM_CEILING,
    L1_CEILING,
    L2_CEILING,
    MemoryLevel,
    OperationKind,
    RoofOrigin,
)
from tests.analyses.roofline.launches import write_machine, write_work

FP32, FP64, INT32, SPECIAL = OperationKind.FP32, OperationKind.FP64, OperationKind.INT32, OperationKind.SPECIAL
DRAM, L2, SHARED = MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.SHARED
PEAKS = {FP64: 256e9, FP32: 512e9, INT32: 256e9, SPECIAL: 64e9}
BANDWIDTHS = {SHARED: 512e9, MemoryLevel.L1: 512e9, L2: 256e9, DRAM: 64e9}
MACHINE = write_machine(PEAKS, BANDWIDTHS)


AMOUNTS = st.floats(min_value=0, max_value=1e15)
WORKS = st.builds(
    write_work,
    st.dictionaries(st.sampled_from(list(OperationKind)), AMOUNTS),
    st.dictionaries(st.sampled_from(list(MemoryLevel)), AMOUNTS),
    st.floats(min_value=1e-9, max_value=1e6),
    st.none() | AMOUNTS,
)


def test_left_of_the_ridge_point_the_bandwidth_is_the_roof():
    roofline = build_roofline(0, write_work({FP32: 64e6}, {DRAM: 32e6}), MACHINE, HBM_CEILING)
    (point,) = roofline.points
    assert point.intensity == 2
    assert point.achieved_ops_per_s == pytest.approx(64e9)
    assert point.attainable_ops_per_s == pytest.approx(128e9)
    assert point.is_memory_side is True


def test_right_of_the_ridge_point_the_peak_is_the_roof():
    roofline = build_roofline(0, write_work({FP32: 64e6}, {DRAM: 4e6}), MACHINE, HBM_CEILING)
    (point,) = roofline.points
    assert (point.attainable_ops_per_s, point.is_memory_side) == (512e9, False)


def test_a_type_without_a_peak_has_a_point_without_a_roof():
    roofline = build_roofline(0, write_work({OperationKind.TENSOR_FP4: 64e6}, {DRAM: 4e6}), MACHINE, HBM_CEILING)
    (point,) = roofline.points
    assert (point.attainable_ops_per_s, point.is_memory_side) == (None, None)
    assert roofline.dominant is OperationKind.TENSOR_FP4
    assert "the FP4 tensor peak" in [missing.what for missing in roofline.missing]


def test_no_bytes_are_no_point_and_no_operations_no_roof():
    roofline = build_roofline(0, write_work({FP32: 64e6, FP64: 0}, {DRAM: 0}), MACHINE, HBM_CEILING)
    assert roofline.points == ()
    assert [roof.name for roof in roofline.roofs] == ["FP32 peak", "DRAM bandwidth"]
    assert {count.kind: count.operations for count in roofline.operations} == {FP32: 64e6, FP64: 0}
    assert roofline.roofs[1].headroom == float("inf")


def test_hardly_any_operations_have_no_point_and_a_roof_only_where_it_is_used():
    moves = build_roofline(0, write_work({FP32: 64e6, FP64: 0.5e6}, {DRAM: 4e6}), MACHINE, HBM_CEILING)
    assert {point.kind for point in moves.points} == {FP32}
    assert "FP64 peak" not in [roof.name for roof in moves.shown_roofs]
    assert {count.kind for count in moves.operations} == {FP32, FP64}, "they are counted all the same"
    slow = write_machine({**PEAKS, FP64: 5e9}, BANDWIDTHS)
    used = build_roofline(0, write_work({FP32: 64e6, FP64: 0.5e6}, {DRAM: 4e6}), slow, HBM_CEILING)
    assert "FP64 peak" in [roof.name for roof in used.shown_roofs]


def test_shared_memory_that_no_instruction_accesses_is_not_drawn():
    work = replace(write_work({FP32: 64e6}, {DRAM: 4e6, SHARED: 4e3}), unused_levels=frozenset({SHARED}))
    roofline = build_roofline(0, work, MACHINE, HBM_CEILING)
    assert {point.level for point in roofline.points} == {DRAM}
    assert "shared memory bandwidth" not in [roof.name for roof in roofline.shown_roofs]
    assert roofline.traffic[0].bytes == 4e3, "what was counted stays"


def test_the_nearest_roof_counts_what_can_be_sustained():
    work = write_work({FP32: 440e6}, {DRAM: 54e6, L2: 100e6}, warp_instructions=8e6)
    names = [roof.name for roof in build_roofline(0, work, MACHINE, HBM_CEILING).roofs]
    # 0.844 / 0.85, 0.859 / 1, 0.5 / 1, 0.391 / 0.85
    assert names == ["DRAM bandwidth", "FP32 peak", ISSUE, "L2 bandwidth"]


@pytest.mark.parametrize(
    ("level", "ceiling"),
    [(DRAM, GDDR_CEILING), (L2, L2_CEILING), (MemoryLevel.L1, L1_CEILING), (SHARED, L1_CEILING)],
)
def test_what_a_memory_sustains_and_what_was_measured(level, ceiling):
    work = write_work({}, {level: 1e6})
    (roof,) = build_roofline(0, work, MACHINE, GDDR_CEILING).roofs
    assert roof.ceiling_ratio == ceiling
    measured = write_machine(PEAKS, BANDWIDTHS, origin=RoofOrigin.EMPIRICAL)
    (roof,) = build_roofline(0, work, measured, GDDR_CEILING).roofs
    assert roof.ceiling_ratio == 1


@pytest.mark.parametrize(
    ("operations", "dominant"),
    [
        ({FP32: 10e6, FP64: 20e6}, FP64),
        ({FP32: 10e6, INT32: 50e6}, FP32),
        ({FP32: 10e6, INT32: 200e6}, INT32),
        ({FP32: 1e5, INT32: 50e6}, INT32),
        ({FP32: 10e6, SPECIAL: 10e6}, FP32),
        ({FP32: 0, INT32: 5e6}, INT32),
        ({FP32: 0}, None),
        ({}, None),
    ],
    ids=[
        "nearest",
        "on the side",
        "near its peak",
        "hardly anything else",
        "special",
        "only integers",
        "none",
        "unknown",
    ],
)
def test_what_a_kernel_is_about(operations, dominant):
    assert build_roofline(0, write_work(operations, {}), MACHINE, HBM_CEILING).dominant is dominant


@given(WORKS)
def test_nothing_attainable_is_above_either_roof(work):
    roofline = build_roofline(None, work, MACHINE, HBM_CEILING)
    for point in roofline.points:
        if point.attainable_ops_per_s is not None:
            assert point.attainable_ops_per_s <= PEAKS[point.kind]
            assert point.attainable_ops_per_s <= BANDWIDTHS[point.level] * point.intensity
    for one in roofline.instruction_points:
        assert one.attainable_per_s is not None
        assert one.attainable_per_s <= 16e9
    nearness = [roof.share_ratio / roof.ceiling_ratio for roof in roofline.roofs]
    assert nearness == sorted(nearness, reverse=True)


@given(WORKS, st.floats(min_value=0.1, max_value=10))
def test_twice_the_time_is_half_the_rate_and_the_same_intensity(work, factor):
    slower = Work(
        duration_s=work.duration_s * factor,
        operations=work.operations,
        traffic=work.traffic,
        warp_instructions=work.warp_instructions,
    )
    before, after = (build_roofline(None, one, MACHINE, HBM_CEILING) for one in (work, slower))
    assert [point.intensity for point in before.points] == [point.intensity for point in after.points]
    assert [point.achieved_ops_per_s for point in after.points] == pytest.approx(
        [point.achieved_ops_per_s / factor for point in before.points]
    )
    assert {roof.name: roof.achieved_per_s for roof in after.roofs} == pytest.approx(
        {roof.name: roof.achieved_per_s / factor for roof in before.roofs}
    )


@given(st.lists(WORKS, min_size=1, max_size=5))
def test_the_sum_is_what_all_did_and_knows_what_all_know(works):
    together = sum_work(works)
    assert together.duration_s == pytest.approx(sum(work.duration_s for work in works))
    assert set(together.operations) == set.intersection(*(set(work.operations) for work in works))
    assert set(together.traffic) == set.intersection(*(set(work.traffic) for work in works))
    for kind, count in together.operations.items():
        assert count.operations == pytest.approx(sum(work.operations[kind].operations for work in works))
    for level, traffic in together.traffic.items():
        assert traffic.bytes == pytest.approx(sum(work.traffic[level].bytes for work in works))
    assert (together.warp_instructions is None) == any(work.warp_instructions is None for work in works)


def test_nothing_together_is_nothing():
    assert sum_work([]) is None


@given(
    st.floats(min_value=1, max_value=1e18),
    st.floats(min_value=1, max_value=1e15),
    st.floats(min_value=1e-9, max_value=1e9),
)
def test_equation_1(peak, bandwidth, intensity):
    assert find_attainable(peak, bandwidth, intensity) in (peak, bandwidth * intensity)
    assert find_attainable(None, bandwidth, intensity) is None
    assert find_attainable(peak, None, intensity) is None
