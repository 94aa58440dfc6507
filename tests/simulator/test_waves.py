"""One SM stands for a launch, of even and uneven grids."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.execution.simulator.simulate import GridShape, SimulatedSm, simulate_grid
from gpa_lsp.execution.simulator.warp_walk import Streams
from tests.simulator.sm_notation import ALU, EXIT, LOAD, make_block, make_model, make_program

PROGRAM = make_program((LOAD, {"write": 0}), (ALU, {"wait": 1, "stall": 4}), (EXIT, {"stall": 5}))


def simulate(blocks: int) -> SimulatedSm:
    """A grid on ten SMs that hold four blocks each."""
    block = make_block(PROGRAM, warps=4)
    streams = Streams(blocks=(block,), left_out=0.0)
    shape = GridShape(blocks=blocks, sm_count=10, resident=4)
    return simulate_grid(PROGRAM, make_model(), streams, shape, most_issues=100_000)


_ROOF_BYTES_PER_CYCLE = 16.0  # Of DRAM, for all SMs: what bounds them


def simulate_split(blocks: int, sm_count: int, warps: int) -> float:
    """Cycles of loads that were split into blocks of so many warps."""
    block = make_block(PROGRAM, warps=warps, sectors=16)
    block = replace(block, is_private=np.ones(len(block.sectors), dtype=np.bool_))
    streams = Streams(blocks=(block,), left_out=0.0)
    shape = GridShape(blocks=blocks, sm_count=sm_count, resident=32 // warps)
    share = min(64.0, _ROOF_BYTES_PER_CYCLE / shape.sharing_sms)
    model = make_model(dram_bytes_per_cycle=share, l2_bytes_per_cycle=64.0)
    return simulate_grid(PROGRAM, model, streams, shape, most_issues=100_000).cycles


@pytest.mark.parametrize("sm_count", [7, 10, 46, 100, 108, 132, 170])
def test_no_split_of_the_same_work_becomes_slower_by_sharing_bandwidth(sm_count: int) -> None:
    """However many SMs have blocks, and however many blocks the busiest of them: the bandwidth is that of the whole GPU."""
    for whole in (32, 64, 96, 512):
        times = [simulate_split(whole * parts, sm_count, 16 // parts) for parts in (1, 2, 4)]
        moved = whole * 16 * 16 * 32
        assert all(one >= moved / _ROOF_BYTES_PER_CYCLE for one in times)
        assert max(times) <= 1.05 * min(times)


def test_all_sms_are_alike_where_the_grid_is_even() -> None:
    even = simulate(40)
    assert even.active_cycles == even.cycles


def test_one_block_more_on_one_sm_makes_the_launch_longer_and_the_sms_hardly_busier() -> None:
    even, uneven = simulate(40), simulate(41)
    assert uneven.cycles > 1.1 * even.cycles
    assert even.active_cycles < uneven.active_cycles < 1.05 * even.active_cycles
    assert even.all_cycles.sum() < uneven.all_cycles.sum() < 1.05 * even.all_cycles.sum()
    assert even.simulated_blocks == 4 and uneven.simulated_blocks == 5
