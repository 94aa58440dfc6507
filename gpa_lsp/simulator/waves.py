"""From some blocks to all of an SM: how many are simulated, and what stands for the others: :func:`simulate_grid`."""

from dataclasses import replace
from math import ceil

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.simulator.accounts import Moment, SmRun
from gpa_lsp.simulator.machine import SmModel
from gpa_lsp.simulator.program import SassProgram
from gpa_lsp.simulator.reasons import REASON_COUNT
from gpa_lsp.simulator.streaming_multiprocessor import simulate_sm
from gpa_lsp.simulator.streams import Streams

_MOST_WAVES = 12
"""Of a grid with more waves, those that are simulated at most."""
_FEWEST_WAVES = 2
_MOST_WHOLE = 4_000_000
"""Warp instructions up to which blocks are simulated to their end even where their loops could not be shortened to what was asked for."""
_STEADY_MOMENTS = 3
"""A run with blocks that followed others has a beginning, an end, and a steady state between them."""

Floats = npt.NDArray[np.float64]


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

    @property
    def mean_load(self) -> float:
        """Blocks of an SM that has any, over those of the busiest one."""
        return self.blocks / self.active_sms / self.most_per_sm

    @property
    def busiest_ratio(self) -> float:
        """Of the SMs that have a block, those with as many as the busiest one; the others have one less.

        >>> round(GridShape(blocks=1024, sm_count=170, resident=6).busiest_ratio * 170)
        4
        """
        return self.blocks / self.active_sms - self.most_per_sm + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSm:
    """What an SM did of a launch, from its first block to its last: the mean of those that have a block, but for the time of the busiest one.

    Attributes:
        all_cycles: float64[rows + 1, reasons], warp cycles.
        idle_cycles: of them, those in which the scheduler issued nothing.
        cycles: the busiest one took.
        active_cycles: they took on average.
        moved: as in :class:`~gpa_lsp.simulator.accounts.Moment`.
        simulated_blocks: of the busiest SM's.
        issued: warp instructions that were simulated.
        is_cut: the simulation ended before its blocks did.
    """

    all_cycles: Floats
    idle_cycles: Floats
    cycles: float
    active_cycles: float
    moved: Floats
    simulated_blocks: int
    issued: int
    is_cut: bool


def count_simulated(shape: GridShape, executions: int, most_issues: int) -> int:
    """Blocks of an SM that are simulated.

    Args:
        shape: of the launch.
        executions: of a block.
        most_issues: warp instructions to simulate.

    >>> count_simulated(GridShape(blocks=1000, sm_count=10, resident=4), executions=100, most_issues=10_000)
    48
    >>> count_simulated(GridShape(blocks=1000, sm_count=10, resident=4), executions=1000, most_issues=10_000)
    8
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
    *,
    most_issues: int,
) -> SimulatedSm:
    """Simulate the busiest SM of a launch, and one with a block less where that is all it has."""
    resident = min(shape.resident, shape.most_per_sm)
    count = count_simulated(shape, max(len(one.rows) for one in streams.blocks), most_issues)
    places = [number * len(streams.blocks) // count for number in range(count)]
    blocks = [replace(streams.blocks[place], repetition=number) for number, place in enumerate(places)]
    executions = sum(len(one.rows) for one in blocks)
    most = max(2 * most_issues, min(executions, _MOST_WHOLE))
    run = simulate_sm(program, model, blocks, resident, most)
    total = _extrapolate(run, executions, count, shape.most_per_sm - count)
    mean, issued = total * shape.mean_load, run.issued
    if count == shape.most_per_sm > 1 and shape.mean_load < 1 and not run.is_cut:
        # what the last block of some SMs does alone is little of what is sampled
        fewer = simulate_sm(program, model, blocks[:-1], min(resident, count - 1), most)
        mean = total * shape.busiest_ratio + _join(fewer.moments[-1]) * (1.0 - shape.busiest_ratio)
        issued += fewer.issued
    size = len(run.moments[-1].all_cycles)
    return SimulatedSm(
        all_cycles=mean[:size].reshape(-1, REASON_COUNT),
        idle_cycles=mean[size : 2 * size].reshape(-1, REASON_COUNT),
        cycles=float(total[-1]) * run.dilation,
        active_cycles=float(mean[-1]) * run.dilation,
        moved=mean[2 * size : -1] * run.dilation,
        simulated_blocks=count,
        issued=issued,
        is_cut=run.is_cut,
    )


def _extrapolate(run: SmRun, executions: int, count: int, left: int) -> Floats:
    """The SM's whole work: what was not simulated goes as the steady state does."""
    last = run.moments[-1]
    total = _join(last)
    if run.is_cut:
        return total * (executions / run.issued * (count + left) / count)
    if left > 0:
        first, end = _find_steady(run)
        done = end.blocks_done - (0 if first is None else first.blocks_done)
        steady = _join(end) if first is None else _join(end) - _join(first)
        total += steady * (left / max(1, done))
    return total


def _find_steady(run: SmRun) -> tuple[Moment | None, Moment]:
    """Between which moments blocks follow blocks; the whole run where no block ended between the first that followed and the last."""
    if len(run.moments) == _STEADY_MOMENTS and run.moments[1].blocks_done > run.moments[0].blocks_done:
        return run.moments[0], run.moments[1]
    return None, run.moments[-1]


def _join(moment: Moment) -> Floats:
    """Everything of a moment that adds up, the time last."""
    return np.concatenate([moment.all_cycles, moment.idle_cycles, [*moment.moved, moment.time]])
