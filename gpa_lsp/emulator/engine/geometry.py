"""Where lanes are: :class:`Geometry` of a launch, :class:`Batch` of blocks, :class:`WarpSet` of warps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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
        """A value of each lane that never changes, see :meth:`Batch.build_column`; made once."""
        found = self._columns.get(name)
        if found is None:
            root = self.batch.root
            found = self.batch.build_column(name) if self is root else take_rows(root.column(name), self.ids)
            self._columns[name] = found
        return found

    def slots(self) -> npt.NDArray[np.int64]:
        """int64[w], which block of the batch each warp belongs to."""
        found = self._columns.get("slots")
        if found is None:
            found = self._columns["slots"] = self.ids // self.batch.geometry.warps_per_block
        return found  # type: ignore[no-any-return]


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
        self.geometry = geometry
        self.blocks = blocks
        self.memory = memory
        self.checks: SharedChecks | None = None
        self.clock = 0
        self.root = WarpSet(self, np.arange(len(blocks) * geometry.warps_per_block, dtype=np.int64))
        in_block = np.arange(geometry.lanes_per_block) < geometry.threads
        self.live = np.tile(in_block, len(blocks))
        self.live_count = geometry.threads * len(blocks)

    def count_live(self) -> npt.NDArray[np.int64]:
        """int64[k], live threads of each block."""
        return np.count_nonzero(self.live.reshape(len(self.blocks), -1), axis=1)

    def build_column(self, name: str) -> Value:
        """A constant value of each lane of the whole batch; uniform where all lanes agree whatever the batch.

        Args:
            name: ``tid.x`` … ``ctaid.z`` (uint32), ``laneid`` and ``warpid`` (uint32), ``lane`` (int64, number of the lane in the batch),
                ``slot`` (int64, block slot), ``lanemask_eq`` (uint32), ``smid`` (uint32), ``thread`` (int64, linear
                thread in the block), ``stamp`` (int64, the same at its place in a stamp of :mod:`.shared_checks`), ``shared.k`` (int64, where the block's shared memory
                begins, in elements of 2**k bytes).
        """
        geometry = self.geometry
        kind, _, axis = name.partition(".")
        if kind in ("tid", "ctaid"):
            extent = geometry.block if kind == "tid" else geometry.grid
            if extent["xyz".index(axis)] == 1:
                return np.uint32(0)
            if kind == "tid":
                return np.tile(_split_axis(np.arange(geometry.lanes_per_block), extent, axis), len(self.blocks))
            return self._repeat(_split_axis(self.blocks.astype(np.int64), extent, axis))
        lane = np.arange(self.root.lanes, dtype=np.int64)
        match kind:
            case "lane":
                return lane
            case "laneid":
                return (lane % WARP_LANES).astype(np.uint32)
            case "warpid":
                return (lane % geometry.lanes_per_block // WARP_LANES).astype(np.uint32)
            case "lanemask_eq":
                return np.uint32(1) << (lane % WARP_LANES).astype(np.uint32)
            case "smid":
                return self._repeat((self.blocks % geometry.sm_count).astype(np.uint32))
            case "slot":
                return lane // geometry.lanes_per_block
            case "thread":
                return lane % geometry.lanes_per_block
            case "stamp":
                return lane % geometry.lanes_per_block << 20
            case "shared":
                stride = geometry.shared_stride_bytes >> int(axis)
                return self._repeat(np.arange(len(self.blocks), dtype=np.int64) * stride)
        raise KeyError(name)

    def _repeat(self, of_blocks: Value) -> Value:
        if len(of_blocks) == 1:
            return of_blocks[0]
        return np.repeat(of_blocks, self.geometry.lanes_per_block)


def _split_axis(linear: npt.NDArray[np.int64], extent: tuple[int, int, int], axis: str) -> npt.NDArray[np.uint32]:
    x, y, _ = extent
    parts: dict[str, Any] = {"x": linear % x, "y": linear // x % y, "z": linear // (x * y)}
    return np.asarray(parts[axis], dtype=np.uint32)
