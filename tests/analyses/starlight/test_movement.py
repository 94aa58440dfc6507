"""Where suggestions take a kernel's point, and which roofs end the arrow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.starlight.movement import Position, find_position, move, move_right
from gpa_lsp.diagnosis.analyses.starlight.suggestions import Direction
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from tests.analyses.starlight.rooflines import make_roofline

T = 1e12
G = 1e9


def place(**options) -> Position:
    """1.2 TFLOP/s of 10 at 0.9 FLOP/B of a DRAM of 2 TB/s: the roof there is 1.8."""
    given = {
        "ops_per_s": 1.2 * T,
        "peaks": {OperationKind.FP32: 10 * T, OperationKind.FP16: 20 * T},
        "traffic": {MemoryLevel.DRAM: (1.2 / 0.9 * T, 2 * T), MemoryLevel.L2: (2 * T, 6 * T)},
    }
    found = find_position(make_roofline(**(given | options)))
    assert found is not None
    return found


def test_the_level_with_the_lowest_roof_is_where_the_kernel_stands():
    position = place()
    assert position.point.level is MemoryLevel.DRAM
    assert position.point.intensity == pytest.approx(0.9)
    assert position.roof_ops_per_s == pytest.approx(1.8 * T)


def test_up_below_the_roof():
    outcome = move(place(), Direction.UP, 4 / 3, "x")
    assert (
        outcome.words == "up from 1.20 TFLOP/s to 1.60 TFLOP/s at 0.900 op/B of DRAM; the ceiling there is 1.80 TFLOP/s"
    )
    arrow = outcome.movement
    assert (arrow.from_intensity, arrow.from_ops_per_s) == (pytest.approx(0.9), 1.2 * T)
    assert (arrow.to_intensity, arrow.to_ops_per_s) == (pytest.approx(0.9), pytest.approx(1.6 * T))


def test_up_ends_at_the_roof_and_equation_4_is_told():
    outcome = move(place(), Direction.UP, 2.0, "x")
    assert outcome.movement.to_ops_per_s == pytest.approx(1.8 * T)
    assert outcome.uncapped_ops_per_s == pytest.approx(2.4 * T)
    assert outcome.words.endswith("; the ceiling there is 1.80 TFLOP/s, Equation 4 alone gives 2.40 TFLOP/s")


def test_saved_bytes_take_the_point_as_far_right_as_the_new_rate_demands():
    """2.4 TFLOP/s need 1.2 FLOP/B where DRAM brings 2 TB/s."""
    outcome = move(place(), Direction.UP_RIGHT, 2.0, "x")
    assert outcome.movement.to_ops_per_s == pytest.approx(2.4 * T)
    assert outcome.movement.to_intensity == pytest.approx(1.2)
    assert "right from 0.900 op/B to at least 1.20 op/B, so that DRAM can follow" in outcome.words


def test_only_the_peak_ends_an_arrow_to_the_right():
    outcome = move(place(), Direction.UP_RIGHT, 20.0, "x")
    assert outcome.movement.to_ops_per_s == pytest.approx(10 * T)
    assert "Equation 4 alone gives 24.0 TFLOP/s" in outcome.words


def test_half_the_bytes_double_the_intensity_and_the_roof():
    outcome = move_right(place(), "compress", is_narrower=False)
    assert outcome is not None
    assert outcome.words == (
        "right: half the bytes double the intensity to 1.80 op/B, where the ceiling is 3.60 TFLOP/s instead of 1.80 TFLOP/s"
    )
    assert outcome.movement.to_ops_per_s == outcome.movement.from_ops_per_s


def test_a_narrower_type_has_a_peak_of_its_own():
    """At 6 FLOP/B DRAM allows 12 TFLOP/s, more than FP32's 10 and less than FP16's 20."""
    position = place(traffic={MemoryLevel.DRAM: (0.4 * T, 2 * T)})
    narrow = move_right(position, "narrow", is_narrower=True)
    compress = move_right(position, "compress", is_narrower=False)
    assert narrow is not None
    assert compress is not None
    assert "the ceiling for FP16 is 12.0 TFLOP/s instead of 6.00 TFLOP/s" in narrow.words
    assert "the ceiling is 10.0 TFLOP/s" in compress.words


def test_there_is_no_narrower_integer():
    position = place(kind=OperationKind.INT32, peaks={OperationKind.INT32: 5 * T})
    assert move_right(position, "narrow", is_narrower=True) is None
    outcome = move(position, Direction.UP, 1.1, "x")
    assert "TIOP/s" in outcome.words
    assert "op/B" in outcome.words


def test_a_point_above_its_roof_does_not_move_down():
    position = place(traffic={MemoryLevel.DRAM: (2.1 * T, 2 * T)})
    assert move(position, Direction.UP, 1.0, "x").movement.to_ops_per_s == 1.2 * T


def test_without_roofs_the_arrow_ends_where_equation_4_says():
    position = place()
    bare = replace(
        position,
        point=replace(position.point, attainable_ops_per_s=None),
        others=(),
        peak_ops_per_s=None,
        bytes_per_s=None,
    )
    for direction in (Direction.UP, Direction.UP_RIGHT):
        outcome = move(bare, direction, 30.0, "x")
        assert outcome.movement.to_ops_per_s == pytest.approx(36 * T)
        assert outcome.words.endswith("is unknown")
    outcome = move_right(bare, "x", is_narrower=False)
    assert outcome is not None
    assert outcome.words.endswith("1.80 op/B; the ceiling there is unknown")


@given(st.floats(1, 1000), st.sampled_from([Direction.UP, Direction.UP_RIGHT]))
def test_no_arrow_ends_above_the_roofs_nor_below_its_start(speedup: float, direction: Direction):
    position = place()
    arrow = move(position, direction, speedup, "x").movement
    assert arrow.from_ops_per_s <= arrow.to_ops_per_s <= 10 * T
    assert arrow.to_ops_per_s <= 2 * T * arrow.to_intensity * (1 + 1e-9)
    assert arrow.to_intensity >= arrow.from_intensity


def test_without_operations_there_is_no_place():
    assert find_position(None) is None
    traffic = {MemoryLevel.DRAM: (100 * G, 2 * T)}
    assert find_position(make_roofline(ops_per_s=None, peaks={}, traffic=traffic)) is None
