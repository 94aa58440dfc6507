"""Targets of the arrows that suggestions draw from a kernel's point, and the roofs that end them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.diagnosis.advice.estimators import estimate_elimination
from gpa_lsp.diagnosis.advice.model import LEAST_SPEEDUP as LEAST_OF_ADVICE
from gpa_lsp.diagnosis.analyses.starlight import (
    LEAST_SPEEDUP,
    Bottleneck,
    Direction,
    Part,
    Position,
    WaiterKind,
    classify_waiter,
    estimate_line_speedup,
    find_position,
    find_row,
    find_target,
    list_feeds,
    list_rows,
    list_suggestions,
    measure_line_share,
    move,
    move_right,
)
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.analyses.roofline.launches import make_roofline

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
    outcome = move(place(), "up", 4 / 3, "x")
    assert (
        outcome.words == "up from 1.20 TFLOP/s to 1.60 TFLOP/s at 0.900 op/B of DRAM; the ceiling there is 1.80 TFLOP/s"
    )
    arrow = outcome.movement
    assert (arrow.from_intensity, arrow.from_ops_per_s) == (pytest.approx(0.9), 1.2 * T)
    assert (arrow.to_intensity, arrow.to_ops_per_s) == (pytest.approx(0.9), pytest.approx(1.6 * T))


def test_up_ends_at_the_roof_and_equation_4_is_told():
    outcome = move(place(), "up", 2.0, "x")
    assert outcome.movement.to_ops_per_s == pytest.approx(1.8 * T)
    assert outcome.uncapped_ops_per_s == pytest.approx(2.4 * T)
    assert outcome.words.endswith("; the ceiling there is 1.80 TFLOP/s, Equation 4 alone gives 2.40 TFLOP/s")


def test_saved_bytes_take_the_point_as_far_right_as_the_new_rate_demands():
    """2.4 TFLOP/s need 1.2 FLOP/B where DRAM brings 2 TB/s."""
    outcome = move(place(), "up_right", 2.0, "x")
    assert outcome.movement.to_ops_per_s == pytest.approx(2.4 * T)
    assert outcome.movement.to_intensity == pytest.approx(1.2)
    assert "right from 0.900 op/B to at least 1.20 op/B, so that DRAM can follow" in outcome.words


def test_only_the_peak_ends_an_arrow_to_the_right():
    outcome = move(place(), "up_right", 20.0, "x")
    assert outcome.movement.to_ops_per_s == pytest.approx(10 * T)
    assert "Equation 4 alone gives 24.0 TFLOP/s" in outcome.words


def test_half_the_bytes_double_the_intensity_and_the_roof():
    outcome = move_right(place(), "compress", is_narrower=False)
    assert outcome.words == (
        "right: half the bytes double the intensity to 1.80 op/B, where the ceiling is 3.60 TFLOP/s instead of 1.80 TFLOP/s"
    )
    assert outcome.movement.to_ops_per_s == outcome.movement.from_ops_per_s


def test_a_narrower_type_has_a_peak_of_its_own():
    """DRAM allows 12 TFLOP/s at 6 FLOP/B, more than FP32's 10 and less than FP16's 20."""
    position = place(traffic={MemoryLevel.DRAM: (0.4 * T, 2 * T)})
    narrow = move_right(position, "narrow", is_narrower=True)
    compress = move_right(position, "compress", is_narrower=False)
    assert "the ceiling for FP16 is 12.0 TFLOP/s instead of 6.00 TFLOP/s" in narrow.words
    assert "the ceiling is 10.0 TFLOP/s" in compress.words


def test_there_is_no_narrower_integer():
    position = place(kind=OperationKind.INT32, peaks={OperationKind.INT32: 5 * T})
    assert move_right(position, "narrow", is_narrower=True) is None
    outcome = move(position, "up", 1.1, "x")
    assert "TIOP/s" in outcome.words
    assert "op/B" in outcome.words


def test_a_point_above_its_roof_does_not_move_down():
    position = place(traffic={MemoryLevel.DRAM: (2.1 * T, 2 * T)})
    assert move(position, "up", 1.0, "x").movement.to_ops_per_s == 1.2 * T


def test_without_roofs_the_arrow_ends_where_equation_4_says():
    position = place()
    bare = replace(
        position,
        point=replace(position.point, attainable_ops_per_s=None),
        others=(),
        peak_ops_per_s=None,
        bytes_per_s=None,
    )
    for direction in ("up", "up_right"):
        outcome = move(bare, direction, 30.0, "x")
        assert outcome.movement.to_ops_per_s == pytest.approx(36 * T)
        assert outcome.words.endswith("is unknown")
    outcome = move_right(bare, "x", is_narrower=False)
    assert outcome.words.endswith("1.80 op/B; the ceiling there is unknown")


@given(st.floats(1, 1000), st.sampled_from(["up", "up_right"]))
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


COUNTS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), min_size=1).filter(
    lambda lines: sum(map(sum, lines)) > 0
)


@given(COUNTS)
def test_shares_of_all_lines_are_the_whole(lines: list[tuple[int, int]]):
    total = sum(map(sum, lines))
    assert sum(measure_line_share(*line, total) for line in lines) == pytest.approx(1.0)


@given(st.integers(1, 10**9), st.floats(0, 0.999))
def test_equation_3_is_gpa_s_equation_2_without_any_bound(total: int, part: float):
    """N_op + N_stall is T. Taken of stalls without issue alone it would be GPA's Equation 3, which hides them without limit."""
    removed = part * total
    assert estimate_line_speedup(total, removed) == estimate_elimination(total, removed)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_stalls_gain_more(total: int, first: int, second: int):
    low, high = sorted((first % total, second % total))
    assert 1 <= estimate_line_speedup(total, low) <= estimate_line_speedup(total, high)


