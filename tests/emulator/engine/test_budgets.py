"""Budgets: every emulation ends within its limits, and says so."""

import gc
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.engine.arena import Arena
from gpa_lsp.execution.emulator.engine.fragments import Batch
from gpa_lsp.execution.emulator.model import Budget, FaultKind, Trace, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from tests.emulator.engine.running import GLOBAL_THREAD, run_text, zeros

_ENDLESS = "LOOP: add.u32 %r1, %r1, 1; bra LOOP;"


def test_an_endless_loop_ends_with_its_time() -> None:
    emulation = run_text(_ENDLESS, {"out": zeros(1)}, budget=Budget(seconds=0.2))
    (fault,) = emulation.faults
    assert fault.kind is FaultKind.TIME_BUDGET
    assert fault.is_fatal
    assert fault.instruction is not None
    assert not emulation.is_complete
    assert emulation.executed_blocks.tolist() == []


def test_time_that_is_over_before_the_kernel_is_read_is_told() -> None:
    emulation = run_text("add.u32 %r1, %r1, 1;", {"out": zeros(1)}, budget=Budget(seconds=1e-9))
    (fault,) = emulation.faults
    assert (fault.kind, fault.is_fatal) == (FaultKind.TIME_BUDGET, True)
    assert (emulation.is_complete, emulation.warp_instructions) == (False, 0)


def test_an_endless_loop_ends_with_its_instructions() -> None:
    emulation = run_text(_ENDLESS, {"out": zeros(1)}, budget=Budget(warp_instructions=5_000))
    (fault,) = emulation.faults
    assert fault.kind is FaultKind.INSTRUCTION_BUDGET
    assert 5_000 < emulation.warp_instructions < 5_010


class _Clock:
    """Goes on by a little whenever somebody looks at it, however fast the machine is."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.idle_s = 0.0

    def thread_time(self) -> float:
        """The processor time."""
        self.now_s += 0.001
        return self.now_s

    def monotonic(self) -> float:
        """The time on the wall, with that of whatever else the machine does."""
        return self.thread_time() + self.idle_s

    perf_counter = time = monotonic


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The emulator's clock."""
    made = _Clock()
    monkeypatch.setattr("gpa_lsp.foundation.work_time.time", made)
    return made


