"""Wavefronts of shared memory, by hand and against a loop over lanes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpa_lsp.analyses.traces.bank_conflicts import BankAccumulator, BankConflicts
from gpa_lsp.emulator.ptx.model import Space
from gpa_lsp.emulator.trace import AccessKind
from tests.analyses.traces.written_traces import TraceWriter, lanes_by, make_instruction


def count_by_lane(lanes: dict[int, int], width: int, *, is_atomic: bool) -> tuple[int, int]:
    """Passes, and passes without conflicts, one part of the warp after the other."""
    size = {16: 8, 8: 16}.get(width, 32)
    taken = ideal = 0
    for first in range(0, 32, size):
        part = [lanes[lane] for lane in range(first, first + size) if lane in lanes]
        if not part:
            continue
        words = [address // 4 + word for address in part for word in range(max(1, width // 4))]
        taken += max(sum(1 for word in (words if is_atomic else set(words)) if word % 32 == bank) for bank in range(32))
        ideal += 1
    return taken, ideal


def measure(*requests, width: int = 4, kind: AccessKind = AccessKind.LOAD) -> BankConflicts:
    writer = TraceWriter((make_instruction(0, kind, Space.SHARED, width),))
    for lanes in requests:
        writer.access(0, lanes)
    accumulator = BankAccumulator()
    accumulator.add(writer.finish())
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
    ],
)
def test_requests_written_by_hand(lanes, width, wavefronts, ideal):
    found = measure(lanes, width=width)
    assert (found.wavefronts, found.ideal_wavefronts) == (wavefronts, ideal)
    assert found.histogram[wavefronts] == found.requests == 1
    assert found.conflict_ways == wavefronts / ideal


def test_atomics_on_one_word_take_a_pass_each():
    assert measure(lanes_by(0, base=0), kind=AccessKind.ATOMIC).wavefronts == 32
    assert measure(lanes_by(4, base=0), kind=AccessKind.REDUCTION).wavefronts == 1


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.dictionaries(st.integers(0, 31), st.integers(0, 300), min_size=1), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.booleans(),
)
def test_requests_against_a_loop(requests, width, is_atomic):
    requests = [{lane: place * width for lane, place in lanes.items()} for lanes in requests]
    found = measure(*requests, width=width, kind=AccessKind.ATOMIC if is_atomic else AccessKind.LOAD)
    expected = np.sum([count_by_lane(lanes, width, is_atomic=is_atomic) for lanes in requests], axis=0)
    assert [found.wavefronts, found.ideal_wavefronts] == expected.tolist()
    assert found.histogram.sum() == found.requests == len(requests)
    assert found.excess_wavefronts >= 0


def test_other_spaces_are_passed_over():
    accumulator = BankAccumulator()
    accumulator.add(TraceWriter((make_instruction(0),)).access(0, lanes_by(4)).finish())
    assert accumulator.finish() == ()
