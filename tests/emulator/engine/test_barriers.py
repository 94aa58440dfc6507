"""Barriers of blocks and warps: who waits for whom, and what is said when nobody comes."""

import numpy as np
import pytest

from gpa_lsp.execution.emulator.model import FaultKind
from tests.emulator.engine.running import GLOBAL_THREAD, run_text, words, zeros

_SHARED = ".shared .align 4 .b8 tile[1024];"


def test_lanes_that_come_at_different_times_see_what_was_written_before_the_barrier() -> None:
    body = f"""{_SHARED} {GLOBAL_THREAD} and.b32 %r1, %r52, 7; mov.u32 %r2, 0;
    LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra LOOP;
    mov.u32 %r3, tile; mad.lo.u32 %r4, %r52, 4, %r3; st.shared.u32 [%r4], %r59; bar.sync 0;
    sub.u32 %r5, 95, %r52; mad.lo.u32 %r6, %r5, 4, %r3; ld.shared.u32 %r7, [%r6]; st.global.u32 [%d32], %r7;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(288)}, block=96, grid=3)
    assert emulation.faults == ()
    expected = [block * 96 + 95 - t for block in range(3) for t in range(96)]
    assert emulation.arrays["out"].tolist() == expected


@pytest.mark.parametrize(("operation", "expected"), [("popc.u32", 40), ("and.pred", 0), ("or.pred", 1)])
def test_reductions_at_barriers_count_all_threads_of_the_block(operation: str, expected: int) -> None:
    result = "%r1" if "popc" in operation else "%p2"
    after = "" if "popc" in operation else "selp.u32 %r1, 1, 0, %p2;"
    body = f"""{GLOBAL_THREAD} setp.lt.u32 %p1, %r52, 40; and.b32 %r9, %r52, 1; setp.eq.u32 %p5, %r9, 0; @%p5 bra NEXT; mov.u32 %r8, 5; NEXT:
    bar.red.{operation} {result}, 0, %p1; {after} st.global.u32 [%d32], %r1;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(128)}, block=64, grid=2)
    assert emulation.faults == ()
    assert set(emulation.arrays["out"].tolist()) == {expected}


def test_producers_arrive_and_consumers_wait() -> None:
    body = f"""{_SHARED} {GLOBAL_THREAD} mov.u32 %r3, tile; and.b32 %r4, %r52, 31; mad.lo.u32 %r5, %r4, 4, %r3; setp.lt.u32 %p1, %r52, 32;
    @%p1 bra WAIT;
    add.u32 %r6, %r52, 1000; st.shared.u32 [%r5], %r6; bar.arrive 1, 64; bra DONE;
    WAIT: bar.sync 1, 64; ld.shared.u32 %r7, [%r5]; st.global.u32 [%d32], %r7; DONE:"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, block=64)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [1032 + k for k in range(32)] + [0] * 32


def test_warps_wait_for_each_other_at_barriers_of_their_own() -> None:
    """Two pairs of warps use two barriers at different places, several times."""
    body = f"""{_SHARED} {GLOBAL_THREAD} mov.u32 %r3, tile; mad.lo.u32 %r5, %r52, 4, %r3; shr.u32 %r1, %r52, 6; add.u32 %r2, %r1, 1;
    mov.u32 %r10, 0; mov.u32 %r11, 0;
    xor.b32 %r6, %r52, 32; mad.lo.u32 %r6, %r6, 4, %r3;
    LOOP: add.u32 %r7, %r52, %r10; st.shared.u32 [%r5], %r7; barrier.sync %r2, 64; ld.shared.u32 %r8, [%r6]; add.u32 %r11, %r11, %r8;
    barrier.sync %r2, 64;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 3; @%p1 bra LOOP; st.global.u32 [%d32], %r11;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(128)}, block=128)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [3 * (t ^ 32) + 3 for t in range(128)]


def test_lanes_of_a_warp_meet_at_warp_barriers_from_different_places() -> None:
    body = f"""{_SHARED} {GLOBAL_THREAD} mov.u32 %r3, tile; mad.lo.u32 %r5, %r52, 4, %r3; xor.b32 %r6, %r52, 1; mad.lo.u32 %r6, %r6, 4, %r3;
    and.b32 %r1, %r52, 1; setp.eq.u32 %p1, %r1, 0; st.shared.u32 [%r5], %r59; @%p1 bra EVEN;
    bar.warp.sync 0xffffffff; ld.shared.u32 %r7, [%r6]; bra DONE;
    EVEN: bar.warp.sync 0xffffffff; ld.shared.u32 %r7, [%r6]; add.u32 %r7, %r7, 500;
    DONE: st.global.u32 [%d32], %r7;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, block=64)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [(t ^ 1) + (500 if t % 2 == 0 else 0) for t in range(64)]


def test_shuffles_wait_for_the_lanes_they_name_and_no_others() -> None:
    body = f"""{GLOBAL_THREAD} and.b32 %r1, %r52, 16; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0; @%p1 bra LOW;
    shfl.sync.bfly.b32 %r3, %r59, 1, 31, 0xffff0000; bra DONE;
    LOW: shfl.sync.bfly.b32 %r3, %r59, 2, 31, 0x0000ffff; DONE: st.global.u32 [%d32], %r3;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(32)})
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [t ^ 2 if t < 16 else t ^ 1 for t in range(32)]


