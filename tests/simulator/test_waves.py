"""From one SM to a launch: uneven grids."""

from gpa_lsp.execution.simulator.simulate import GridShape, SimulatedSm, simulate_grid
from gpa_lsp.execution.simulator.streams import Reduction, Streams
from tests.simulator.sm_notation import ALU, EXIT, LOAD, make_block, make_model, make_program

PROGRAM = make_program((LOAD, {"write": 0}), (ALU, {"wait": 1, "stall": 4}), (EXIT, {"stall": 5}))


def simulate(blocks: int) -> SimulatedSm:
    """A grid on ten SMs that hold four blocks each."""
    block = make_block(PROGRAM, warps=4)
    streams = Streams(blocks=(block,), reduction=Reduction(executions=len(block.rows), kept=len(block.rows)))
    shape = GridShape(blocks=blocks, sm_count=10, resident=4)
    return simulate_grid(PROGRAM, make_model(), streams, shape, most_issues=100_000)


def test_all_sms_are_alike_where_the_grid_is_even() -> None:
    even = simulate(40)
    assert even.active_cycles == even.cycles


def test_one_block_more_on_one_sm_makes_the_launch_longer_and_the_sms_hardly_busier() -> None:
    even, uneven = simulate(40), simulate(41)
    assert uneven.cycles > 1.1 * even.cycles
    assert even.active_cycles < uneven.active_cycles < 1.05 * even.active_cycles
    assert even.all_cycles.sum() < uneven.all_cycles.sum() < 1.05 * even.all_cycles.sum()
    assert even.simulated_blocks == 4 and uneven.simulated_blocks == 5
