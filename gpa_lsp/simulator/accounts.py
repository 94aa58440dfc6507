"""Who waited for what, and how long: :class:`StallAccounts`, and what came of it, :class:`SmRun`."""

from dataclasses import field

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.simulator.reasons import REASON_COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What was added up until a moment of the simulation.

    Attributes:
        time: the cycle.
        blocks_done: that had ended.
        all_cycles: float64, warp cycles by row and reason, rows one after the other.
        idle_cycles: float64, of them, those in which the scheduler issued nothing.
        moved: bytes of DRAM and of L2, cycles of L1's tags and of shared memory, and instructions issued.
    """

    time: float
    blocks_done: int
    all_cycles: npt.NDArray[np.float64] = field(repr=False)
    idle_cycles: npt.NDArray[np.float64] = field(repr=False)
    moved: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmRun:
    """What one SM did.

    Attributes:
        moments: when the first blocks had ended and when the last one began, where blocks followed others, and the end.
        dilation: warp cycles with those of the turns that were left out, over those simulated.
        issued: warp instructions that were simulated.
        is_cut: the budget ended it.
    """

    moments: tuple[Moment, ...]
    dilation: float
    issued: int
    is_cut: bool


class StallAccounts:
    """Warp cycles by row and reason. What stands for several executions counts several times.

    Attributes:
        weighted: all of them.
        plain: all of them, each counted once.
    """

    def __init__(self, rows: int) -> None:
        self.all_cycles = [0.0] * (rows * REASON_COUNT)
        self.idle_cycles = [0.0] * (rows * REASON_COUNT)
        self.weighted = self.plain = 0.0

    def add(self, index: int, cycles: float, weight: float, idle_share: float) -> None:
        """Add cycles.

        Args:
            index: the row times the number of reasons, and the reason.
            cycles: one execution's.
            weight: executions it stands for.
            idle_share: of the cycles, those in which the scheduler issued nothing.
        """
        counted = cycles * weight
        self.all_cycles[index] += counted
        self.idle_cycles[index] += counted * idle_share
        self.weighted += counted
        self.plain += cycles