@pytest.mark.parametrize(("operations", "stalls", "total"), [(-1, 2, 10), (6, 5, 10), (0, 0, 0)])
def test_what_is_no_part_is_refused(operations: float, stalls: float, total: float):
    with pytest.raises(ValueError, match="no part"):
        measure_line_share(operations, stalls, total)


def test_a_kernel_cannot_lose_all_its_samples():
    with pytest.raises(ValueError, match="nothing would be left"):
        estimate_line_speedup(10, 10)


def test_a_line_is_shown_from_the_speedup_on_from_which_advice_is():
    assert LEAST_SPEEDUP == LEAST_OF_ADVICE


def test_the_rows_are_those_of_the_paper():
    assert [(row.bottleneck, row.direction) for row in list_rows()] == [
        (Bottleneck.LATENCY, "up"),
        (Bottleneck.MEMORY, "up_right"),
        (Bottleneck.RESOURCES, "up"),
        (Bottleneck.SYNCHRONISATION, "up"),
        (Bottleneck.LOW_INTENSITY, "right"),
    ]
    assert Counter(suggestion.bottleneck for suggestion in list_suggestions()) == {
        Bottleneck.LATENCY: 3,
        Bottleneck.MEMORY: 3,
        Bottleneck.RESOURCES: 2,
        Bottleneck.SYNCHRONISATION: 4,
        Bottleneck.LOW_INTENSITY: 2,
    }


def test_every_stall_reason_of_every_kind_of_instruction_is_said_once():
    said = Counter()
    for feed in list_feeds():
        assert feed.because
        for kind in WaiterKind if feed.kind is None else (feed.kind,):
            said[feed.reason, kind] += 1
    assert said == {(reason, kind): 1 for reason in STALL_REASONS for kind in WaiterKind}


def test_issues_are_operations_and_everything_else_is_a_stall():
    for reason in STALL_REASONS:
        targets = {find_target(reason, kind) for kind in WaiterKind}
        assert (Part.OPERATION in targets) == (reason == "selected")
        if reason == "selected":
            assert targets == {Part.OPERATION}
        # The roofline's row is fed by no stall.
        assert Bottleneck.LOW_INTENSITY not in targets


def test_a_reason_nobody_knows_is_not_attributed():
    assert find_target("flux_capacitor", WaiterKind.MEMORY) is Part.NONE


def test_a_ready_warp_that_was_not_picked_lost_nothing():
    assert find_target("not_selected", WaiterKind.OTHER) is Part.NONE


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (WaiterKind.MEMORY, Bottleneck.MEMORY),
        (WaiterKind.OTHER, Bottleneck.RESOURCES),
        (WaiterKind.UNKNOWN, Part.NONE),
    ],
)
def test_the_shared_queue_counts_by_the_instruction_that_waits(kind: WaiterKind, target: Bottleneck | Part):
    assert find_target("mio_throttle", kind) is target


def test_counterparts_are_optimizers_of_ours():
    assert len(list_suggestions()) == 14
    for suggestion in list_suggestions():
        assert suggestion.counterparts, suggestion.title
        assert set(suggestion.counterparts) <= set(list_optimizers()), suggestion.title


def test_without_a_disassembly_the_kind_is_unknown():
    assert classify_waiter(None) is WaiterKind.UNKNOWN
    assert find_row(Bottleneck.MEMORY).title == "Poor memory usage"
