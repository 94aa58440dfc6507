"""From one SM to a launch: how many blocks are simulated, and what stands for the others: :func:`simulate_launch`."""

from collections.abc import Callable
from math import ceil

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.simulator.accounts import Moment
from gpa_lsp.simulator.core import SmRun, simulate_sm
from gpa_lsp.simulator.machine import SmModel
from gpa_lsp.simulator.program import SassProgram
from gpa_lsp.simulator.reasons import REASON_COUNT
from gpa_lsp.simulator.streams import Streams, repeat_block

_MOST_WAVES = 12
"""Of a grid with more waves, those that are simulated at most."""
_FEWEST_WAVES = 2

Engine = Callable[..., SmRun]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridShape:
    """How a launch lies on a GPU.

    Attributes:
        blocks: of the grid.
        sm_count: SMs.
        resident: blocks an SM holds at once.
    """

    blocks: int
    sm_count: int
    resident: int

    @property
    def most_per_sm(self) -> int:
        """Blocks of the busiest SM."""
        return ceil(self.blocks / self.sm_count)

    @property
    def active_sms(self) -> int:
        """SMs that get a block."""
        return min(self.blocks, self.sm_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSm:
    """What the busiest SM did of a launch, from its first block to its last.

    Attributes:
        all_cycles: float64[rows + 1, reasons], warp cycles.
        idle_cycles: of them, those in which the scheduler issued nothing.
        cycles: it took.
        simulated_blocks: of the SM's.
        issued: warp instructions that were simulated.
        is_cut: the simulation ended before its blocks did.
    """

    all_cycles: npt.NDArray[np.float64]
    idle_cycles: npt.NDArray[np.float64]
    cycles: float
    simulated_blocks: int
    issued: int
    is_cut: bool


def count_simulated(shape: GridShape, executions: int, most_issues: int) -> int:
    """Blocks of an SM that are simulated.

    Args:
        shape: of the launch.
        executions: of a block.
        most_issues: warp instructions to simulate.
    """
    resident = min(shape.resident, shape.most_per_sm)
    waves = max(_FEWEST_WAVES, min(_MOST_WAVES, most_issues // max(1, executions * resident)))
    if shape.most_per_sm <= resident * waves:
        return shape.most_per_sm
    return resident * (waves - 1) + (shape.most_per_sm % resident or resident)


def simulate_grid(
    program: SassProgram,
    model: SmModel,
    streams: Streams,
    shape: GridShape,
    most_issues: int,
    engine: Engine = simulate_sm,
) -> SimulatedSm:
    """Simulate the busiest SM of a launch."""
    resident = min(shape.resident, shape.most_per_sm)
    executions = max(1, max(len(one.rows) for one in streams.blocks))
    count = count_simulated(shape, executions, most_issues)
    blocks = []
    for number in range(count):
        place = number * len(streams.blocks) // count
        blocks.append(repeat_block(streams.blocks[place], streams.private[place], number))
    run = engine(program, model, blocks, resident, 2 * most_issues)
    left = shape.most_per_sm - count
    return _extrapolate(run, count, left)


def _extrapolate(run: SmRun, count: int, left: int) -> SimulatedSm:
    first, last = run.moments[0], run.moments[-1]
    all_cycles, idle_cycles, cycles = _shape(last.all_cycles), _shape(last.idle_cycles), last.time
    if left > 0 and not run.is_cut:
        begin = first if len(run.moments) > 2 else Moment(time=0.0, blocks_done=0, all_cycles=[], idle_cycles=[])
        end = run.moments[1] if len(run.moments) > 2 else last
        turns = left / max(1, end.blocks_done - begin.blocks_done)
        for total, before, after in (
            (all_cycles, begin.all_cycles, end.all_cycles),
            (idle_cycles, begin.idle_cycles, end.idle_cycles),
        ):
            total += turns * (_shape(after) - (_shape(before) if before else 0.0))
        cycles += turns * (end.time - begin.time)
    elif run.is_cut:
        done = max(1, run.moments[-1].blocks_done)
        cycles *= (count + left) / done
    return SimulatedSm(
        all_cycles=all_cycles,
        idle_cycles=idle_cycles,
        cycles=cycles * run.dilation,
        simulated_blocks=count,
        issued=run.issued,
        is_cut=run.is_cut,
    )


def _shape(cycles: list[float]) -> npt.NDArray[np.float64]:
    return np.array(cycles, dtype=np.float64).reshape(-1, REASON_COUNT)
