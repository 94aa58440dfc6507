"""One simulated SM: who waits for what, and how long."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.execution.simulator.program import ADU, Kind, OpcodeCourse
from gpa_lsp.execution.simulator.reasons import REASON_COUNT, REASONS
from gpa_lsp.execution.simulator.simulate import GridShape, simulate_grid
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm
from gpa_lsp.execution.simulator.warp_walk import LOCAL_BASE, Streams
from tests.simulator.sm_notation import (
    ALU,
    BARRIER,
    EXIT,
    FMA,
    LOAD,
    SHARED,
    STORE,
    is_same,
    make_block,
    make_model,
    make_program,
    read_cycles,
    sum_cycles,
)

MOST = 100_000


def test_a_stall_count_is_waited_for_at_the_next_instruction() -> None:
    program = make_program((ALU, {"stall": 6}), (ALU, {}), (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(), [make_block(program, warps=1)], 1, MOST)
    assert read_cycles(run, 0) == {"selected": 1.0}
    assert read_cycles(run, 1) == {"selected": 1.0, "wait": 5.0}
    assert run.issued == 3
    assert not run.is_cut


def test_a_load_is_waited_for_by_its_scoreboard() -> None:
    program = make_program((LOAD, {"write": 0}), (ALU, {"wait": 1}), (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(), [make_block(program, warps=1)], 1, MOST)
    found = read_cycles(run, 1)
    # four sectors at 8 bytes a cycle, behind L2's queue, then the way from DRAM
    assert found["long_scoreboard"] == pytest.approx(500 + 4 * 32 / 8, abs=20)
    assert "short_scoreboard" not in found


def test_shared_memory_takes_a_cycle_per_pass_and_counts_as_short_scoreboard() -> None:
    program = make_program((SHARED, {"write": 0}), (ALU, {"wait": 1}), (EXIT, {"stall": 5}))
    block = make_block(program, warps=1)
    conflicted = make_block(program, warps=1)
    conflicted.passes[0] = 32
    model = make_model()
    fast, slow = (simulate_sm(program, model, [one], 1, MOST) for one in (block, conflicted))
    difference = read_cycles(slow, 1)["short_scoreboard"] - read_cycles(fast, 1)["short_scoreboard"]
    assert difference == 31


def test_what_l1_holds_is_not_asked_of_l2_again() -> None:
    program = make_program((LOAD, {"write": 0}), (LOAD, {"write": 1, "wait": 1}), (EXIT, {"stall": 5, "wait": 2}))
    block = make_block(program, warps=1)
    block.sectors[4:] = block.sectors[:4]
    run = simulate_sm(program, make_model(), [block], 1, MOST)
    assert read_cycles(run, 1)["long_scoreboard"] > 400
    assert read_cycles(run, 2)["long_scoreboard"] < 50


def test_reads_and_stores_share_dram() -> None:
    program = make_program((LOAD, {"write": 0}), (STORE, {"wait": 1}), (EXIT, {"stall": 5}))
    blocks = [make_block(program, warps=8, first=number << 10) for number in range(60)]
    run = simulate_sm(program, make_model(written_back_ratio=1.0), blocks, 6, MOST)
    assert run.moments[-1].time == pytest.approx(60 * 8 * 2 * 128 / 8, rel=0.1)
    assert sum_cycles(run, "long_scoreboard") > 4 * sum_cycles(run, "drain")


def test_a_barrier_is_waited_for_at_the_instruction_behind_it() -> None:
    program = make_program((BARRIER, {"stall": 6}), (ALU, {}), (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(warp_launch_cycles=50.0), [make_block(program, warps=8)], 1, MOST)
    assert read_cycles(run, 1)["barrier"] > 4 * 50
    assert "barrier" not in read_cycles(run, 0)


def test_warps_compute_behind_a_barrier_that_defers() -> None:
    deferring = OpcodeCourse(kind=Kind.BARRIER, defers=True)
    program = make_program((deferring, {}), (FMA, {}), (FMA, {}), (SHARED, {}), (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(warp_launch_cycles=50.0), [make_block(program, warps=8)], 1, MOST)
    assert "barrier" not in read_cycles(run, 1) | read_cycles(run, 2)
    assert read_cycles(run, 3)["barrier"] > 4 * 45


def test_a_barrier_opens_for_those_that_are_left() -> None:
    program = make_program((BARRIER, {"stall": 6}), (EXIT, {"stall": 5}))
    whole = make_block(program, warps=2)
    columns = {
        name: getattr(whole, name)[1:]
        for name in ("passes", "lines", "masked", "first_sector", "last_sector", "weights")
    }
    block = replace(whole, rows=np.array([0, 1, 1], np.int32), starts=np.array([0, 2, 3]), **columns)
    alone = make_block(make_program((EXIT, {"stall": 5})), warps=1)
    run = simulate_sm(program, make_model(), [block, alone], 2, MOST)
    assert run.moments[-1].blocks_done == 2
    assert not run.is_cut


def test_a_busy_pipe_throttles_and_one_warp_is_selected_at_a_time() -> None:
    program = make_program(*[(ALU, {})] * 20, (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(), [make_block(program, warps=32)], 1, MOST)
    assert sum_cycles(run, "selected") == 32 * 21
    assert sum_cycles(run, "math_pipe_throttle") > 3 * sum_cycles(run, "selected")
    assert run.moments[-1].time >= 8 * 20 * 2


def test_a_warp_goes_on_until_it_yields() -> None:
    def find_wait(yields: int) -> float:
        program = make_program(*[(FMA, {"yields": yields})] * 30, (EXIT, {"stall": 5}))
        run = simulate_sm(program, make_model(), [make_block(program, warps=8)], 1, MOST)
        return read_cycles(run, 0).get("not_selected", 0.0)

    assert find_wait(0) == pytest.approx(4 * 30, abs=8)
    assert find_wait(1) < 8


def test_warps_that_yielded_come_behind_the_others() -> None:
    program = make_program(*[(FMA, {"stall": 2, "yields": 1}), (FMA, {"stall": 2})] * 20, (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(), [make_block(program, warps=24)], 1, MOST)
    yielded, kept = (
        sum(read_cycles(run, row).get("not_selected", 0.0) for row in range(first, 40, 2)) for first in (1, 2)
    )
    assert yielded > 5 * kept


def test_full_queues_throttle_by_what_is_in_front_of_them() -> None:
    loads = make_program(*[(LOAD, {"write": 0})] * 12, (EXIT, {"stall": 5}))
    shared = make_program(*[(SHARED, {"write": 0})] * 12, (EXIT, {"stall": 5}))
    model = make_model()
    by_loads = simulate_sm(loads, model, [make_block(loads, warps=32)], 1, MOST)
    by_shared = simulate_sm(shared, model, [make_block(shared, warps=32)], 1, MOST)
    assert sum_cycles(by_loads, "lg_throttle") > 0
    assert sum_cycles(by_loads, "mio_throttle") == 0
    assert sum_cycles(by_shared, "mio_throttle") > 0
    assert sum_cycles(by_shared, "lg_throttle") == 0


def test_every_cycle_of_every_warp_is_accounted_for() -> None:
    program = make_program((LOAD, {"write": 0, "stall": 4}), (ALU, {"wait": 1, "stall": 4}), (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(), [make_block(program, warps=4)], 1, MOST)
    ends = run.moments[-1].time
    assert sum(run.moments[-1].all_cycles) <= 4 * ends
    assert sum(run.moments[-1].all_cycles) >= 0.95 * 4 * ends
    pairs = zip(run.moments[-1].idle_cycles, run.moments[-1].all_cycles, strict=True)
    assert all(0 <= idle <= every for idle, every in pairs)
    assert sum(run.moments[-1].idle_cycles[REASONS.index("selected") :: REASON_COUNT]) == 0


def test_executions_that_stand_for_others_count_for_them() -> None:
    program = make_program((ALU, {"stall": 6}), (ALU, {}), (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(), [make_block(program, warps=1, weight=10.0)], 1, MOST)
    assert read_cycles(run, 1) == {"selected": 10.0, "wait": 50.0}
    assert run.dilation == pytest.approx(10.0)


def test_the_budget_ends_a_run_and_says_so() -> None:
    program = make_program(*[(ALU, {})] * 50, (EXIT, {"stall": 5}))
    run = simulate_sm(program, make_model(), [make_block(program, warps=8) for _ in range(10)], 2, 300)
    assert run.is_cut
    assert 300 <= run.issued < 400


def test_the_same_blocks_take_the_same_time_again() -> None:
    program = make_program((LOAD, {"write": 0}), (ALU, {"wait": 1}), (STORE, {}), (EXIT, {"stall": 5}))
    blocks = [make_block(program, warps=8, first=number << 12) for number in range(12)]
    first, second = (simulate_sm(program, make_model(), blocks, 4, MOST) for _ in range(2))
    assert is_same(first, second)


def test_an_sm_that_holds_one_block_goes_on_as_it_began() -> None:
    program = make_program((ALU, {"stall": 100}), (EXIT, {"stall": 5}))
    block = make_block(program, warps=4)
    times = []
    for blocks in (2, 20):
        shape = GridShape(blocks=blocks, sm_count=1, resident=1)
        streams = Streams(blocks=(block,), left_out=0.0)
        run = simulate_grid(program, make_model(), streams, shape, most_issues=16)
        assert run.simulated_blocks == 2
        times.append(run.cycles)
    assert times[1] == pytest.approx(10 * times[0])


def test_stores_take_lines_of_l1() -> None:
    def time_second_load(stores: int) -> float:
        """Cycles of a load of what was loaded before, after stores elsewhere."""
        rows = [(LOAD, {"write": 0}), (ALU, {"wait": 1})]
        program = make_program(*rows, *[(STORE, {})] * stores, *rows, (EXIT, {}))
        block = make_block(program, warps=1)
        sectors = block.sectors.copy()
        sectors[-4:] = sectors[:4]
        run = simulate_sm(program, make_model(l1_lines=2), [replace(block, sectors=sectors)], 1, 1000)
        return sum(read_cycles(run, len(program.kind) - 2).values())

    assert time_second_load(2) - time_second_load(0) > 150, "the line that was loaded had to make way"


def test_what_was_stored_to_local_memory_is_in_l1() -> None:
    program = make_program((STORE, {}), (LOAD, {"write": 0}), (ALU, {"wait": 1}), (EXIT, {}))
    block = make_block(program, warps=1)
    stored = block.sectors[:4]
    waited = []
    for first in (0, LOCAL_BASE // 32):
        both = np.concatenate([stored, stored]) + first
        run = simulate_sm(program, make_model(), [replace(block, sectors=both)], 1, 1000)
        waited.append(read_cycles(run, 2)["long_scoreboard"])
    assert waited[0] - waited[1] > 150


def test_constants_that_differ_among_lanes_come_one_by_one() -> None:
    special = replace(ALU, kind=Kind.SPECIAL, unit=ADU, latency=26.0, is_shared_unit=True)
    program = make_program((special, {"write": 0}), (ALU, {"wait": 1}), (EXIT, {}))
    block = make_block(program, warps=1)
    times = [
        simulate_sm(program, make_model(), [replace(block, passes=np.array([passes, 0, 0], np.int32))], 1, 1000)
        .moments[-1]
        .time
        for passes in (1, 32)
    ]
    assert times[1] - times[0] == 31 * special.interval
