"""Wavefronts of shared memory, by hand and against a loop over lanes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.traces.access_sums import BankAccumulator, BankConflicts
from gpa_lsp.execution.traces.ask import answer_questions
from gpa_lsp.execution.traces.model import TraceContext
from tests.conftest import examples
from tests.traces.analysing import analyse_trace
from tests.traces.written_traces import TraceWriter, lanes_by, make_instruction


def count_by_lane(lanes: dict[int, int], width: int, kind: AccessKind) -> tuple[int, int]:
    """Passes, and passes without conflicts, one part of the warp after the other."""
    size = {16: 8, 8: 16}.get(width, 32)
    apart = count_parts(lanes, width, kind, size)
    paired = any(all(lanes.get(lane ^ step, place) == place for lane, place in lanes.items()) for step in (1, 2))
    if kind is AccessKind.LOAD and size < 32 and paired:
        return min(count_parts(lanes, width, kind, 2 * size), apart, key=lambda counts: (counts[0], -counts[1]))
    return apart


def count_parts(lanes: dict[int, int], width: int, kind: AccessKind, size: int) -> tuple[int, int]:
    taken = ideal = 0
    for first in range(0, 32, size):
        part = [lanes[lane] for lane in range(first, first + size) if lane in lanes]
        if not part:
            continue
        words = [address // 4 + word for address in part for word in range(max(1, width // 4))]
        counted = words if kind is AccessKind.ATOMIC else set(words)
        taken += max(sum(1 for word in counted if word % 32 == bank) for bank in range(32))
        ideal += 1
    return taken, ideal


def measure(*requests, width: int = 4, kind: AccessKind = AccessKind.LOAD) -> BankConflicts:
    writer = TraceWriter((make_instruction(0, kind, Space.SHARED, width),))
    for lanes in requests:
        writer.access(0, lanes)
    accumulator = BankAccumulator()
    accumulator.add(PieceRows(writer.finish()))
    (found,) = accumulator.finish()
    return found


@pytest.mark.parametrize(
    ("lanes", "width", "wavefronts", "ideal"),
    [
        (lanes_by(4, base=0), 4, 1, 1),
        (lanes_by(8, base=0), 4, 2, 1),
        (lanes_by(128, base=0), 4, 32, 1),
        (lanes_by(132, base=0), 4, 1, 1),
        (lanes_by(0, base=64), 4, 1, 1),
        (lanes_by(1, base=0), 1, 1, 1),
        (lanes_by(2, base=0), 2, 1, 1),
        (lanes_by(8, base=0), 8, 2, 2),
        (lanes_by(16, base=0), 8, 4, 2),
        (lanes_by(16, base=0), 16, 4, 4),
        (lanes_by(32, base=0), 16, 8, 4),
        (lanes_by(8, base=0, count=16), 8, 1, 1),
        ([0, 128, 0, 128], 4, 2, 1),
        ({31: 4}, 16, 1, 1),
        (lanes_by(0, base=64), 8, 1, 1),
        (lanes_by(0, base=64), 16, 2, 2),
        (dict.fromkeys((0, 9, 31), 16), 16, 2, 2),
        ({lane: 256 * lane for lane in (0, 5)}, 8, 2, 1),
    ],
)
def test_requests_written_by_hand(lanes, width, wavefronts, ideal):
    found = measure(lanes, width=width)
    assert (found.wavefronts, found.ideal_wavefronts) == (wavefronts, ideal)
    assert found.histogram[wavefronts] == found.requests == 1


def test_atomics_on_one_word_take_a_pass_each():
    assert measure(lanes_by(0, base=0), kind=AccessKind.ATOMIC).wavefronts == 32
    assert measure(lanes_by(4, base=0), kind=AccessKind.REDUCTION).wavefronts == 1


QUARTERS = [lane // 8 for lane in range(32)]
WIDE_LOADS = {
    "one address": (lanes_by(0, base=0), 16, 2, 2),
    "two addresses, half a warp each": ([64 * (lane // 16) for lane in range(32)], 16, 2, 2),
    "four addresses, quarters in the same banks": ([256 * quarter for quarter in QUARTERS], 16, 4, 4),
    "eight addresses 32 bytes apart, in each quarter": ([lane % 8 * 32 for lane in range(32)], 16, 8, 4),
    "sixteen addresses 32 bytes apart, in each half": ([lane % 16 * 32 for lane in range(32)], 16, 8, 4),
    "eight addresses, each read by neighbours": ([lane // 2 % 8 * 16 for lane in range(32)], 16, 2, 2),
    "dense": (lanes_by(16, base=0), 16, 4, 4),
}
"""Reads of published kernels: addresses as SASS computes them → wavefronts and ideal ones of their ``LDS.128`` in Nsight Compute's counters."""


