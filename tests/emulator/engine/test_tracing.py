"""Recorded accesses, branches and entries, row by row."""

import numpy as np

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator import emulate
from gpa_lsp.execution.emulator.model import (
    ACCESS_DTYPES,
    Budget,
    FaultKind,
    Sampling,
    SamplingKind,
    Trace,
    TraceSettings,
)
from tests.emulator.engine.running import GLOBAL_THREAD, run_text, zeros

_BODY = f"""{GLOBAL_THREAD} mov.u32 %r1, 0;
LOOP: ld.global.u32 %r2, [%d31]; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r52; setp.lt.u32 %p2, %r1, 3; and.pred %p1, %p1, %p2;
@%p1 bra LOOP; st.global.u32 [%d32+4], %r1;"""


def _run(**options: object):
    given = {"trace": TraceSettings(entries=True), **options}
    return run_text(_BODY, {"in": zeros(80), "out": zeros(81)}, block=40, grid=2, **given)


def test_each_execution_of_each_warp_is_a_row() -> None:
    emulation = _run()
    trace = emulation.trace
    assert trace is not None
    assert trace.is_complete
    load = next(one.index for one in trace.instructions if one.text.startswith("ld.global.u32 %r2"))
    store = next(one.index for one in trace.instructions if one.text.startswith("st.global"))
    rows = trace.accesses
    found = sorted(
        zip(
            rows.block, rows.warp, rows.instruction, rows.execution, rows.lane_mask, rows.bytes, rows.space, strict=True
        )
    )
    # Threads 0 and 1 go round once, 2 twice, the others three times; the second warp has eight threads.
    whole, space = 0xFFFFFFFF, int(Space.GLOBAL)
    expected = [
        (block, warp, instruction, execution, mask, 4, space)
        for block in (0, 1)
        for warp, instruction, execution, mask in (
            (0, load, 0, whole), (0, load, 1, whole - 3), (0, load, 2, whole - 7), (0, store, 0, whole),
            (1, load, 0, 0xFF), (1, load, 1, 0xFF), (1, load, 2, 0xFF), (1, store, 0, 0xFF),
        )
    ]  # fmt: skip
    assert found == sorted(expected)
    _check_addresses(trace, load)
    branches = trace.branches
    taken = sorted(
        zip(branches.block, branches.warp, branches.execution, branches.active_mask, branches.taken_mask, strict=True)
    )
    assert taken[:6] == [
        (0, 0, 0, whole, whole - 3), (0, 0, 1, whole - 3, whole - 7), (0, 0, 2, whole - 7, 0),
        (0, 1, 0, 0xFF, 0xFF), (0, 1, 1, 0xFF, 0xFF), (0, 1, 2, 0xFF, 0),
    ]  # fmt: skip
    entries = trace.entries
    assert np.unique(entries.basic_block).tolist() == [0, 1, 2]
    assert len(entries) == 4 + 12 + 4
    assert emulation.counts.warp_executions[load] == 12
    assert emulation.counts.lane_executions[load] == 2 * (32 + 30 + 29 + 24)


def _check_addresses(trace: Trace, load: int) -> None:
    base = {buffer.name: buffer.base for buffer in trace.buffers}
    assert all(address % 512 == 0 for address in base.values())
    rows = trace.accesses
    for row in range(len(rows)):
        lanes = [lane for lane in range(32) if int(rows.lane_mask[row]) >> lane & 1]
        first = int(rows.first_address[row])
        threads = [40 * int(rows.block[row]) + 32 * int(rows.warp[row]) + lane for lane in lanes]
        start = base["in"] if rows.instruction[row] == load else base["out"] + 4
        assert rows.addresses[first : first + len(lanes)].tolist() == [start + 4 * thread for thread in threads]


class Sink:
    def __init__(self) -> None:
        self.pieces: list[Trace] = []

    def add(self, piece: Trace) -> None:
        self.pieces.append(piece)


def test_a_sink_gets_pieces_of_whole_blocks_that_together_are_the_trace(monkeypatch) -> None:
    whole = _run().trace
    assert whole is not None
    monkeypatch.setattr(emulate, "_BEST_LANES", 32)
    monkeypatch.setattr(emulate, "_FIRST_TRACED_LANES", 32)
    sink = Sink()
    emulation = _run(sink=sink)
    assert emulation.trace is None
    assert [piece.traced_blocks.tolist() for piece in sink.pieces] == [[0], [1]]
    assert sum(len(piece.accesses) for piece in sink.pieces) == len(whole.accesses)
    assert all((piece.accesses.block == piece.traced_blocks[0]).all() for piece in sink.pieces)
    joined = _run().trace
    assert joined is not None
    assert joined.traced_blocks.tolist() == [0, 1]
    order = np.lexsort(
        (joined.accesses.execution, joined.accesses.instruction, joined.accesses.warp, joined.accesses.block)
    )
    other = np.lexsort(
        (whole.accesses.execution, whole.accesses.instruction, whole.accesses.warp, whole.accesses.block)
    )
    assert joined.accesses.lane_mask[order].tolist() == whole.accesses.lane_mask[other].tolist()
    assert joined.accesses.addresses.sum() == whole.accesses.addresses.sum()


def test_rows_of_a_warp_are_in_the_order_it_ran() -> None:
    trace = _run().trace
    assert trace is not None
    for warp in (0, 1):
        mine = (trace.accesses.block == 0) & (trace.accesses.warp == warp)
        assert trace.accesses.execution[mine].tolist() == [0, 1, 2, 0]


