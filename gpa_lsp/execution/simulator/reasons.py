"""Stall reasons of the simulator by number, with the profiler's names, and the run of an SM by reason: :class:`SmRun`."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.foundation.records import ColumnRecord

(
    SELECTED,
    NOT_SELECTED,
    WAIT,
    BRANCH_RESOLVING,
    NO_INSTRUCTIONS,
    LONG_SCOREBOARD,
    SHORT_SCOREBOARD,
    IMC_MISS,
    BARRIER,
    MEMBAR,
    MATH_PIPE_THROTTLE,
    LG_THROTTLE,
    MIO_THROTTLE,
    TEX_THROTTLE,
    DRAIN,
    DISPATCH_STALL,
) = range(16)

# In Nsight Compute's spelling, by number
REASONS = (
    "selected",
    "not_selected",
    "wait",
    "branch_resolving",
    "no_instructions",
    "long_scoreboard",
    "short_scoreboard",
    "imc_miss",
    "barrier",
    "membar",
    "math_pipe_throttle",
    "lg_throttle",
    "mio_throttle",
    "tex_throttle",
    "drain",
    "dispatch_stall",
)

REASON_COUNT = len(REASONS)


class Moment(ColumnRecord, frozen=True, kw_only=True):
    """Sums until a moment of the simulation."""

    time: float  # the cycle
    blocks_done: int  # that had ended
    all_cycles: npt.NDArray[np.float64]  # float64, warp cycles by row and reason, rows one after the other
    idle_cycles: npt.NDArray[np.float64]  # float64, of them, those in which the scheduler issued nothing
    # bytes of DRAM and of L2, cycles of L1's tags and of shared memory, and instructions issued
    moved: tuple[float, ...]


class SmRun(Struct, frozen=True, kw_only=True):
    """Result of one simulated SM."""

    # when the first blocks had ended and when the last one began, where blocks followed others, and the end
    moments: tuple[Moment, ...]
    dilation: float  # warp cycles with those of the turns that were left out, over those simulated
    issued: int  # warp instructions that were simulated
    is_cut: bool  # the budget ended it
