"""Branches and entries into basic blocks."""

from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.branch_divergence import BranchAccumulator, BranchDivergence
from gpa_lsp.execution.traces.paper_answer import measure_paper_branches
from tests.traces.written_traces import TraceWriter, make_instruction

ALL = 0xFFFFFFFF
BRANCHES = tuple(make_instruction(number, None) for number in range(3))


def sum_up(*pieces: Trace) -> BranchDivergence:
    accumulator = BranchAccumulator()
    for piece in pieces:
        accumulator.add(piece)
    return accumulator.finish()


def test_a_branch_diverges_when_lanes_go_both_ways():
    writer = TraceWriter(BRANCHES)
    writer.branch(0, ALL, 0xFFFF).branch(0, ALL, ALL).branch(0, 0xFF, 0).branch(1, ALL, ALL).branch(2, 0xF, 0)
    found = sum_up(writer.finish())
    first, always, never = found.branches
    assert (first.executions, first.divergent) == (3, 1)
    assert (first.active_lanes, first.taken_lanes) == (72, 48)
    assert (always.divergent, always.active_lanes, always.taken_lanes) == (0, 32, 32)
    assert (never.divergent, never.active_lanes, never.taken_lanes) == (0, 4, 0)
    assert (found.executions, found.divergent) == (5, 1)
    assert found.lane_ratio == (72 + 32 + 4) / (5 * 32)


def test_lanes_that_did_not_execute_a_branch_do_not_take_it():
    (found,) = sum_up(TraceWriter(BRANCHES).branch(0, 0xF, ALL).finish()).branches
    assert (found.taken_lanes, found.divergent) == (4, 0)


def test_entries_are_divergent_below_the_warps_threads():
    writer = TraceWriter((), block_threads=(40, 1, 1))
    writer.enter(0, ALL).enter(0, 0xFF, warp=1).enter(1, 0xF).enter(1, 0xF, warp=1).enter(2, 0xFF, warp=1)
    found = sum_up(writer.finish())
    assert [(one.entries, one.divergent) for one in found.basic_blocks] == [(2, 0), (2, 2), (1, 0)]
    assert (found.entries, found.divergent_entries) == (5, 2)
    assert found.lane_ratio == (32 + 8 + 4 + 4 + 8) / (5 * 32)


def test_pieces_add_up():
    pieces = [TraceWriter(BRANCHES).branch(0, ALL, mask, block=mask).finish() for mask in (1, 0)]
    (found,) = sum_up(*pieces).branches
    assert (found.executions, found.divergent) == (2, 1)


def test_nothing_gives_nothing():
    found = sum_up(TraceWriter(()).finish())
    assert (found.executions, found.divergent_ratio, found.lane_ratio) == (0, 0.0, None)


def test_the_paper_counts_threads_over_the_whole_kernel():
    writer = TraceWriter((), block_threads=(64, 1, 1))
    writer.enter(0, ALL).enter(0, ALL, warp=1)
    writer.enter(1, 0xFFFF).enter(1, 0xFFFF0000)  # 32 threads in two halves: convergent in its sense, divergent in ours
    writer.enter(2, 0xFFFF, warp=1)
    trace = writer.finish()
    found = measure_paper_branches(trace)
    assert (found.divergent, found.total) == (1, 4)
    assert sum_up(trace).divergent_entries == 3