def test_a_trace_beyond_its_budget_is_cut_and_says_so() -> None:
    body = f"{GLOBAL_THREAD} mov.u32 %r1, 0; LOOP: ld.global.u32 %r2, [%d31]; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 200; @%p1 bra LOOP;"
    arrays = {"in": zeros(1024), "out": zeros(1)}
    budget = Budget(trace_bytes=100_000)
    emulation = run_text(body, arrays, block=128, grid=8, trace=TraceSettings(), budget=budget)
    assert emulation.is_complete
    assert {fault.kind for fault in emulation.faults} == {FaultKind.TRACE_BUDGET}
    assert emulation.trace is not None
    assert not emulation.trace.is_complete
    assert 50_000 < emulation.trace.accesses.addresses.nbytes < 150_000
    assert emulation.counts.lane_executions.max() == 200 * 1024


def test_only_the_first_executions_are_recorded_where_no_more_are_asked_for() -> None:
    whole, cut = _run().trace, _run(trace=TraceSettings(entries=True, most_executions=2))
    found = cut.trace
    assert whole is not None and found is not None
    assert (found.is_complete, found.most_executions, cut.faults, cut.is_complete) == (False, 2, (), True)
    kept = whole.accesses.execution < 2
    assert 0 < kept.sum() < len(kept)
    for name in ACCESS_DTYPES:
        if name != "first_address":
            assert getattr(found.accesses, name).tolist() == getattr(whole.accesses, name)[kept].tolist(), name
    lanes = np.bitwise_count(whole.accesses.lane_mask)
    assert found.accesses.addresses.tolist() == whole.accesses.addresses[np.repeat(kept, lanes)].tolist()
    assert (np.diff(found.accesses.first_address) == lanes[kept][:-1]).all()
    assert len(found.branches) == len(whole.branches) and len(found.entries) == len(whole.entries)
    enough = _run(trace=TraceSettings(most_executions=3)).trace
    assert enough is not None
    assert (enough.is_complete, enough.most_executions) == (True, None)
    short = _run(trace=TraceSettings(most_executions=2), budget=Budget(trace_bytes=300)).trace
    assert short is not None
    assert (short.is_complete, short.most_executions) == (False, None)


def test_what_is_left_out_is_not_recorded() -> None:
    settings = TraceSettings(branches=False, spaces_left_out=frozenset({int(Space.GLOBAL)}))
    body = ".shared .align 4 .b8 tile[128]; mov.u32 %r1, %tid.x; mul.lo.u32 %r1, %r1, 4; st.shared.u32 [%r1], %r1; st.global.u32 [%d0], %r1;"
    trace = run_text(body, {"out": zeros(1)}, trace=settings).trace
    assert trace is not None
    assert set(trace.accesses.space.tolist()) == {int(Space.SHARED)}
    assert trace.accesses.addresses.tolist() == [4 * lane for lane in range(32)]
    assert len(trace.branches) == len(trace.entries) == 0


def test_only_chosen_blocks_are_executed_and_traced() -> None:
    body = f"{GLOBAL_THREAD} st.global.u32 [%d32], 1;"
    sampling = Sampling(kind=SamplingKind.CHOSEN, blocks=(5, 2))
    emulation = run_text(body, {"in": zeros(1), "out": zeros(256)}, grid=8, sampling=sampling, trace=TraceSettings())
    assert emulation.executed_blocks.tolist() == [2, 5]
    assert emulation.is_complete
    assert np.flatnonzero(emulation.arrays["out"]).tolist() == [*range(64, 96), *range(160, 192)]
    assert emulation.trace is not None
    assert np.unique(emulation.trace.accesses.block).tolist() == [2, 5]


def test_lanes_that_leave_a_table_are_those_beside_the_most_common_target_of_their_warp() -> None:
    body = f"""{GLOBAL_THREAD} ld.global.u32 %r1, [%d31];
    TABLE: .branchtargets A, B;
    brx.idx %r1, TABLE; A: st.global.u32 [%d32], %r1; B: st.global.u32 [%d32+4], %r1;"""
    index = np.array([0] * 20 + [1] * 12 + [0] * 10 + [1] * 22, np.uint32)
    emulation = run_text(body, {"in": index, "out": zeros(80)}, block=64, trace=TraceSettings())
    assert emulation.trace is not None
    rows = emulation.trace.branches
    assert dict(zip(rows.warp.tolist(), rows.taken_mask.tolist(), strict=True)) == {0: 0xFFF00000, 1: 0x3FF}


def test_lanes_that_are_together_wait_for_nobody_else() -> None:
    # Each half of the warp exchanges among itself, in code of its own.
    body = f"""{GLOBAL_THREAD} setp.lt.u32 %p1, %r59, 16; @%p1 bra LOW;
    activemask.b32 %r2; shfl.sync.idx.b32 %r3, %r59, 31, 31, %r2; st.global.u32 [%d32], %r3; bra DONE;
    LOW: activemask.b32 %r2; shfl.sync.idx.b32 %r3, %r59, 0, 31, %r2; st.global.u32 [%d32], %r3;
    DONE:"""
    out = run_text(body, {"in": zeros(80), "out": zeros(80)}, block=32).arrays["out"]
    assert out[:32].tolist() == [0] * 16 + [31] * 16
