"""Lines, sectors, bytes and patterns of requests, by hand."""

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.accesses.lane_addresses import LanePattern, view_lanes
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.accesses.references import measure_requests
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.access_sums import AccessAccumulator, AccessSums
from tests.traces.written_traces import BASE, TraceWriter, lanes_by, make_buffer, make_instruction

ARRAY = make_buffer("a", 1 << 16)


def sum_up(trace: Trace) -> AccessSums:
    accumulator = AccessAccumulator(trace.buffers, footprint_sectors=1 << 20)
    accumulator.add(PieceRows(trace))
    return accumulator.finish()


def sum_one(lanes, *, width: int = 4, space: Space = Space.GLOBAL):
    trace = TraceWriter((make_instruction(0, width=width, space=space),), (ARRAY,)).access(0, lanes).finish()
    return sum_up(trace).instructions[0]


@pytest.mark.parametrize(
    ("lanes", "width", "touched", "pattern"),
    [
        (lanes_by(4), 4, (1, 4, 128, 4), LanePattern.CONTIGUOUS),
        (lanes_by(4, base=BASE + 4), 4, (2, 5, 128, 4), LanePattern.CONTIGUOUS),
        (lanes_by(0), 4, (1, 1, 4, 1), LanePattern.BROADCAST),
        (lanes_by(8), 4, (2, 8, 128, 4), LanePattern.STRIDED),
        (lanes_by(-4, base=BASE + 1024), 4, (2, 5, 128, 4), LanePattern.STRIDED),
        (lanes_by(128), 4, (32, 32, 128, 4), LanePattern.STRIDED),
        (lanes_by(16), 16, (4, 16, 512, 16), LanePattern.CONTIGUOUS),
        (lanes_by(1), 1, (1, 1, 32, 1), LanePattern.CONTIGUOUS),
        ([BASE], 4, (1, 1, 4, 1), LanePattern.SINGLE),
        ([BASE + 126], 4, (2, 2, 4, 1), LanePattern.SINGLE),
        ([*lanes_by(4, count=16), *lanes_by(4, base=BASE + 4096, count=16)], 4, (2, 4, 128, 4), LanePattern.CONTIGUOUS_PIECES),
        ([BASE] * 16 + [BASE + 4096] * 16, 4, (2, 2, 8, 1), LanePattern.BROADCAST_PIECES),
        ([*lanes_by(64, count=16), *lanes_by(64, base=BASE + 4096, count=16)], 4, (16, 32, 128, 4), LanePattern.STRIDED_PIECES),
        ({0: BASE, 2: BASE + 8, 3: BASE + 12, 31: BASE + 124}, 4, (1, 2, 16, 1), LanePattern.CONTIGUOUS),
        ([BASE, BASE + 400, BASE + 40, BASE + 8000, BASE + 4], 4, (3, 4, 20, 1), LanePattern.SCATTERED),
    ],
)  # fmt: skip
def test_requests_written_by_hand(lanes, width, touched, pattern):
    """Touched: lines, sectors, distinct bytes, and the fewest sectors for these."""
    group = sum_one(lanes, width=width)
    totals = group.totals
    assert (totals.lines, totals.sectors, totals.used_bytes, totals.ideal_sectors) == touched
    assert group.patterns == ((pattern, 1),)
    assert totals.line_histogram[touched[0]] == totals.sector_histogram[touched[1]] == totals.requests == 1


def test_a_stride_is_found_between_lanes_that_are_apart():
    assert sum_one({1: BASE, 3: BASE + 96, 4: BASE + 144}).strides == ((48, 1),)


def test_a_uniform_request_has_two_lanes_at_least():
    assert sum_one(lanes_by(0)).totals.uniform == 1
    assert sum_one([BASE]).totals.uniform == 0