@pytest.mark.parametrize("name", WIDE_LOADS)
def test_wide_loads_as_they_were_measured(name):
    lanes, width, wavefronts, ideal = WIDE_LOADS[name]
    found = measure(lanes, width=width)
    assert (found.wavefronts, found.ideal_wavefronts) == (wavefronts, ideal)


def test_neighbours_must_agree_throughout_the_warp():
    first = [lane // 2 * 16 for lane in range(16)]
    second = [lane // 4 * 32 + lane % 2 * 16 for lane in range(16)]
    assert measure([*first, *first], width=16).wavefronts == measure([*second, *second], width=16).wavefronts == 2
    assert measure([*first, *second], width=16).wavefronts == 4


def test_joined_parts_meet_in_the_same_banks():
    rows = [(0, 128, 16, 144)[lane // 4 % 4] for lane in range(32)]
    found = measure(rows, width=16)
    assert (found.wavefronts, found.ideal_wavefronts) == (4, 2)


@pytest.mark.parametrize("kind", [AccessKind.STORE, AccessKind.ATOMIC])
def test_only_loads_are_joined(kind):
    one_of_each_quarter = {lane: 2 * lane for lane in range(0, 32, 8)}
    assert measure(one_of_each_quarter, width=16).wavefronts == 2
    assert measure(one_of_each_quarter, width=16, kind=kind).wavefronts == 4
    assert measure(one_of_each_quarter, width=8).wavefronts == 1
    assert measure(one_of_each_quarter, width=8, kind=kind).wavefronts == 2


@pytest.mark.parametrize(("width", "step", "wavefronts"), [(8, 8, 2), (8, 40, 2), (16, 16, 4)])
def test_dense_stores_as_they_were_measured(width, step, wavefronts):
    found = measure(lanes_by(step, base=0), width=width, kind=AccessKind.STORE)
    assert (found.wavefronts, found.ideal_wavefronts) == (wavefronts, wavefronts)


@examples(50)
@given(
    st.lists(
        st.tuples(
            st.sets(st.integers(0, 31), min_size=1),
            st.lists(st.integers(0, 40), min_size=32, max_size=32),
            st.sampled_from([0, 1, 2, 31]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([AccessKind.LOAD, AccessKind.STORE, AccessKind.ATOMIC]),
)
def test_requests_against_a_loop(drawn, width, kind):
    """Lanes that differ in the drawn bits only have the same address."""
    requests = [{lane: width * places[lane & ~same] for lane in lanes} for lanes, places, same in drawn]
    found = measure(*requests, width=width, kind=kind)
    expected = np.sum([count_by_lane(lanes, width, kind) for lanes in requests], axis=0)
    assert [found.wavefronts, found.ideal_wavefronts] == expected.tolist()
    assert found.histogram.sum() == found.requests == len(requests)
    assert found.excess_wavefronts >= 0


def test_other_spaces_are_passed_over():
    accumulator = BankAccumulator()
    accumulator.add(PieceRows(TraceWriter((make_instruction(0),)).access(0, lanes_by(4)).finish()))
    assert accumulator.finish() == ()


def answer_banks(writer: TraceWriter) -> Answer:
    context = TraceContext(sm_count=1, blocks_per_sm=1, l1_bytes=1 << 15, l2_bytes=1 << 20)
    answers, problems = answer_questions(analyse_trace(writer.finish(), context=context))
    assert problems == ()
    return next(answer for answer in answers if answer.analysis == "traced_banks")


@pytest.mark.parametrize("line", [7, None])
def test_conflicts_of_many_instructions_are_no_praise(line):
    """The copies of an unrolled loop hold a few percent each: together they are what the summary says."""
    copies = [make_instruction(index, AccessKind.LOAD, Space.SHARED, 4, line=line) for index in range(40)]
    writer = TraceWriter(tuple(copies))
    for index in range(40):
        writer.access(index, lanes_by(8, base=0))
    answer = answer_banks(writer)
    assert "80 wavefronts, 50 % of them due to bank conflicts" in answer.summary
    share = "50 %" if line else "1.2 %"
    assert [finding.text for finding in answer.findings] == [
        f"Shared loads at line {line or 1} of kernel.cu take 2 wavefronts per request, a 2-way bank conflict; "
        f"the excess is {share} of all wavefronts."
    ]


def test_hardly_any_conflicts_are_praised():
    writer = TraceWriter((make_instruction(0, AccessKind.LOAD, Space.SHARED, 16),))
    answer = answer_banks(writer.access(0, lanes_by(0, base=0)))
    assert "2 wavefronts, 0 % of them" in answer.summary
    assert [finding.text for finding in answer.findings] == [
        "Shared-memory accesses take close to the fewest wavefronts possible."
    ]
