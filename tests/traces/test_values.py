"""Repeated loads and overwritten stores."""

import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.traces.values import RepeatAccumulator, RepeatedValues
from tests.traces.written_traces import BASE, TraceWriter, lanes_by, make_buffer, make_instruction

A, B = make_buffer("a", 4096), make_buffer("b", 4096, base=BASE + 8192)
LOAD, STORE, ATOMIC, SHARED_LOAD, SHARED_STORE, VOLATILE, ACQUIRE, PAST_L1, RELEASE = range(9)
INSTRUCTIONS = (
    make_instruction(LOAD),
    make_instruction(STORE, AccessKind.STORE),
    make_instruction(ATOMIC, AccessKind.ATOMIC),
    make_instruction(SHARED_LOAD, space=Space.SHARED),
    make_instruction(SHARED_STORE, AccessKind.STORE, Space.SHARED),
    make_instruction(VOLATILE, text="ld.volatile.global.u32 %r1, [%rd1]"),
    make_instruction(ACQUIRE, text="ld.acquire.gpu.global.u32 %r1, [%rd1]"),
    replace(make_instruction(PAST_L1, text="ld.global.cg.u32 %r1, [%rd1]"), cache_operator="cg"),
    make_instruction(RELEASE, AccessKind.STORE, text="st.release.gpu.global.u32 [%rd1], %r1"),
)
IN_A, IN_B, AT_ZERO = lanes_by(4), lanes_by(4, base=B.base), lanes_by(4, base=0)


def measure(*rows, most: int = 1000) -> RepeatedValues:
    """Rows: (instruction, addresses) and perhaps warp and block."""
    writer = TraceWriter(INSTRUCTIONS, (A, B), grid=(2, 1, 1), block_threads=(64, 1, 1))
    for number, lanes, *rest in rows:
        warp, block = (*rest, 0, 0)[:2]
        writer.access(number, lanes, warp=warp, block=block)
    accumulator = RepeatAccumulator(most_rows=most)
    accumulator.add(PieceRows(writer.finish()))
    return accumulator.finish()


def count(*rows) -> tuple[int, int]:
    found = measure(*rows)
    return sum(one.repeated for one in found.loads), sum(one.repeated for one in found.stores)


def test_a_load_repeats():
    assert count((LOAD, IN_A), (LOAD, IN_A), (LOAD, IN_A)) == (2, 0)


def test_a_store_to_the_array_is_between():
    assert count((LOAD, IN_A), (STORE, IN_A), (LOAD, IN_A)) == (0, 0)
    assert count((LOAD, IN_A), (STORE, IN_A, 1), (LOAD, IN_A)) == (0, 0)
    assert count((LOAD, IN_A), (ATOMIC, [BASE + 512]), (LOAD, IN_A)) == (0, 0)


def test_a_store_to_another_array_or_by_another_block_is_not():
    assert count((LOAD, IN_A), (STORE, IN_B), (LOAD, IN_A)) == (1, 0)
    assert count((LOAD, IN_A), (STORE, IN_A, 0, 1), (LOAD, IN_A)) == (1, 0)


def test_a_store_nobody_can_place_is_between():
    assert count((LOAD, IN_A), (STORE, [BASE, B.base]), (LOAD, IN_A)) == (0, 0)


def test_other_warps_lanes_and_widths_do_not_repeat():
    assert count((LOAD, IN_A), (LOAD, IN_A, 1)) == (0, 0)
    assert count((LOAD, IN_A), (LOAD, IN_A[:31])) == (0, 0)
    assert count((LOAD, IN_A), (LOAD, [*IN_A[1:], IN_A[0]])) == (0, 0)


def test_a_store_is_overwritten():
    assert count((STORE, IN_A), (STORE, IN_A), (STORE, IN_A)) == (0, 2)
    assert count((STORE, IN_A), (LOAD, IN_A, 1), (STORE, IN_A)) == (0, 0)
    assert count((STORE, IN_A), (LOAD, IN_B), (STORE, IN_A)) == (0, 1)


def test_shared_memory_has_values_too():
    assert count((SHARED_LOAD, AT_ZERO), (SHARED_LOAD, AT_ZERO)) == (1, 0)
    assert count((SHARED_LOAD, AT_ZERO), (SHARED_STORE, AT_ZERO, 1), (SHARED_LOAD, AT_ZERO)) == (0, 0)
    assert count((SHARED_LOAD, AT_ZERO), (SHARED_STORE, AT_ZERO, 1, 1), (SHARED_LOAD, AT_ZERO)) == (1, 0)


@pytest.mark.parametrize("polls", [VOLATILE, ACQUIRE, PAST_L1])
def test_loads_that_wait_for_others_do_not_repeat(polls):
    assert count((polls, IN_A), (polls, IN_A)) == (0, 0)
    assert count((polls, IN_A), (LOAD, IN_A)) == (0, 0)
    assert count((LOAD, IN_A), (LOAD, IN_A), (polls, IN_A)) == (1, 0)
    assert count((STORE, IN_A), (polls, IN_A), (STORE, IN_A)) == (0, 0)


def test_stores_that_others_wait_for_are_not_overwritten():
    assert count((RELEASE, IN_A), (RELEASE, IN_A)) == (0, 0)
    assert count((LOAD, IN_A), (RELEASE, IN_A), (LOAD, IN_A)) == (0, 0)


def test_ratios_are_of_all_requests_of_the_instruction():
    (load,) = measure((LOAD, IN_A), (LOAD, IN_A), (LOAD, IN_B), (LOAD, IN_B[::-1])).loads
    assert (load.instruction, load.requests, load.repeated, load.ratio) == (LOAD, 4, 1, 0.25)


def test_more_than_the_limit_is_said():
    assert not measure((LOAD, IN_A), (LOAD, IN_A), most=1).is_whole
    assert measure((LOAD, IN_A), (LOAD, IN_A), most=2).is_whole
