"""Functions that kernels of the core call do the same as where numpy executes all."""

import pytest

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.scheduler import Called
from gpa_lsp.execution.emulator.model import Emulation
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription
from tests.emulator.compiled.comparing import list_different, require_core
from tests.emulator.engine.running import GLOBAL_THREAD, SMALL, build_module

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


@pytest.fixture(autouse=True)
def core() -> None:
    """Where there is one."""
    require_core()


@pytest.mark.parametrize("block", [64, 48])
@pytest.mark.parametrize("caller", _CALLERS)
@pytest.mark.parametrize("body", _BODIES)
def test_functions_do_the_same(body: str, caller: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if caller != "all" and body in _OF_ALL:
        pytest.skip("what lanes that are missing hold is not defined")
    function = _FUNCTION.format(_BODIES[body])
    if body == "local memory":
        function = function.replace("{ .reg .pred", "{ .local .align 4 .b8 own[16]; .reg .pred", 1)
    different, found = _compare(function, _CALLERS[caller], block, monkeypatch)
    assert different == []
    assert found.is_compiled
    assert found.arrays["out"].any()


def test_locks_that_functions_take_go_from_lane_to_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has to wait for how long is another matter: lanes of the kernel have their turn between those of functions."""
    different, found = _compare(_FUNCTION.format(_LOCK), _CALL, 64, monkeypatch)
    assert {"out", "lock", "counter", "faults"}.isdisjoint(different)
    assert found.faults == ()
    assert found.is_compiled


def _compare(function: str, caller: str, block: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Emulation]:
    before = f".global .align 4 .u32 counter; .global .align 4 .u32 lock; {function}"
    text = f"{GLOBAL_THREAD} ld.global.u32 %r1, [%d31]; mov.u32 %r2, %r1; {caller} add.u32 %r4, %r4, %r1; st.global.u32 [%d32], %r4;"
    launch = LaunchDescription(
        kernel="k",
        block=(block, 1, 1),
        grid=(3, 1, 1),
        arguments=(
            ArrayArgument(name="in", type=ScalarType.U32, count=256, generator=Generator.UNIFORM, high=100.0),
            ArrayArgument(name="out", type=ScalarType.U32, count=256),
        ),
    )
    return list_different(build_module(text, ("d", "d"), before=before), launch, SMALL, monkeypatch)


def test_a_function_that_waits_for_lanes_of_the_kernel_lets_them_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lane waits in a function for what the last one writes behind the call."""
    before = """.global .align 4 .u32 flag; .func wait () { .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %d<2>; mov.u64 %d1, flag;
    cvta.global.u64 %d1, %d1; AGAIN: ld.volatile.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN; ret; }"""
    text = f"""{GLOBAL_THREAD} setp.ne.u32 %p1, %r59, 0; @%p1 bra OTHERS; call wait, (); bra DONE;
    OTHERS: setp.ne.u32 %p2, %r59, 63; @%p2 bra DONE; mov.u64 %d5, flag; cvta.global.u64 %d5, %d5; st.volatile.u32 [%d5], 1;
    DONE: st.global.u32 [%d32], 7;"""
    turns: list[bool] = []
    run_some = Called.run_some
    monkeypatch.setattr(Called, "run_some", lambda called: turns.append(found := run_some(called)) or found)
    arrays = tuple(ArrayArgument(name=name, type=ScalarType.U32, count=64) for name in ("in", "out"))
    launch = LaunchDescription(kernel="k", block=(64, 1, 1), grid=(1, 1, 1), arguments=arrays)
    _, found = list_different(build_module(text, ("d", "d"), before=before), launch, SMALL, monkeypatch)
    assert found.faults == ()
    assert found.arrays["out"].tolist() == [7] * 64
    assert sum(turns) > 1