def test_an_endless_loop_in_which_all_goes_wrong_ends_with_its_time(
    clock: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Arena.report
    reported = []

    def take_long(*arguments: Any) -> None:
        reported.append(1)
        clock.now_s += 0.5
        report(*arguments)

    monkeypatch.setattr(Arena, "report", take_long)
    body = f"{GLOBAL_THREAD} LOOP: st.global.u32 [%d32+400], 1; bra LOOP;"
    emulation = run_text(body, {"in": zeros(1), "out": zeros(1)}, budget=Budget(seconds=10.0))
    assert {fault.kind for fault in emulation.faults} == {FaultKind.OUT_OF_BOUNDS, FaultKind.TIME_BUDGET}
    assert all(fault.instruction is not None for fault in emulation.faults)
    assert len(reported) <= 20


class _SlowSink:
    """Keeps pieces, and takes its time."""

    def __init__(self, seconds: float, clock: _Clock) -> None:
        self.pieces: list[Trace] = []
        self._seconds = seconds
        self._clock = clock

    def add(self, piece: Trace) -> None:
        """Take one piece."""
        self.pieces.append(piece)
        self._clock.now_s += self._seconds


def test_time_in_the_sink_counts_against_the_budget_but_is_not_the_emulators(clock: _Clock) -> None:
    body = f"{GLOBAL_THREAD} st.global.u32 [%d32], 1;"
    sink = _SlowSink(1.2, clock)
    arrays = {"in": zeros(1), "out": zeros(1 << 20)}
    budget = Budget(seconds=1.0)
    emulation = run_text(body, arrays, block=1024, grid=1024, budget=budget, trace=TraceSettings(), sink=sink)
    assert {fault.kind for fault in emulation.faults} == {FaultKind.TIME_BUDGET}
    (piece,) = sink.pieces
    assert emulation.executed_blocks.tolist() == piece.traced_blocks.tolist()
    assert emulation.seconds < 1.0


def test_the_trace_of_an_endless_loop_is_cut_to_what_its_sink_has_time_for(clock: _Clock) -> None:
    body = f"{GLOBAL_THREAD} LOOP: atom.global.add.u32 %r1, [%d32], 1; bra LOOP;"
    arrays = {"in": zeros(1), "out": zeros(8192)}
    sink = _SlowSink(0.0, clock)
    budget = Budget(seconds=0.5)
    emulation = run_text(body, arrays, block=32, budget=budget, trace=TraceSettings(), sink=sink)
    assert {fault.kind for fault in emulation.faults} == {FaultKind.TIME_BUDGET, FaultKind.TRACE_BUDGET}
    assert "the trace was cut off: it exceeds the time left" in {fault.message for fault in emulation.faults}
    (piece,) = sink.pieces
    assert not piece.is_complete
    assert 4 << 20 < piece.accesses.addresses.nbytes < 6 << 20


@pytest.mark.usefixtures("clock")
def test_blocks_that_are_done_count_when_a_later_one_is_not() -> None:
    body = f"{GLOBAL_THREAD} st.global.u32 [%d32], 1; setp.lt.u32 %p1, %r50, 1500; @%p1 bra DONE; {_ENDLESS} DONE:"
    emulation = run_text(body, {"in": zeros(1), "out": zeros(1024 * 64)}, grid=64 * 32, budget=Budget(seconds=1.5))
    assert not emulation.is_complete
    assert 0 < len(emulation.executed_blocks) <= 1500
    assert emulation.arrays["out"][: len(emulation.executed_blocks) * 32].all()


@pytest.mark.parametrize(
    "body",
    [
        "st.global.u32 [%d0], 1;",
        ".local .align 8 .b8 own[400000]; st.local.u32 [own+399996], 1; st.global.u32 [%d0], 1;",
    ],
)
def test_memory_stays_within_its_budget(body: str) -> None:
    budget = Budget(memory_bytes=48 << 20)
    tracemalloc.start()
    try:
        emulation = run_text(body, {"out": zeros(1)}, block=1024, grid=64, budget=budget)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < budget.memory_bytes
    assert emulation.peak_bytes <= budget.memory_bytes
    wanted = {FaultKind.MEMORY_BUDGET} if "local" in body else set()
    assert {fault.kind for fault in emulation.faults} == wanted
    assert emulation.is_complete == (not wanted)


def test_what_is_held_is_what_is_said() -> None:
    """A kernel with many live registers and shared memory: numpy's own count stays below the emulator's."""
    loads = " ".join(f"ld.global.u32 %r{k}, [%d31+{4 * k}];" for k in range(1, 33))
    adds = " ".join(f"add.u32 %r{k}, %r{k}, %r{k + 1};" for k in range(1, 32))
    body = f"""{GLOBAL_THREAD} .shared .align 4 .b8 tile[4096]; {loads} bar.sync 0; and.b32 %r40, %r59, 1; setp.eq.u32 %p1, %r40, 0;
    @%p1 bra ODD; {adds} ODD: {adds} st.global.u32 [%d32], %r1;"""
    arrays = {"in": np.arange(70_000, dtype=np.uint32), "out": zeros(65_536)}
    run_text(body, arrays, block=256, grid=256, trace=TraceSettings())
    tracemalloc.start()
    try:
        emulation = run_text(body, arrays, block=256, grid=256, trace=TraceSettings())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert emulation.faults == ()
    assert peak < 1.5 * emulation.peak_bytes
    assert emulation.peak_bytes < 4 * peak


def test_gigantic_launches_cost_nothing_before_they_end() -> None:
    emulation = run_text(
        "st.global.u32 [%d0], 1;",
        {"out": zeros(1)},
        block=1024,
        grid=(2**31 - 1, 65535, 65535),
        budget=Budget(seconds=0.3),
    )
    assert {fault.kind for fault in emulation.faults} == {FaultKind.TIME_BUDGET}
    assert emulation.peak_bytes < 64 << 20


@pytest.mark.parametrize(
    ("shape", "words_of"),
    [
        ({"block": 1025}, "1,024"),
        ({"block": (1, 1, 65)}, "64"),
        ({"block": 0}, "1 to 1,024"),
        ({"grid": (1, 65536, 1)}, "65,535"),
        ({"grid": (0, 1, 1)}, "1 to"),
        ({"shared_bytes": 240_000}, "232,448"),
        ({"block": (32, 64, 1)}, "2,048 threads"),
    ],
)
def test_launches_no_gpu_accepts_are_said(shape: dict[str, object], words_of: str) -> None:
    emulation = run_text("", {"out": zeros(1)}, **shape)
    (fault,) = emulation.faults
    assert fault.kind is FaultKind.BAD_LAUNCH
    assert words_of in fault.message
    assert not emulation.is_complete


def test_what_is_not_emulated_is_fatal_only_where_it_is_reached() -> None:
    body = f"{GLOBAL_THREAD} setp.lt.u32 %p1, %r52, 8; @!%p1 bra DONE; tcgen05.fence::before_thread_sync; DONE: st.global.u32 [%d32], 1;"
    emulation = run_text(body, {"in": zeros(1), "out": zeros(32)})
    (fault,) = emulation.faults
    assert fault.kind is FaultKind.UNSUPPORTED
    assert "tcgen05" in fault.message
    assert fault.count == 8
    assert emulation.arrays["out"].tolist() == [0] * 8 + [1] * 24
    skipped = run_text(body.replace("%r52, 8;", "%r52, 0;"), {"in": zeros(1), "out": zeros(32)})
    assert skipped.faults == ()


@pytest.mark.parametrize(("block", "runs"), [((32, 24, 1), True), ((768, 1, 1), True), ((32, 23, 1), False)])
def test_a_required_block_is_a_number_of_threads(block: tuple[int, int, int], runs: bool) -> None:
    text = ".version 8.0 .target sm_80 .address_size 64\n.visible .entry k() .reqntid 768, 1, 1 { ret; }"
    launch = LaunchDescription(kernel="k", block=block, grid=(1, 1, 1))
    emulation = emulate(parse_ptx(text, name="k.ptx"), launch)
    assert emulation.is_complete is runs
    assert [fault.kind for fault in emulation.faults] == ([] if runs else [FaultKind.BAD_LAUNCH])
    assert all("736 threads; the kernel was compiled for 768" in fault.message for fault in emulation.faults)


@pytest.mark.parametrize("call", ["", "call nothing, ();"])
@pytest.mark.parametrize("block", [256, 200])
def test_batches_leave_nothing_behind(block: int, call: str) -> None:
    """Batches free their memory at once, as thousands run between two garbage collections, and leave nothing that the next one reads."""
    body = f"{GLOBAL_THREAD} {call} add.u32 %r8, %r8, %r59; st.global.u32 [%d31], %r8;"
    gc.collect()
    gc.disable()
    try:
        arrays = {"out": zeros(600 * block), "unused": zeros(1)}
        emulation = run_text(body, arrays, block=block, grid=600, before=".func nothing () { ret; }")
        left = sum(isinstance(one, Batch) for one in gc.get_objects())
    finally:
        gc.enable()
    assert left == 0
    assert np.array_equal(emulation.arrays["out"], np.arange(600 * block))


class _WaitingSink:
    """Waits at each piece, as on a machine that is busy with something else."""

    def __init__(self, clock: _Clock) -> None:
        self.count = 0
        self._clock = clock

    def add(self, piece: Trace) -> None:
        """Take one piece."""
        self.count += 1
        self._clock.idle_s += 60


def test_time_in_which_the_machine_does_something_else_is_none_of_the_budget(clock: _Clock) -> None:
    body = f"{GLOBAL_THREAD} st.global.u32 [%d32], 1;"
    arrays, budget, sink = {"in": zeros(1), "out": zeros(1 << 20)}, Budget(seconds=30.0), _WaitingSink(clock)
    emulation = run_text(body, arrays, block=1024, grid=1024, budget=budget, trace=TraceSettings(), sink=sink)
    assert sink.count > 1, "there is work to do after a wait"
    assert emulation.is_complete
    assert not emulation.faults


def test_what_is_said_to_have_passed_is_what_was_used(clock: _Clock) -> None:
    body = f"{GLOBAL_THREAD} st.global.u32 [%d32], 1;"
    sink, arrays = _SlowSink(36.5, clock), {"in": zeros(1), "out": zeros(1 << 20)}
    budget = Budget(seconds=20.0)
    emulation = run_text(body, arrays, block=1024, grid=1024, budget=budget, trace=TraceSettings(), sink=sink)
    (fault,) = emulation.faults
    found = re.fullmatch(
        r"not done after ([\d.]+) s of processor time, ([\d.]+) s of it analysing, and .*", fault.message
    )
    assert found is not None, fault.message
    assert 20 < float(found[2]) <= float(found[1])