def test_a_lane_that_never_comes_to_a_shuffle_is_said_and_the_others_go_on() -> None:
    body = f"""{GLOBAL_THREAD} setp.eq.u32 %p1, %r52, 5; @%p1 bra WAIT; shfl.sync.bfly.b32 %r3, %r59, 1, 31, 0xffffffff;
    st.global.u32 [%d32], %r3; bra DONE;
    WAIT: bar.warp.sync 0xffffffff; DONE:"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(32)})
    assert {fault.kind for fault in emulation.faults} == {FaultKind.DEADLOCK}
    assert "0x00000020" in emulation.faults[0].message or "0x00000020" in emulation.faults[1].message
    assert emulation.arrays["out"][0] == 1
    assert emulation.is_complete


def test_threads_at_different_barriers_are_said() -> None:
    body = f"""{GLOBAL_THREAD} setp.lt.u32 %p1, %r52, 32; @%p1 bra LOW; bar.sync 0; bra DONE; LOW: bar.sync 0; DONE: st.global.u32 [%d32], 1;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, block=64)
    (fault,) = emulation.faults
    assert fault.kind is FaultKind.DIVERGENT_BARRIER
    assert emulation.arrays["out"].all()


def test_a_barrier_that_too_few_threads_come_to_is_a_deadlock_that_ends() -> None:
    body = f"{GLOBAL_THREAD} bar.sync 3, 128; st.global.u32 [%d32], 1;"
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, block=64)
    (fault,) = emulation.faults
    assert fault.kind is FaultKind.DEADLOCK
    assert emulation.arrays["out"].all()


def test_a_lock_is_given_to_one_lane_after_the_other() -> None:
    """The lanes that wait spin at a place that comes before the one where the lock is given back."""
    body = f"""{GLOBAL_THREAD} LOOP: atom.global.cas.b32 %r1, [%d0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;
    ld.volatile.global.u32 %r2, [%d1]; add.u32 %r2, %r2, %r59; st.volatile.global.u32 [%d1], %r2; membar.gl; atom.global.exch.b32 %r3, [%d0], 0;"""
    emulation = run_text(body, {"lock": zeros(1), "sum": zeros(1)}, block=64, grid=2)
    assert emulation.faults == ()
    assert emulation.arrays["sum"].tolist() == [sum(range(128))]


@pytest.mark.parametrize("load", ["ld.acquire.gpu.global", "ld.global.cg", "ld.global.cv", "ld.volatile.global"])
def test_blocks_that_wait_for_others_of_their_batch_get_there(load: str) -> None:
    body = f"""{GLOBAL_THREAD} mov.u32 %r1, %nctaid.x; sub.u32 %r1, %r1, 1; setp.eq.u32 %p1, %r50, %r1; @%p1 bra LAST;
    SPIN: {load}.u32 %r2, [%d0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra SPIN; bra DONE;
    LAST: bar.sync 0; st.release.gpu.global.u32 [%d0], 9; mov.u32 %r2, 9; DONE: st.global.u32 [%d32], %r2;"""
    emulation = run_text(body, {"flag": zeros(1), "out": zeros(256)}, block=64, grid=4)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [9] * 256