def test_local_memory_is_interleaved():
    same_offset = sum_one([16] * 32, space=Space.LOCAL).totals
    assert (same_offset.lines, same_offset.sectors, same_offset.used_bytes) == (1, 4, 128)
    apart = sum_one([4 * lane for lane in range(32)], space=Space.LOCAL).totals
    assert (apart.lines, apart.sectors) == (32, 32)
    wide = sum_one([0] * 32, width=16, space=Space.LOCAL).totals
    assert (wide.lines, wide.sectors, wide.used_bytes) == (4, 16, 512)
    one_lane = sum_one({5: 0}, width=8, space=Space.LOCAL).totals
    assert (one_lane.lines, one_lane.sectors, one_lane.used_bytes) == (2, 2, 8)


def test_loads_stores_and_arrays_are_told_apart():
    second = make_buffer("b", 4096, base=BASE + (1 << 16))
    writer = TraceWriter((make_instruction(0), make_instruction(1, AccessKind.STORE)), (ARRAY, second))
    writer.access(0, lanes_by(4)).access(0, lanes_by(4, base=second.base)).access(1, lanes_by(4))
    writer.access(0, [BASE, second.base + 64, BASE + 4, BASE - 4, second.base + 4096])
    sums = sum_up(writer.finish())
    assert [(one.instruction, one.totals.requests) for one in sums.instructions] == [(0, 3), (1, 1)]
    arrays = {(one.instruction, one.array): one.totals for one in sums.arrays}
    assert {key: totals.requests for key, totals in arrays.items()} == {(0, -1): 1, (0, 0): 2, (0, 1): 2, (1, 0): 1}
    assert arrays[0, 0].lanes == 34
    assert arrays[0, -1].lanes == 2
    assert sum(one.totals.sectors for one in sums.arrays) == sum(one.totals.sectors for one in sums.instructions)
    assert sums.footprints == (4, 4)


def test_pieces_and_chunks_add_up_to_the_whole():
    generator = np.random.default_rng(3)
    writer = TraceWriter((make_instruction(0), make_instruction(1, AccessKind.STORE, width=8)), (ARRAY,))
    pieces = []
    whole = TraceWriter(writer.instructions, (ARRAY,))
    for block in range(3):
        piece = TraceWriter(writer.instructions, (ARRAY,))
        for _ in range(20):
            lanes = (BASE + 8 * generator.integers(0, 500, size=generator.integers(1, 33))).tolist()
            number = int(generator.integers(0, 2))
            for target in (piece, whole):
                target.access(number, lanes, block=block)
        pieces.append(piece.finish())
    accumulator = AccessAccumulator((ARRAY,), footprint_sectors=1 << 20)
    for piece in pieces:
        accumulator.add(PieceRows(piece))
    found, expected = accumulator.finish(), sum_up(whole.finish())
    assert found.footprints == expected.footprints
    for one, other in zip(
        (*found.instructions, *found.arrays), (*expected.instructions, *expected.arrays), strict=True
    ):
        assert one.patterns == other.patterns
        assert one.strides == other.strides
        assert one.totals.sectors == other.totals.sectors
        assert one.totals.sector_histogram.tolist() == other.totals.sector_histogram.tolist()


def test_two_lanes_side_by_side_are_contiguous_whatever_lies_between():
    """Lanes 0 and 3, and 0, 2 and 7, touch words one behind the other; two that do not are strided."""
    accesses = [([0, 3], [0, 4]), ([0, 2, 7], [0, 4, 8]), ([0, 3], [0, 100]), ([0, 3, 4], [0, 100, 4])]
    writer = TraceWriter((make_instruction(0),))
    for lanes, addresses in accesses:
        writer.access(0, dict(zip(lanes, addresses, strict=True)))
    found = measure_requests(view_lanes(writer.finish().accesses), np.arange(4))
    assert [LanePattern(one).name for one in found.pattern.tolist()] == [
        "CONTIGUOUS",
        "CONTIGUOUS",
        "STRIDED",
        "SCATTERED",
    ]
    assert found.stride_bytes.tolist()[:3] == [4, 4, 100]
