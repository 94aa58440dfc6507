"""What a launch's instructions are executed and move, by the profiler's names of counters per instruction: :func:`count_instructions`.

Counts are of the walked blocks, in proportion to the executions of the whole grid.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.opcodes import MemorySpace
from gpa_lsp.dataflow.accesses import GLOBAL_SPACES, MOVES, SECTOR_BYTES, count_access_bytes, mark_accesses
from gpa_lsp.rows.model import KernelRows
from gpa_lsp.simulator.warp_walk import LINE_SECTORS, LOCAL_SECTOR, KernelWalk

_WAVEFRONT_BYTES = 128
"""A pass through shared memory serves a word of each of its banks."""

_WARPS, _LANES = "inst_executed", "thread_inst_executed_true"
_LINES = "memory_l1_tag_requests_global"
_SECTORS = "memory_l2_theoretical_sectors_{}"
_WAVEFRONTS = "memory_l1_wavefronts_shared"
_IDEAL = "{}_ideal"

Counts = npt.NDArray[np.int64]
_Sums = npt.NDArray[np.float64]


def count_instructions(rows: KernelRows, walk: KernelWalk) -> Mapping[str, Counts]:
    """The profiler's name of a counter → int64[r], counts over the grid by row.

    The least that could do is what as many lanes would move if they accessed neighbouring elements, in each execution at least one.
    """
    wide = rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    moved = _Moved(len(rows), wide)
    for one in walk.walks:
        moved.add(one.instruction, one.active, np.diff(one.first_sector), one.wavefronts)
        moved.add_launched(one.instruction, one.first_sector, one.sectors)
    scale = np.divide(walk.executed, moved.executions, out=np.zeros(len(rows)), where=moved.executions > 0)
    is_global = mark_accesses(rows, GLOBAL_SPACES, MOVES)
    is_shared = mark_accesses(rows, (MemorySpace.SHARED,), MOVES)
    is_local = mark_accesses(rows, (MemorySpace.LOCAL,), MOVES)
    own_sectors = moved.sectors - moved.local_sectors
    found = {
        _WARPS: walk.executed,
        _LANES: walk.thread_executed,
        _LINES: np.where(is_global, moved.lines * scale, 0.0),
        _SECTORS.format("global"): np.where(is_global, own_sectors * scale, 0.0),
        _IDEAL.format(_SECTORS.format("global")): np.where(
            is_global, np.minimum(moved.ideal_sectors, own_sectors) * scale, 0.0
        ),
        _SECTORS.format("local"): np.where(is_local | is_global, moved.local_sectors * scale, 0.0),
        _WAVEFRONTS: np.where(is_shared, moved.wavefronts * scale, 0.0),
        _IDEAL.format(_WAVEFRONTS): np.where(is_shared, moved.ideal_wavefronts * scale, 0.0),
    }
    return {name: np.rint(counts).astype(np.int64) for name, counts in found.items()}


class _Moved:
    """Sums over executions, by row.

    Args:
        count: of rows.
        width_bytes: int64[r], of one lane's access.
    """

    def __init__(self, count: int, width_bytes: npt.NDArray[np.int64]) -> None:
        self._count, self._width_bytes = count, width_bytes
        self.executions, self.sectors = np.zeros(count), np.zeros(count)
        self.local_sectors, self.lines = np.zeros(count), np.zeros(count)
        self.wavefronts, self.ideal_sectors, self.ideal_wavefronts = np.zeros(count), np.zeros(count), np.zeros(count)

    def add(
        self,
        instruction: npt.NDArray[np.int32],
        active: npt.NDArray[np.uint32],
        sectors: Counts,
        wavefronts: npt.NDArray[np.uint16],
    ) -> None:
        """The executions of a warp."""
        asked_bytes = self._width_bytes[instruction] * np.bitwise_count(active).astype(np.int64)
        self.executions += self._sum(instruction, None)
        self.sectors += self._sum(instruction, sectors)
        self.wavefronts += self._sum(instruction, wavefronts)
        self.ideal_sectors += self._sum(instruction, np.minimum(-(-asked_bytes // SECTOR_BYTES), sectors))
        self.ideal_wavefronts += self._sum(instruction, np.minimum(-(-asked_bytes // _WAVEFRONT_BYTES), wavefronts))

    def add_launched(self, instruction: npt.NDArray[np.int32], first_sector: Counts, sectors: Counts) -> None:
        """Its sectors: those of local memory, and the lines of global memory that they lie in."""
        if not len(sectors):
            return
        of_sector = np.repeat(instruction, np.diff(first_sector))
        is_local = sectors >= LOCAL_SECTOR
        begins_line = np.diff(sectors // LINE_SECTORS, prepend=-1) != 0
        begins_line[first_sector[:-1][first_sector[:-1] < len(sectors)]] = True
        self.local_sectors += self._sum(of_sector, is_local)
        self.lines += self._sum(of_sector, begins_line & ~is_local)

    def _sum(self, instruction: npt.NDArray[np.int32], numbers: npt.NDArray[np.generic] | None) -> _Sums:
        weights = None if numbers is None else numbers.astype(np.float64)
        return np.bincount(instruction, weights=weights, minlength=self._count).astype(np.float64)
