"""Predicted hits against a simulation of the same caches, one reference after the other; waves and residency."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.cache_hits import CacheHits, WaveCollector, WaveRequests, follow_waves
from gpa_lsp.execution.traces.model import TraceContext
from tests.conftest import examples
from tests.traces.written_traces import BASE, TraceWriter, lanes_by, make_buffer, make_instruction

ARRAY = make_buffer("a", 1 << 20)
LOAD, STORE, CACHED_IN_L2, ATOMIC = range(4)
INSTRUCTIONS = (
    make_instruction(LOAD, text="ld.global.f32 %f1, [%rd1];"),
    make_instruction(STORE, AccessKind.STORE),
    make_instruction(CACHED_IN_L2, text="ld.relaxed.gpu.global.f32 %f1, [%rd1];"),
    make_instruction(ATOMIC, AccessKind.ATOMIC),
)


def collect(trace: Trace, context: TraceContext, *, most: int = 1 << 20) -> WaveRequests:
    collector = WaveCollector(context, most_references=most)
    collector.add(PieceRows(trace))
    return collector.finish()


def predict(trace: Trace, context: TraceContext) -> CacheHits:
    return follow_waves(collect(trace, context), context, trace.buffers)[0]


def list_lines(found: WaveRequests, order: np.ndarray) -> list[int]:
    """Lines of requests to one line each, in some order."""
    lists = found.lists
    return ((lists.sector[lists.firsts[lists.number[order]]] >> 2) - BASE // 128).tolist()


def list_groups(found: WaveRequests) -> list[int]:
    """The wave and SM of each request, in their order."""
    return np.repeat(np.arange(found.groups), np.diff(found.ends, prepend=0)).tolist()


class SectorCache:
    """LRU over lines; each holds the sectors that were brought in."""

    def __init__(self, lines: int) -> None:
        self.most = lines
        self.lines: OrderedDict[int, set[int]] = OrderedDict()

    def access(self, line: int, sectors: set[int]) -> int:
        """Sectors that were there."""
        held = self.lines.pop(line, set())
        if len(self.lines) >= self.most:
            self.lines.popitem(last=False)
        self.lines[line] = held | sectors
        return len(held & sectors)


requests = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 1),
        st.sampled_from([LOAD, LOAD, LOAD, STORE, CACHED_IN_L2, ATOMIC]),
        st.lists(st.integers(0, 60), min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=40,
)


def simulate(rows, context: TraceContext) -> tuple[int, int, int, int]:
    """Load sectors looked up in L1 and found, and the same of L2; round robin, wave by wave."""
    turns: dict[tuple[int, int], int] = {}
    ordered = []
    per_wave = context.sm_count * context.blocks_per_sm
    for block, warp, number, places in rows:
        turn = turns.setdefault((block, warp), 0)
        turns[block, warp] += 1
        slot = block % per_wave
        key = (block // per_wave, turn, slot // context.sm_count, slot % context.sm_count, warp)
        ordered.append((key, number, {(BASE + 32 * place) // 32 for place in places}))
    l1 = {}
    l2 = SectorCache(context.l2_bytes // 128)
    counts = [0, 0, 0, 0]
    for key, number, sectors in sorted(ordered, key=lambda one: one[0]):
        cache = l1.setdefault((key[0], key[3]), SectorCache(context.l1_bytes // 128))
        for line in sorted({sector // 4 for sector in sectors}):
            parts = {sector for sector in sectors if sector // 4 == line}
            if number == LOAD:
                held = cache.lines.get(line, set()) & parts
                counts[0] += len(parts)
                counts[1] += cache.access(line, parts)
                parts = parts - held
            if not parts:
                continue
            hits = l2.access(line, parts)
            if number in (LOAD, CACHED_IN_L2):
                counts[2] += len(parts)
                counts[3] += hits
    return tuple(counts)


@examples(50)
@given(requests, st.sampled_from([2, 4, 8]))
def test_hits_are_those_of_a_simulation(rows, lines):
    context = TraceContext(sm_count=2, blocks_per_sm=2, l1_bytes=128 * lines, l2_bytes=256 * lines)
    writer = TraceWriter(INSTRUCTIONS, (ARRAY,), grid=(6, 1, 1))
    # every SM is whole: all blocks of the grid have a row
    rows = [*((block, 0, LOAD, [0]) for block in range(6)), *rows]
    for block, warp, number, places in rows:
        writer.access(number, [BASE + 32 * place for place in places], block=block, warp=warp)
    found = predict(writer.finish(), context)
    sums = tuple(found.sum_column(name) for name in ("l1_sectors", "l1_hits", "l2_sectors", "l2_hits"))
    assert sums == simulate(rows, context)


def test_a_line_that_fits_hits_and_one_that_does_not_misses():
    writer = TraceWriter(INSTRUCTIONS, (ARRAY,))
    for _ in range(2):
        for line in range(4):
            writer.access(LOAD, lanes_by(4, base=BASE + 128 * line))
    trace = writer.finish()
    fits = predict(trace, TraceContext(sm_count=1, blocks_per_sm=1, l1_bytes=512, l2_bytes=512))
    assert (fits.l1_hit_ratio, fits.sum_column("l2_sectors"), fits.l2_hit_ratio) == (0.5, 16, 0.0)
    thrashes = predict(trace, TraceContext(sm_count=1, blocks_per_sm=1, l1_bytes=384, l2_bytes=512))
    assert (thrashes.l1_hit_ratio, thrashes.l2_hit_ratio) == (0.0, 0.5)


def test_a_sector_misses_though_its_line_is_there():
    writer = TraceWriter(INSTRUCTIONS, (ARRAY,))
    writer.access(LOAD, [BASE]).access(LOAD, [BASE + 32]).access(LOAD, [BASE])
    found = predict(writer.finish(), TraceContext(sm_count=1, blocks_per_sm=1, l1_bytes=1024))
    assert (found.sum_column("l1_sectors"), found.sum_column("l1_hits")) == (3, 1)
    assert found.l2_hit_ratio is None


def test_unknown_caches_predict_nothing():
    found = predict(
        TraceWriter(INSTRUCTIONS, (ARRAY,)).access(LOAD, [BASE]).finish(), TraceContext(sm_count=1, blocks_per_sm=1)
    )
    assert found.l1_hit_ratio is None
    assert found.l2_hit_ratio is None


def test_local_memory_of_two_warps_lies_apart():
    local = (make_instruction(0, space=Space.LOCAL),)
    writer = TraceWriter(local, ())
    for warp in (0, 1):
        writer.access(0, [0] * 32, warp=warp).access(0, [0] * 32, warp=warp)
    found = predict(writer.finish(), TraceContext(sm_count=1, blocks_per_sm=1, l1_bytes=1 << 14, l2_bytes=1 << 16))
    assert (found.sum_column("l1_sectors"), found.sum_column("l1_hits")) == (16, 8)


def write_blocks(blocks: range, grid: int) -> Trace:
    writer = TraceWriter(INSTRUCTIONS, (ARRAY,), grid=(grid, 1, 1))
    for block in blocks:
        writer.access(LOAD, lanes_by(4, base=BASE + 128 * block), block=block)
    return writer.finish()


def test_blocks_go_to_sms_in_turn_and_wave_by_wave():
    context = TraceContext(sm_count=2, blocks_per_sm=2)
    found = collect(write_blocks(range(7), 7), context)
    assert list_lines(found, found.order) == [0, 2, 1, 3, 4, 6, 5]
    assert list_groups(found) == [0, 0, 1, 1, 2, 2, 3]
    assert (found.groups, found.has_whole_sms, found.is_whole) == (4, True, True)
    assert list_lines(found, found.shared_order) == [0, 1, 2, 3, 4, 5, 6]


def test_a_sample_without_a_whole_sm_stands_for_sms():
    context = TraceContext(sm_count=4, blocks_per_sm=2)
    found = collect(write_blocks(range(0, 40, 13), 40), context)
    assert not found.has_whole_sms
    assert list_groups(found) == [0, 0, 1, 1]


@pytest.mark.parametrize(("most", "blocks"), [(64, 16), (32, 8), (16, 4), (8, 2)])
def test_too_many_references_cost_waves_then_sms(most, blocks):
    context = TraceContext(sm_count=4, blocks_per_sm=2, l1_bytes=1024, l2_bytes=4096)
    found = collect(write_blocks(range(16), 16), context, most=most)
    assert found.lists.sizes.sum() == 4 * blocks
    assert found.is_whole == (blocks == 16)
    assert found.groups == blocks // 2
    assert found.kept_ratio == {16: 1, 8: 1, 4: 0.5, 2: 0.25}[blocks]
    hits, _ = follow_waves(found, context, (ARRAY,))
    assert hits.l2_bytes == int(4096 * found.kept_ratio)
    assert any("left out" in one for one in hits.assumptions) == (blocks < 16)


def test_whole_sms_are_kept_of_a_piece_that_is_too_large():
    """Blocks are dropped whole and before their references are listed, so what is left is not cut off in the middle."""
    writer = TraceWriter(INSTRUCTIONS, (ARRAY,), grid=(8, 1, 1))
    for step in range(300):
        for block in range(8):
            writer.access(LOAD, lanes_by(4, base=BASE + 128 * (step % 7)), block=block)
    found = collect(writer.finish(), TraceContext(sm_count=4, blocks_per_sm=2), most=5000)
    assert (found.kept_ratio, found.has_whole_sms, found.is_whole) == (0.5, True, False)
    assert found.lists.sizes.sum() == 300 * 4 * 4
    assert found.blocks_per_sm == 2


def test_nothing_is_predicted_of_nothing():
    context = TraceContext(sm_count=4, blocks_per_sm=2, l1_bytes=1024, l2_bytes=4096)
    found = collect(TraceWriter(INSTRUCTIONS, (ARRAY,)).finish(), context)
    assert len(found.order) == 0
    assert follow_waves(found, context, ())[0].l1_hit_ratio is None
