"""CUDAAdvisor's own definitions, against a plain restatement of what its analyser does."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.traces.cache_hits import count_caching_warps
from gpa_lsp.execution.traces.paper_answer import (
    PaperDivergence,
    advise_paper_bypassing,
    measure_paper_divergence,
    measure_paper_reuse,
)
from gpa_lsp.execution.traces.reuse_distance import Scope
from tests.conftest import examples
from tests.traces.written_traces import BASE, TraceWriter, lanes_by, make_instruction

INSTRUCTIONS = (make_instruction(0), make_instruction(1, AccessKind.STORE), make_instruction(2, width=16))


def group_by_lane(rows, line_bytes: int) -> dict[int, int]:
    """Lines → groups, lane by lane: the k-th load of a lane at an instruction belongs to group k."""
    done: dict[tuple[int, int, int], int] = {}
    groups: dict[tuple[int, int, int], set[int]] = {}
    for warp, number, lanes in rows:
        if number == 1:
            continue
        for lane, address in lanes.items():
            key = (warp, number, lane)
            done[key] = done.get(key, 0) + 1
            groups.setdefault((warp, number, done[key]), set()).add(address // line_bytes)
    found: dict[int, int] = {}
    for lines in groups.values():
        found[len(lines)] = found.get(len(lines), 0) + 1
    return found


def measure_by_stack(rows) -> tuple[int, float, int]:
    """Streaming intervals, the mean as coded, and entries, per warp."""
    streaming, total, entries = 0, 0, 0
    for warp in sorted({row[0] for row in rows}):
        stack: list[int] = []
        once: dict[int, int] = {}
        for _, number, lanes in (row for row in rows if row[0] == warp):
            for lane in sorted(lanes):
                address = lanes[lane]
                entries += 1
                if number == 1:
                    if address in stack:
                        stack.remove(address)
                    streaming += once.pop(address, None) is not None
                    total -= 2
                elif address in stack:
                    total += len(stack) - 1 - stack.index(address)
                    stack.remove(address)
                    stack.append(address)
                    once[address] += 1
                else:
                    total += 1
                    stack.append(address)
                    once[address] = 0
        streaming += sum(1 for count in once.values() if count == 0)
    return streaming, total / entries, entries


requests = st.lists(
    st.tuples(
        st.integers(0, 1), st.integers(0, 2), st.dictionaries(st.integers(0, 31), st.integers(0, 40), min_size=1, max_size=8)
    ),
    min_size=1,
    max_size=20,
)  # fmt: skip


def write(rows):
    writer = TraceWriter(INSTRUCTIONS, block_threads=(64, 1, 1))
    for warp, number, lanes in rows:
        writer.access(number, lanes, warp=warp)
    return writer.finish()


@examples(40)
@given(requests, st.sampled_from([32, 128]))
def test_divergence_is_that_of_the_analyser(rows, line_bytes):
    rows = [(warp, number, {lane: BASE + 20 * place for lane, place in lanes.items()}) for warp, number, lanes in rows]
    found = measure_paper_divergence(write(rows), line_bytes=line_bytes)
    expected = group_by_lane(rows, line_bytes)
    assert {lines: count for lines, count in enumerate(found.groups.tolist()) if count} == expected


@examples(40)
@given(requests)
def test_reuse_is_that_of_the_analyser(rows):
    rows = [(warp, number, {lane: BASE + 4 * place for lane, place in lanes.items()}) for warp, number, lanes in rows]
    found = measure_paper_reuse(write(rows))
    streaming, mean, entries = measure_by_stack(rows)
    assert found.entries == entries
    assert found.mean_distance == pytest.approx(mean)
    assert found.bins.sum() == sum(len(lanes) for _, number, lanes in rows if number != 1)
    assert found.streaming == streaming


def test_the_width_is_not_looked_at():
    trace = TraceWriter(INSTRUCTIONS).access(2, lanes_by(16)).access(2, [BASE + 120]).finish()
    assert measure_paper_divergence(trace).ratios == {1: 0.5, 4: 0.5}
    assert measure_paper_divergence(trace).degree == 2.5


def test_lanes_that_execute_apart_are_one_group():
    trace = TraceWriter(INSTRUCTIONS).access(0, {0: BASE}).access(0, {1: BASE + 128}).finish()
    assert measure_paper_divergence(trace).ratios == {2: 1.0}


def test_stores_erase_and_first_loads_are_one():
    writer = TraceWriter(INSTRUCTIONS)
    for number, address in ((0, 0), (0, 4), (0, 0), (1, 4), (0, 0), (0, 4)):
        writer.access(number, [BASE + address])
    found = measure_paper_reuse(writer.finish())
    # 1, 1, 1 (one address between), -2, 0, 1 (erased: a first load again)
    assert found.mean_distance == pytest.approx((1 + 1 + 1 - 2 + 0 + 1) / 6)
    assert found.bins[:2].tolist() == [1, 4]
    assert found.streaming == 2
    assert found.mean_of_addresses == pytest.approx(((1 + 1 + 0) / 3 + (1 + 1) / 2) / 2)
    # by the text ∞, ∞, 1, 0, ∞: no store is in it, and no mean is negative
    assert (found.text_bins[:2].tolist(), int(found.text_bins.sum()), found.text_infinite) == ([1, 1], 2, 3)
    assert found.text_mean == 0.5


def test_warps_and_blocks_are_sequences_of_their_own():
    writer = TraceWriter(INSTRUCTIONS, block_threads=(64, 1, 1))
    for warp in (0, 1):
        writer.access(0, [BASE], warp=warp)
    trace = writer.finish()
    assert measure_paper_reuse(trace).bins[:2].tolist() == [0, 2]
    assert measure_paper_reuse(trace, scope=Scope.BLOCK).bins[:2].tolist() == [1, 1]


def test_shared_memory_is_not_global_memory_at_the_same_number():
    writer = TraceWriter((make_instruction(0), make_instruction(1, space=Space.SHARED)))
    writer.access(0, [64]).access(1, [64])
    assert measure_paper_reuse(writer.finish()).bins[:2].tolist() == [0, 2]


def test_equation_1():
    assert (
        count_caching_warps(l1_bytes=16384, mean_distance=3.0, line_bytes=128, mean_divergence=2.0, blocks_per_sm=3)
        == 7
    )
    with pytest.raises(ValueError, match="footprint"):
        count_caching_warps(l1_bytes=16384, mean_distance=0.0, line_bytes=128, mean_divergence=2.0, blocks_per_sm=3)


def test_the_papers_bypassing_is_cut_to_the_blocks_warps():
    writer = TraceWriter(INSTRUCTIONS)
    for _ in range(2):
        writer.access(0, lanes_by(4))
    trace = writer.finish()
    reuse = measure_paper_reuse(trace)
    assert reuse.mean_distance == (32 * 1 + 32 * 31) / 64
    found = advise_paper_bypassing(
        measure_paper_divergence(trace), reuse, l1_bytes=16384, blocks_per_sm=1, warps_per_block=4
    )
    assert found is not None
    assert found.equation_warps == math.floor(16384 / (16 * 128))
    assert found.warps == 4
    empty = PaperDivergence(line_bytes=128, groups=measure_paper_divergence(TraceWriter(INSTRUCTIONS).finish()).groups)
    assert advise_paper_bypassing(empty, reuse, l1_bytes=16384, blocks_per_sm=1, warps_per_block=4) is None
