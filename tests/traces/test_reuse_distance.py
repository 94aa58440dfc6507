"""Reuse distances against an LRU stack, and histograms of written traces."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.accesses.lane_addresses import INFINITE, NOT_COUNTED
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.accesses.references import measure_distances
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.keyed_sums import KeyedSums
from gpa_lsp.execution.traces.model import Granularity
from gpa_lsp.execution.traces.reuse_distance import INFINITE_BIN, ReuseAccumulator, ReuseDistances, Scope
from tests.conftest import examples
from tests.traces.written_traces import BASE, TraceWriter, lanes_by, make_buffer, make_instruction

ARRAY = make_buffer("a", 1 << 16)


def find_by_stack(units, groups, erases):
    """An LRU stack, one reference after the other."""
    distances, stack, group = [], [], None
    for unit, now, erase in zip(units, groups, erases, strict=True):
        if now != group:
            stack, group = [], now
        if erase:
            if unit in stack:
                stack.remove(unit)
            distances.append(NOT_COUNTED)
            continue
        if unit in stack:
            distances.append(len(stack) - 1 - stack.index(unit))
            stack.remove(unit)
        else:
            distances.append(INFINITE)
        stack.append(unit)
    return distances


def find_streaming(units, groups, erases):
    """First uses whose unit is not used again before it is erased or the sequence ends."""
    found = []
    for place, distance in enumerate(find_by_stack(units, groups, erases)):
        later = [
            erases[other]
            for other in range(place + 1, len(units))
            if units[other] == units[place] and groups[other] == groups[place]
        ]
        found.append(distance == INFINITE and (not later or later[0]))
    return found


references = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), st.booleans()), max_size=60)


@examples(60)
@given(references, st.integers(0, 1 << 58))
def test_distances_are_those_of_an_lru_stack(rows, offset):
    rows = sorted(rows, key=lambda row: row[1])
    units, groups, erases = ([row[column] for row in rows] for column in range(3))
    found = measure_distances(
        np.array(units, dtype=np.int64) * 37 + offset,
        np.array(groups, dtype=np.int64),
        np.array(erases, dtype=np.bool_),
    )
    assert found.distance.tolist() == find_by_stack(units, groups, erases)
    assert found.is_streaming.tolist() == find_streaming(units, groups, erases)


def test_the_papers_example():
    units = np.frombuffer(b"ABCCDEFAAAB", dtype=np.uint8).astype(np.int64)
    found = measure_distances(units, np.zeros(len(units), dtype=np.int64))
    assert found.distance[-1] == 5


def measure(trace: Trace, *, most: int = 1 << 20, **changes) -> ReuseDistances:
    question = {"scope": Scope.BLOCK, "granularity": Granularity.LINE, **changes}
    accumulator = ReuseAccumulator(trace.buffers, most_references=most, **question)
    accumulator.add(PieceRows(trace))
    return accumulator.finish()


def write_two_blocks() -> Trace:
    """Each block: line 0, line 1, a store to line 0, line 0 again, by two warps in turn."""
    writer = TraceWriter((make_instruction(0), make_instruction(1, AccessKind.STORE)), (ARRAY,), grid=(2, 1, 1))
    for block in (0, 1):
        for number, line in ((0, 0), (0, 1), (1, 0), (0, 0)):
            for warp in (0, 1):
                writer.access(number, lanes_by(4, base=BASE + 128 * line), block=block, warp=warp)
    return writer.finish()


def test_warps_go_round_robin_and_blocks_apart():
    found = measure(write_two_blocks())
    # per block: 0 0 1 1 0 0 0 0 -> inf 0 inf 0 1 0 0 0
    assert found.sequences == 2
    assert found.total.infinite == 4
    assert found.total.bins[0] == 10
    assert found.total.bins[1] == 2
    assert found.total.references == 16
    assert found.total.streaming == 0


def test_stores_leave_nothing_in_l1():
    found = measure(write_two_blocks(), is_l1_only=True)
    # per block: 0 0 1 1 0 0 -> inf 0 inf 0 1 0
    assert found.total.references == 12
    assert found.total.bins[1] == 2


def test_warps_of_their_own():
    found = measure(write_two_blocks(), scope=Scope.WARP)
    # per warp: 0 1 0 0 -> inf inf 1 0
    assert found.sequences == 4
    assert found.total.infinite == 8
    assert found.total.bins[:2].tolist() == [4, 4]


def test_elements_are_words_and_groups_add_up():
    found = measure(write_two_blocks(), granularity=Granularity.ELEMENT)
    assert found.total.references == 16 * 32
    assert found.total.infinite == 4 * 32
    assert sum(group.histogram.references for group in found.groups) == found.total.references
    assert {(group.instruction, group.array) for group in found.groups} == {(0, 0), (1, 0)}


def test_streaming_accesses():
    writer = TraceWriter((make_instruction(0),), (ARRAY,))
    for line in range(8):
        writer.access(0, lanes_by(4, base=BASE + 128 * line))
    found = measure(writer.finish())
    assert found.total.streaming == found.total.infinite == found.total.references == 8
    assert found.total.mean_distance is None


def test_blocks_beyond_the_limit_are_left_out_whole():
    writer = TraceWriter((make_instruction(0),), (ARRAY,), grid=(3, 1, 1))
    for block in range(3):
        for step in range(5000):
            writer.access(0, [BASE + 128 * (step % 100)], block=block)
    trace = writer.finish()
    whole, part = measure(trace), measure(trace, most=5000)
    assert whole.is_whole
    assert (whole.sequences, whole.total.references) == (3, 15_000)
    assert not part.is_whole
    assert (part.sequences, part.total.references, part.total.infinite) == (1, 5000, 100)


def test_pieces_beyond_the_limit_are_left_out():
    accumulator = ReuseAccumulator((ARRAY,), scope=Scope.BLOCK, granularity=Granularity.LINE, most_references=8)
    for _ in range(2):
        accumulator.add(PieceRows(write_two_blocks()))
    found = accumulator.finish()
    assert not found.is_whole
    assert found.total.references == 16


@examples(60)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1), st.lists(st.integers(0, 40), min_size=1)),
        min_size=1,
        max_size=25,
    ),
    st.booleans(),
    st.sampled_from(list(Granularity)),
)
def test_blocks_against_an_lru_stack(rows, is_l1_only, granularity):
    writer = TraceWriter((make_instruction(0), make_instruction(1, AccessKind.STORE)), (ARRAY,), grid=(2, 1, 1))
    turns: dict[tuple[int, int], int] = {}
    requests = []
    for block, warp, number, places in rows:
        addresses = [BASE + 12 * place for place in places[:32]]
        writer.access(number, addresses, block=block, warp=warp)
        turn = turns.setdefault((block, warp), 0)
        turns[block, warp] += 1
        requests.append((block, turn, warp, number, addresses))
    size = {Granularity.LINE: 128, Granularity.ELEMENT: 4}[granularity]
    units, groups, erases = [], [], []
    for block, _, _, number, addresses in sorted(requests, key=lambda one: one[:3]):
        if number == 1 and is_l1_only:
            continue
        for unit in sorted({address // size for address in addresses}):
            units.append(unit)
            groups.append(block)
            erases.append(False)
    expected = find_by_stack(units, groups, erases)
    found = measure(writer.finish(), is_l1_only=is_l1_only, granularity=granularity).total
    bins = np.zeros(INFINITE_BIN + 1, dtype=np.int64)
    for distance in expected:
        bins[INFINITE_BIN if distance == INFINITE else distance.bit_length()] += 1
    assert found.bins.tolist() == bins.tolist()
    assert found.streaming == sum(find_streaming(units, groups, erases))
    assert found.distance_sum == sum(distance for distance in expected if distance != INFINITE)


def test_keys_beyond_the_limit_are_summed_together():
    sums = KeyedSums(1, most_keys=4)
    sums.add(np.array([1, 2, 2]), np.ones((3, 1), dtype=np.int64))
    sums.add(np.array([2, 3, 4, 5, 6, 6]), np.ones((6, 1), dtype=np.int64))
    sums.add(np.array([6, 1]), np.ones((2, 1), dtype=np.int64))
    assert len(sums.keys) <= 4
    assert sums.sums.sum() == 11
    counts = dict(zip(sums.keys.tolist(), sums.sums[:, 0].tolist(), strict=True))
    assert (counts[1], counts[2]) == (2, 3)
