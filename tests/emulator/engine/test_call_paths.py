"""Instructions of called functions have numbers of their own for each chain of calls that leads to them."""

import pytest

from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator import emulate
from gpa_lsp.execution.emulator.model import Trace, TraceSettings, join_pieces
from tests.emulator.engine.running import GLOBAL_THREAD, run_text, zeros
from tests.emulator.engine.test_tracing import Sink

_INNER = ".func inner (.param .b64 to) { .reg .b64 %d<2>; ld.param.u64 %d1, [to]; st.global.u32 [%d1], 1; ret; }"
_OUTER = """.func outer (.param .b64 to) { .reg .b64 %d<2>; ld.param.u64 %d1, [to]; st.global.u32 [%d1], 2;
{ .param .b64 a; st.param.b64 [a], %d1; call inner, (a); } ret; }"""
_BOTH = f"{_INNER} {_OUTER}"
_CALL_INNER = "{ .param .b64 a; st.param.b64 [a], %d32; call inner, (a); }"
_CALL_OUTER = "{ .param .b64 a; st.param.b64 [a], %d32; call outer, (a); }"


def _run(body: str, before: str = _BOTH, **options: object):
    return run_text(
        f"{GLOBAL_THREAD} {body}", {"in": zeros(1), "out": zeros(64)}, before=before, trace=TraceSettings(), **options
    )


def _list_ways(trace: Trace) -> dict[tuple[str, ...], int]:
    """Rows by the functions that led there, outermost first."""
    ways: dict[tuple[str, ...], int] = {}
    for number in trace.accesses.instruction.tolist():
        one = trace.instructions[number]
        way = (*(trace.instructions[call].function for call in reversed(one.calls)), one.function)
        ways[way] = ways.get(way, 0) + 1
    return ways


def test_without_calls_nothing_is_numbered_anew() -> None:
    emulation = _run("st.global.u32 [%d32], 7;")
    assert emulation.trace is not None
    assert emulation.trace.instructions == emulation.instructions


def test_every_chain_of_calls_has_its_own_numbers() -> None:
    emulation = _run(f"{_CALL_INNER} {_CALL_OUTER} {_CALL_INNER} st.global.u32 [%d32], 7;")
    trace = emulation.trace
    assert trace is not None
    assert _list_ways(trace) == {("k",): 1, ("k", "inner"): 2, ("k", "outer"): 1, ("k", "outer", "inner"): 1}
    base = len(emulation.instructions)
    assert trace.instructions[:base] == emulation.instructions
    further = trace.instructions[base:]
    assert [one.index for one in further] == list(range(base, base + 4))
    for one in further:
        assert one.same_as is not None
        _check_same(one, trace.instructions[one.same_as])
    # Both calls of inner by the kernel are ways of their own.
    assert len({one.calls for one in further if one.function == "inner"}) == 3


def _check_same(one: StaticInstruction, other: StaticInstruction) -> None:
    assert (one.function, one.text, one.kind, one.space) == (other.function, other.text, other.kind, other.space)
    assert other.calls == ()
    assert other.same_as is None


def test_calls_through_pointers_are_ways_too() -> None:
    body = """mov.u64 %d7, inner; setp.gt.u32 %p1, %r59, 7; @%p1 mov.u64 %d7, outer;
    { .param .b64 a; st.param.b64 [a], %d32; P: .callprototype _ (.param .b64 _); call %d7, (a), P; }"""
    trace = _run(body).trace
    assert trace is not None
    assert _list_ways(trace) == {("k", "inner"): 1, ("k", "outer"): 1, ("k", "outer", "inner"): 1}


def test_recursion_is_one_loop_however_deep() -> None:
    before = """.func down (.param .b64 to, .param .b32 n) { .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<2>; ld.param.u64 %d1, [to];
    ld.param.u32 %r1, [n]; st.global.u32 [%d1], %r1; setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE; sub.u32 %r2, %r1, 1;
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %d1; st.param.b32 [b], %r2; call down, (a, b); }
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %d1; st.param.b32 [b], %r2; call down, (a, b); } DONE: ret; }"""
    body = "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %d32; st.param.b32 [b], 8; call down, (a, b); }"
    emulation = _run(body, before)
    trace = emulation.trace
    assert trace is not None
    assert emulation.faults == ()
    assert len(trace.accesses) == (1 << 9) - 1
    # From the kernel, by the first call of the two, by the second, and by each of them after the other.
    stores = [one for one in trace.instructions[len(emulation.instructions) :] if one.kind is not None]
    assert sorted(len(one.calls) for one in stores) == [1, 2, 2, 3, 3]
    assert all(len(set(one.calls)) == len(one.calls) for one in stores)


def test_later_pieces_have_the_instructions_of_earlier_ones_and_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate, "_BEST_LANES", 32)
    monkeypatch.setattr(emulate, "_FIRST_TRACED_LANES", 32)
    sink = Sink()
    body = f"setp.eq.u32 %p1, %r50, 0; @%p1 bra FIRST; {_CALL_OUTER} FIRST: {_CALL_INNER}"
    _run(body, sink=sink, grid=2)
    first, second = sink.pieces
    assert len(second.instructions) > len(first.instructions)
    assert second.instructions[: len(first.instructions)] == first.instructions
    whole = join_pieces(sink.pieces)
    assert whole.instructions == second.instructions
    assert _list_ways(whole) == {("k", "inner"): 2, ("k", "outer"): 1, ("k", "outer", "inner"): 1}


def test_counting_executions_counts_as_memory() -> None:
    ways = 200
    arrays = {"in": zeros(1), "out": zeros(1024)}
    straight = " ".join([_CALL_INNER] * ways)
    loop = f"mov.u32 %r1, 0; LOOP: {_CALL_INNER} add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, {ways}; @%p1 bra LOOP;"
    peaks = [
        run_text(f"{GLOBAL_THREAD} {body}", arrays, before=_INNER, block=1024, trace=TraceSettings(branches=False)).peak_bytes
        for body in (straight, loop)
    ]  # fmt: skip
    # A count for each of 32 warps and each way; the loop holds a register more, 8 KiB of them.
    assert peaks[0] - peaks[1] >= (ways - 1) * 32 * 4 - (8 << 10)
