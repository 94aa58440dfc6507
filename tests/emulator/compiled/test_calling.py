"""Functions that are called do the same as where their instructions stand in place of the call."""

import re

import pytest

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled import calls
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Emulation, FaultKind, TraceSettings
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription
from tests.emulator.engine.running import GLOBAL_THREAD, SMALL, build_module, run_text, zeros

_FUNCTION = """.func (.param .b32 y) work (.param .b32 x) {{ .reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<12>; .reg .b64 %d<4>;
    ld.param.u32 %r1, [x]; mov.u32 %r2, %r1; {0} st.param.b32 [y], %r2; ret; }}"""
_BODIES = {
    "arithmetic": "mad.lo.u32 %r2, %r1, 3, 7;",
    "branch": "and.b32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 0; @%p1 bra OUT; mul.lo.u32 %r2, %r1, 9; setp.eq.u32 %p2, %r3, 1; "
    "@%p2 bra OUT; add.u32 %r2, %r2, 1; OUT:",
    "loop": "and.b32 %r3, %r1, 7; TOP: add.u32 %r2, %r2, %r3; sub.u32 %r3, %r3, 1; setp.gt.s32 %p1, %r3, 0; @%p1 bra TOP;",
    "exit": "setp.gt.u32 %p1, %r1, 60; @%p1 exit; add.u32 %r2, %r1, 1;",
    "trap": "setp.eq.u32 %p1, %r1, 17; @%p1 trap;",
    "barrier": "bar.sync 0; add.u32 %r2, %r1, 2;",
    "shuffle": "shfl.sync.bfly.b32 %r2, %r1, 5, 31, -1;",
    "some of a warp": "mov.u32 %r3, %laneid; and.b32 %r3, %r3, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra EVEN; "
    "shfl.sync.bfly.b32 %r2, %r1, 2, 31, 0xAAAAAAAA; bra OUT; EVEN: shfl.sync.bfly.b32 %r2, %r1, 4, 31, 0x55555555; OUT:",
    "atomic": "mov.u64 %d1, counter; cvta.global.u64 %d1, %d1; atom.add.u32 %r2, [%d1], %r1;",
    "local memory": "mov.u64 %d1, own; st.local.u32 [own], %r1; ld.local.u32 %r2, [own]; add.u32 %r2, %r2, 3;",
    "out of bounds": "mov.u64 %d1, 64; ld.global.u32 %r2, [%d1];",
}  # fmt: skip
_OF_ALL = frozenset({"barrier", "shuffle", "some of a warp"})
"""Those in which lanes wait for others."""
_CALL = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), work, (a); ld.param.b32 %r4, [b]; }"
_CALLERS = {
    "all": _CALL,
    "some": f"and.b32 %r3, %r59, 5; setp.ne.u32 %p1, %r3, 0; mov.u32 %r4, %r2; @%p1 bra BEHIND; {_CALL} add.u32 %r4, %r4, %r3; BEHIND:",
    "in a loop": f"mov.u32 %r5, 0; mov.u32 %r4, 0; ROUND: {_CALL} add.u32 %r2, %r2, %r4; add.u32 %r5, %r5, 1; and.b32 %r6, %r59, 3; "
    "setp.le.u32 %p1, %r5, %r6; @%p1 bra ROUND;",
}  # fmt: skip


_LOCK = """mov.u64 %d1, lock; cvta.global.u64 %d1, %d1;
    AGAIN: atom.cas.b32 %r3, [%d1], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra AGAIN; add.u32 %r2, %r1, 5; atom.exch.b32 %r3, [%d1], 0;"""
_OWN = ".local .align 4 .b8 own[16];"


def _run(function: str, caller: str, block: int, own: str = "") -> Emulation:
    before = f".global .align 4 .u32 counter; .global .align 4 .u32 lock; {function}"
    text = f"{own} {GLOBAL_THREAD} ld.global.u32 %r1, [%d31]; mov.u32 %r2, %r1; {caller} add.u32 %r4, %r4, %r1; st.global.u32 [%d32], %r4;"
    launch = LaunchDescription(
        kernel="k",
        block=(block, 1, 1),
        grid=(3, 1, 1),
        arguments=(
            ArrayArgument(name="in", type=ScalarType.U32, count=256, generator=Generator.UNIFORM, high=100.0),
            ArrayArgument(name="out", type=ScalarType.U32, count=256),
        ),
    )
    module = build_module(text, ("d", "d"), before=before)
    return emulate(module, launch, budget=SMALL, trace=TraceSettings(entries=True))


def _inline(body: str) -> str:
    """The body of a function, on registers of the kernel that nothing else uses."""
    moved = re.sub(
        r"%(r|d|p|h)(\d+)", lambda found: f"%{found[1]}{found[2] if found[1] == 'h' else int(found[2]) + 10}", body
    )
    return f"mov.u32 %r11, %r2; mov.u32 %r12, %r11; {moved} mov.u32 %r4, %r12;"


def _list_facts(emulation: Emulation) -> dict[str, object]:
    trace = emulation.trace
    assert trace is not None
    accesses = {}
    for number in range(len(trace.accesses)):
        one = trace.instructions[trace.accesses.instruction[number]]
        key = (
            one.text.replace("%r1", "%r").partition(" ")[0],
            int(trace.accesses.block[number]),
            int(trace.accesses.warp[number]),
        )
        accesses[key] = accesses.get(key, 0) + int(trace.accesses.lane_mask[number]).bit_count()
    return {
        "faults": [(fault.kind, fault.count, fault.block, fault.thread) for fault in emulation.faults],
        "arrays": {name: array.tolist() for name, array in emulation.arrays.items()},
        "lanes of accesses": accesses,
    }


