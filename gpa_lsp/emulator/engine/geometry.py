"""Where lanes are: :class:`Geometry` of a launch, :class:`Batch` of blocks, :class:`WarpSet` of warps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpa_lsp.emulator.engine.columns import build_column
from gpa_lsp.emulator.engine.values import WARP_LANES, Value, take_rows

if TYPE_CHECKING:
    from gpa_lsp.emulator.engine.private_memory import BatchMemory
    from gpa_lsp.emulator.engine.shared_checks import SharedChecks


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Shape of a launch.

    Attributes:
        grid: blocks in x, y, z.
        block: threads in x, y, z.
        static_shared_bytes: of the kernel.
        dynamic_shared_bytes: of the launch.
        sm_count: multiprocessors that ``%nsmid`` tells of.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_shared_bytes: int
    dynamic_shared_bytes: int
    sm_count: int = 132

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def block_count(self) -> int:
        """Of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def warps_per_block(self) -> int:
        """The last one may have lanes without a thread."""
        return -(-self.threads // WARP_LANES)

    @property
    def lanes_per_block(self) -> int:
        """Of its warps, those without a thread included."""
        return self.warps_per_block * WARP_LANES

    @property
    def shared_bytes(self) -> int:
        """Of a block, static and dynamic."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def shared_stride_bytes(self) -> int:
        """From one block's shared memory to the next one's in a batch: whole 128-byte rows."""
        return -(-self.shared_bytes // 128) * 128


class WarpSet:
    """Some whole warps of a batch.

    Attributes:
        batch: the batch.
        ids: int64[w], their numbers in the batch, ascending: block slot x warps per block + warp.
        lanes: 32 w.
    """

    __slots__ = ("_columns", "batch", "ids", "lanes")

    def __init__(self, batch: "Batch", ids: npt.NDArray[np.int64]) -> None:
        self.batch = batch
        self.ids = ids
        self.lanes = len(ids) * WARP_LANES
        self._columns: dict[str, Value] = {}

    def column(self, name: str) -> Value:
        """A value of each lane that never changes, see :func:`.columns.build_column`; made once."""
        found = self._columns.get(name)
        if found is None:
            root = self.batch.root
            found = build_column(self.batch, name) if self is root else take_rows(root.column(name), self.ids)
            self._columns[name] = found
        return found

    def slots(self) -> npt.NDArray[np.int64]:
        """int64[w], which block of the batch each warp belongs to."""
        found = self._columns.get("slots")
        if found is None:
            found = self._columns["slots"] = self.ids // self.batch.geometry.warps_per_block
        return found


class Batch:
    """Blocks that are executed together.

    Attributes:
        geometry: of the launch.
        blocks: uint32[k], linear indexes; a block's place here is its *slot*.
        root: all its warps.
        live: bool[n] over all lanes: threads that exist and have not exited.
        live_count: how many.
        memory: shared and local memory.
        checks: of races on shared memory; None when they are off.
        clock: warp instructions executed so far in the whole emulation: what ``%clock`` reads.
    """

    __slots__ = ("blocks", "checks", "clock", "geometry", "live", "live_count", "memory", "root")

    def __init__(self, geometry: Geometry, blocks: npt.NDArray[np.uint32], memory: "BatchMemory") -> None:
        self.geometry: Geometry = geometry
        self.blocks: npt.NDArray[np.uint32] = blocks
        self.memory = memory
        self.checks: SharedChecks | None = None
        self.clock = 0
        self.root = WarpSet(self, np.arange(len(blocks) * geometry.warps_per_block, dtype=np.int64))
        in_block = np.arange(geometry.lanes_per_block) < geometry.threads
        self.live = np.tile(in_block, len(blocks))
        self.live_count = geometry.threads * len(blocks)

    def count_live(self) -> npt.NDArray[np.int64]:
        """int64[k], live threads of each block."""
        counts: npt.NDArray[np.int64] = np.count_nonzero(self.live.reshape(len(self.blocks), -1), axis=1)
        return counts
