"""Kernels that only store: what the bandwidth costs, and where their warps wait for it."""

import pytest

from gpa_lsp.execution.simulator.reasons import SmRun
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm
from tests.simulator.sm_notation import ALU, EXIT, STORE, find_share, make_block, make_model, make_program, read_cycles

BLOCKS, WARPS, SECTORS = 200, 8, 4
BYTES = BLOCKS * WARPS * SECTORS * 32
FREELY = 1_000_000


def simulate(*, stores: int = 1, blocks: int = BLOCKS, warps: int = WARPS, **changes: float) -> SmRun:
    """Blocks whose warps store so often, six at a time."""
    program = make_program((ALU, {"stall": 4}), *[(STORE, {"stall": 2})] * stores, (EXIT, {"stall": 5}))
    listed = [make_block(program, warps=warps, sectors=SECTORS, first=number << 12) for number in range(blocks)]
    return simulate_sm(program, make_model(**changes), listed, 6, FREELY)


def test_a_store_has_ended_when_it_has_left_for_l2() -> None:
    model = make_model()
    run = simulate(blocks=1, warps=1, written_back_ratio=1.0)
    found = read_cycles(run, 3)  # behind the exit
    sent = SECTORS * 32 / model.store_bytes_per_cycle
    assert found["drain"] == pytest.approx(model.store_retire_cycles + sent + model.queue_cycles - 15, abs=12)
    assert run.moments[-1].time < model.dram_cycles


def test_what_l2_keeps_takes_the_way_there_alone_and_drains() -> None:
    run = simulate()
    assert run.moments[-1].time == pytest.approx(BYTES / make_model().store_bytes_per_cycle, rel=0.05)
    assert find_share(run, "drain") > 0.8
    assert find_share(run, "lg_throttle") < 0.01


def test_what_has_to_make_way_takes_as_long_as_dram() -> None:
    run = simulate(written_back_ratio=1.0)
    assert run.moments[-1].time == pytest.approx(BYTES / make_model().dram_bytes_per_cycle, rel=0.05)


def test_a_full_queue_pushes_back_to_where_stores_are_issued() -> None:
    pushed, free = simulate(written_back_ratio=1.0), simulate(written_back_ratio=1.0, store_queue_instructions=10_000)
    assert pushed.moments[-1].time == free.moments[-1].time
    assert find_share(free, "lg_throttle") < 0.01
    assert find_share(pushed, "lg_throttle") > 0.05
    assert find_share(pushed, "drain") < find_share(free, "drain")


def test_the_more_a_warp_stores_the_less_of_it_is_drain() -> None:
    runs = [simulate(stores=count, written_back_ratio=1.0) for count in (1, 4, 16)]
    shares, throttled = ([find_share(run, reason) for run in runs] for reason in ("drain", "lg_throttle"))
    assert shares == sorted(shares, reverse=True)
    assert throttled == sorted(throttled)
    assert throttled[-1] > shares[-1]