def test_barrier_objects_count_arrivals_and_turn_their_phase() -> None:
    body = f""".shared .align 8 .b8 object[8]; {_SHARED} {GLOBAL_THREAD} mov.u32 %r3, tile; mad.lo.u32 %r5, %r52, 4, %r3;
    mov.u32 %r20, object; setp.ne.u32 %p1, %r52, 0;
    @%p1 bra NEXT; mbarrier.init.shared.b64 [%r20], 64; NEXT: bar.sync 0; mov.u32 %r10, 0;
    LOOP: add.u32 %r6, %r52, %r10; st.shared.u32 [%r5], %r6; mbarrier.arrive.shared.b64 %d5, [%r20];
    WAIT: mbarrier.test_wait.shared.b64 %p2, [%r20], %d5; @!%p2 bra WAIT; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 3; @%p3 bra LOOP;
    xor.b32 %r7, %r52, 63; mad.lo.u32 %r7, %r7, 4, %r3; ld.shared.u32 %r8, [%r7]; st.global.u32 [%d32], %r8;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(128)}, block=64, grid=2)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [(t ^ 63) + 2 for t in range(64)] * 2


@pytest.mark.parametrize(("form", "expected"), [("", 32), (".noinc", 64)])
def test_barrier_objects_count_copies_that_arrive(form: str, expected: int) -> None:
    """An arrival with ``.noinc`` is one of those expected; without, it adds itself to them."""
    body = f""".shared .align 8 .b8 object[8]; {_SHARED} {GLOBAL_THREAD} mov.u32 %r3, tile; mad.lo.u32 %r5, %r52, 4, %r3;
    mov.u32 %r20, object; setp.ne.u32 %p1, %r52, 0; mul.wide.u32 %d6, %r52, 4; add.u64 %d6, %d6, %d0;
    @%p1 bra NEXT; mbarrier.init.shared.b64 [%r20], {expected}; NEXT: bar.sync 0;
    cp.async.ca.shared.global [%r5], [%d6], 4; cp.async.mbarrier.arrive{form}.shared.b64 [%r20]; mbarrier.arrive.shared.b64 %d5, [%r20];
    WAIT: mbarrier.test_wait.shared.b64 %p2, [%r20], %d5; @!%p2 bra WAIT;
    xor.b32 %r7, %r52, 31; mad.lo.u32 %r7, %r7, 4, %r3; ld.shared.u32 %r8, [%r7]; st.global.u32 [%d32], %r8;"""
    emulation = run_text(body, {"in": words(*range(32)), "out": zeros(32)}, block=32, grid=1)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == list(range(31, -1, -1))


def test_blocks_of_odd_sizes_have_lanes_without_threads() -> None:
    body = f"{GLOBAL_THREAD} mov.u32 %r1, %tid.y; mov.u32 %r2, %laneid; mad.lo.u32 %r1, %r1, 100, %r2; bar.sync 0; st.global.u32 [%d32], %r1;"
    emulation = run_text(body, {"in": zeros(1), "out": zeros(5)}, block=(5, 7, 1), grid=1)
    expected = [100 * 6 + (6 * 5 + x) % 32 for x in range(5)]
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == expected
    assert int(np.max(emulation.counts.lane_executions)) == 35
    assert int(np.max(emulation.counts.warp_executions)) == 2


def test_threads_that_wait_at_barriers_of_different_numbers_are_said() -> None:
    body = f"""{GLOBAL_THREAD} setp.lt.u32 %p1, %r52, 32; @%p1 bra LOW; bar.sync 0; bra DONE; LOW: bar.sync 1; DONE: st.global.u32 [%d32], 1;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, block=64)
    assert {fault.kind for fault in emulation.faults} == {FaultKind.DIVERGENT_BARRIER}
    assert all("wait at the barrier forever" in fault.message for fault in emulation.faults)
    assert emulation.arrays["out"].all()


def test_lanes_that_have_exited_are_not_waited_for() -> None:
    body = f"""{GLOBAL_THREAD} setp.gt.u32 %p1, %r52, 20; @%p1 exit; shfl.sync.bfly.b32 %r3, %r59, 1, 31, 0xffffffff; bar.sync 0;
    bar.warp.sync 0xffffffff; st.global.u32 [%d32], %r3;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(32)})
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist()[:20] == [lane ^ 1 for lane in range(20)]


_LEFT_EARLY = f"""{GLOBAL_THREAD} mov.u32 %r10, %r52;
HEAD: setp.gt.u32 %p1, %r10, 99; @%p1 bra END; add.u32 %r10, %r10, 64; {{}}bar.sync 0; {{}}bra HEAD; END: {{}}"""


@pytest.mark.parametrize(
    ("around", "after", "end", "is_fault"),
    [
        ("", "", "ret;", False),  # leaving the loop is leaving the kernel
        ("", "", "st.global.u32 [%d32], %r10; ret;", True),  # what all of the block comes to behind the loop
        ("setp.lt.u32 %p2, %r52, 16; @%p2 bra REST; ", "REST: ", "ret;", True),  # some go round it, in the loop
    ],
)
def test_threads_that_left_a_loop_for_the_end_have_exited(around: str, after: str, end: str, is_fault: bool) -> None:
    emulation = run_text(_LEFT_EARLY.format(around, after, end), {"in": zeros(1), "out": zeros(64)}, block=64)
    assert [fault.kind for fault in emulation.faults] == [FaultKind.DIVERGENT_BARRIER] * is_fault
    assert all("have exited and never reach the barrier" in fault.message for fault in emulation.faults)