@pytest.mark.parametrize("block", [64, 48])
@pytest.mark.parametrize("caller", _CALLERS)
@pytest.mark.parametrize("body", _BODIES)
def test_functions_do_what_their_instructions_do(body: str, caller: str, block: int) -> None:
    if caller != "all" and body in _OF_ALL:
        pytest.skip("what lanes that are missing hold is not defined")
    function, own = _FUNCTION.format(_BODIES[body]), _OWN if body == "local memory" else ""
    function = function.replace("{ .reg .pred", f"{{ {own} .reg .pred", 1)
    found = _run(function, _CALLERS[caller], block)
    expected = _run("", _CALLERS[caller].replace(_CALL, _inline(_BODIES[body])), block, own)
    assert _list_facts(found) == _list_facts(expected)
    assert found.arrays["out"].any()


def test_locks_that_functions_take_go_from_lane_to_lane() -> None:
    found = _run(_FUNCTION.format(_LOCK), _CALL, 64)
    expected = _run("", _inline(_LOCK), 64)
    assert found.faults == expected.faults == ()
    assert found.arrays["out"].tolist() == expected.arrays["out"].tolist()
    assert found.arrays["lock"].tolist() == [0]


def test_a_function_that_waits_for_lanes_of_the_kernel_lets_them_run() -> None:
    """The first lane waits in a function for what the last one writes behind the call."""
    before = """.global .align 4 .u32 flag; .func wait () { .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %d<2>; mov.u64 %d1, flag;
    cvta.global.u64 %d1, %d1; AGAIN: ld.volatile.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN; ret; }"""
    text = f"""{GLOBAL_THREAD} setp.ne.u32 %p1, %r59, 0; @%p1 bra OTHERS; call wait, (); bra DONE;
    OTHERS: setp.ne.u32 %p2, %r59, 63; @%p2 bra DONE; mov.u64 %d5, flag; cvta.global.u64 %d5, %d5; st.volatile.u32 [%d5], 1;
    DONE: st.global.u32 [%d32], 7;"""
    found = run_text(text, {"in": zeros(64), "out": zeros(64)}, block=64, before=before)
    assert found.faults == ()
    assert found.arrays["out"].tolist() == [7] * 64


@pytest.mark.parametrize("guard", ["", "@%p1 ", "@!%p1 "])
def test_lanes_that_a_guard_keeps_from_a_call_have_what_they_had(guard: str) -> None:
    before = """.func (.param .b32 y) more (.param .b32 x) { .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u32 %r1, [x]; add.u32 %r2, %r1, 1000;
    st.param.b32 [y], %r2; setp.gt.u32 %p1, %r1, 40; @%p1 ret; add.u32 %r2, %r2, 7; st.param.b32 [y], %r2; ret; }"""
    text = f"""{GLOBAL_THREAD} and.b32 %r1, %r59, 1; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, %r59; mov.u32 %r7, 5;
    {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; {guard}call (b), more, (a); {guard}ld.param.b32 %r7, [b]; }}
    st.global.u32 [%d32], %r7;"""
    found = run_text(text, {"in": zeros(64), "out": zeros(64)}, block=64, before=before)
    called = [not guard or (lane % 2 == 1) != ("!" in guard) for lane in range(64)]
    expected = [lane + 1000 + (0 if lane > 40 else 7) if is_called else 5 for lane, is_called in enumerate(called)]
    assert found.faults == ()
    assert found.arrays["out"].tolist() == expected


_FIBONACCI = """.func (.param .b32 y) fibonacci (.param .b32 x) { .reg .b32 %r<8>; .reg .pred %p<2>; ld.param.u32 %r1, [x]; mov.u32 %r2, %r1;
setp.lt.u32 %p1, %r1, 2; @%p1 bra DONE; sub.u32 %r3, %r1, 1;
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call (b), fibonacci, (a); ld.param.b32 %r4, [b]; } sub.u32 %r3, %r1, 2;
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call (b), fibonacci, (a); ld.param.b32 %r5, [b]; } add.u32 %r2, %r4, %r5;
DONE: st.param.b32 [y], %r2; ret; }"""


@pytest.mark.parametrize("most", [2, 256])
def test_ways_that_no_lane_goes_any_more_are_forgotten(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_MOST_IDLE", most)
    text = f"""{GLOBAL_THREAD} and.b32 %r1, %r59, 15; {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), fibonacci, (a);
    ld.param.b32 %r2, [b]; }} st.global.u32 [%d32], %r2;"""
    found = run_text(text, {"in": zeros(64), "out": zeros(64)}, block=64, before=_FIBONACCI)
    assert found.faults == ()
    assert found.arrays["out"].tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610] * 4


def test_functions_that_call_each_other_end_where_that_is_too_deep() -> None:
    before = """.func odd (.param .b32 x); .func even (.param .b32 x) { .param .b32 a; .reg .b32 %r<2>; ld.param.u32 %r1, [x];
    st.param.b32 [a], %r1; call odd, (a); ret; }
    .func odd (.param .b32 x) { .param .b32 a; .reg .b32 %r<2>; ld.param.u32 %r1, [x]; st.param.b32 [a], %r1; call even, (a); ret; }"""
    text = f"{GLOBAL_THREAD} {{ .param .b32 a; st.param.b32 [a], %r59; call even, (a); }} st.global.u32 [%d32], 1;"
    found = run_text(text, {"in": zeros(32), "out": zeros(32)}, before=before)
    assert [(fault.kind, fault.count) for fault in found.faults] == [(FaultKind.CALL_DEPTH, 32)]
