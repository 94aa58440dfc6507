"""Lanes: their positions in a :class:`Geometry`, in :class:`Blocks` executed together and in a :class:`WarpSet`; values of their registers."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

# Array [n] over the lanes of a warp set, or a numpy scalar (*uniform*). Its dtype has the width of the register; which of the dtypes of that width it
# is depends on its writer, and readers view it as they need. No value is modified in place.
Value = Any

U32 = np.dtype(np.uint32)
U64 = np.dtype(np.uint64)
I64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
WARP_LANES = 32


def take_rows(value: Value, rows: Value) -> Value:
    """The value over some of the warps.

    Args:
        rows: int[w], positions of warps in that set.
    """
    if not value.ndim:
        return value
    return value.reshape(-1, WARP_LANES)[rows].reshape(-1)


def find_active_rows(mask: Value) -> Value:
    """Whether each warp has any lane set: bool[w] of a contiguous mask bool[32w]."""
    words = mask.view(np.uint64).reshape(-1, 4)
    return (words[:, 0] | words[:, 1] | words[:, 2] | words[:, 3]) != 0


def pack_lanes(mask: Value) -> Value:
    """The mask bool[32w] or bool[w, 32] as uint32[w], bit i for lane i of each warp."""
    return np.packbits(mask, bitorder="little").view("<u4")


def unpack_lanes(masks: "npt.NDArray[np.uint32]") -> "npt.NDArray[np.bool_]":
    """bool[w, 32] of uint32[w], lane i for bit i."""
    as_bytes = np.ascontiguousarray(masks, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(as_bytes, axis=1, bitorder="little").view(np.bool_)


class Geometry(Struct, frozen=True, kw_only=True):
    """Shape of a launch."""

    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    static_shared_bytes: int  # of the kernel
    dynamic_shared_bytes: int  # of the launch
    sm_count: int = 132  # multiprocessors that ``%nsmid`` tells of
    workspace: int = 0  # address of what the blocks of a cooperative launch meet by; 0 where the launch is none
    cluster: tuple[int, int, int] | None = None  # blocks of a cluster in x, y, z; None where none is told

    @property
    def threads(self) -> int:
        """Threads per block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def block_count(self) -> int:
        """Blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def cluster_shape(self) -> tuple[int, int, int]:
        """Blocks of a cluster in x, y, z."""
        return self.cluster or (1, 1, 1)

    @property
    def cluster_blocks(self) -> int:
        """Blocks of a cluster."""
        return prod(self.cluster_shape)

    def complete_clusters(self, chosen: "range | npt.NDArray[np.uint32]") -> "range | npt.NDArray[np.uint32]":
        """All blocks of the clusters of some blocks, cluster by cluster, each in the order of the ranks of its blocks.

        Args:
            chosen: linear indexes, ascending; a range begins with 0.
        """
        if self.cluster_blocks == 1:
            return chosen
        if isinstance(chosen, range) and self.cluster_shape[1:] == (1, 1):
            return range(-(-len(chosen) // self.cluster_blocks) * self.cluster_blocks)
        width, height = (self.grid[axis] // self.cluster_shape[axis] for axis in (0, 1))
        numbers = np.asarray(chosen, np.int64)
        x, y, z = (
            _split_axis(numbers, self.grid, axis) // size for axis, size in zip("xyz", self.cluster_shape, strict=True)
        )
        found = np.unique(x + width * (y + height * z.astype(np.int64)))
        of_cluster = [_split_axis(found, (width, height, 1), axis)[:, None] for axis in "xyz"]
        of_rank = [_split_axis(np.arange(self.cluster_blocks), self.cluster_shape, axis)[None] for axis in "xyz"]
        x, y, z = (one * size + other for one, size, other in zip(of_cluster, self.cluster_shape, of_rank, strict=True))
        blocks: npt.NDArray[np.uint32] = (x + self.grid[0] * (y + self.grid[1] * z)).reshape(-1).astype(np.uint32)
        return blocks

    @property
    def warps_per_block(self) -> int:
        """Warps per block; the last one may have lanes without a thread."""
        return -(-self.threads // WARP_LANES)

    @property
    def lanes_per_block(self) -> int:
        """Lanes per block, those without a thread included."""
        return self.warps_per_block * WARP_LANES

    @property
    def shared_bytes(self) -> int:
        """Shared memory per block, static and dynamic."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def shared_stride_bytes(self) -> int:
        """Distance between the shared memories of two blocks of a batch: whole 128-byte rows."""
        return -(-self.shared_bytes // 128) * 128


class WarpSet:
    """Some whole warps of the blocks that are executed together.

    Attributes:
        blocks: those they are of.
        ids: int64[w], their numbers in all of them, ascending: block slot x warps per block + warp.
        lanes: 32 w.
    """

    __slots__ = ("_columns", "blocks", "ids", "lanes")

    def __init__(self, blocks: "Blocks", ids: npt.NDArray[np.int64]) -> None:
        self.blocks = blocks
        self.ids = ids
        self.lanes = len(ids) * WARP_LANES
        self._columns: dict[str, Value] = {}

    def column(self, name: str) -> Value:
        """A value of each lane that never changes, see :func:`_build_column`; made once."""
        found = self._columns.get(name)
        if found is None:
            root = self.blocks.root
            found = _build_column(self.blocks, name) if self is root else take_rows(root.column(name), self.ids)
            self._columns[name] = found
        return found

    def slots(self) -> npt.NDArray[np.int64]:
        """int64[w], which of the blocks each warp belongs to."""
        found = self._columns.get("slots")
        if found is None:
            found = self._columns["slots"] = self.ids // self.blocks.geometry.warps_per_block
        return found


class Blocks:
    """Blocks that are executed together, and their lanes.

    Attributes:
        geometry: of the launch.
        numbers: uint32[k], linear indexes in the grid; a block's place here is its *slot*.
        root: all their warps.
        live: bool[n] over all lanes: threads that exist and have not exited.
        live_count: how many.
    """

    __slots__ = ("geometry", "live", "live_count", "numbers", "root")

    def __init__(self, geometry: Geometry, numbers: npt.NDArray[np.uint32]) -> None:
        self.geometry: Geometry = geometry
        self.numbers: npt.NDArray[np.uint32] = numbers
        self.root = WarpSet(self, np.arange(len(numbers) * geometry.warps_per_block, dtype=np.int64))
        in_block = np.arange(geometry.lanes_per_block) < geometry.threads
        self.live = np.tile(in_block, len(numbers))
        self.live_count = geometry.threads * len(numbers)

    def turn_to(self, numbers: npt.NDArray[np.uint32]) -> None:
        """Turn to as many other blocks; their live lanes are set elsewhere."""
        self.numbers = numbers
        self.root = WarpSet(self, self.root.ids)

    def count_live(self) -> npt.NDArray[np.int64]:
        """int64[k], live threads of each block."""
        counts: npt.NDArray[np.int64] = np.count_nonzero(self.live.reshape(len(self.numbers), -1), axis=1)
        return counts


def _build_column(blocks: Blocks, name: str) -> Value:
    """A constant value of each lane of all blocks; a scalar where all lanes agree for any blocks."""
    kind, _, detail = name.partition(".")
    return _BUILDERS[kind](blocks, detail)


def _lanes(blocks: Blocks) -> npt.NDArray[np.int64]:
    return np.arange(blocks.root.lanes, dtype=np.int64)


def _repeat(blocks: Blocks, of_blocks: Value) -> Value:
    """A value of each block, for each of its lanes."""
    if len(of_blocks) == 1:
        return of_blocks[0]
    return np.repeat(of_blocks, blocks.geometry.lanes_per_block)


def _split_axis(linear: npt.NDArray[np.int64], extent: tuple[int, int, int], axis: str) -> npt.NDArray[np.uint32]:
    x, y, _ = extent
    parts: dict[str, Any] = {"x": linear % x, "y": linear // x % y, "z": linear // (x * y)}
    return np.asarray(parts[axis], dtype=np.uint32)


def _build_thread_index(blocks: Blocks, axis: str) -> Value:
    extent = blocks.geometry.block
    if extent["xyz".index(axis)] == 1:
        return np.uint32(0)
    return np.tile(_split_axis(np.arange(blocks.geometry.lanes_per_block), extent, axis), len(blocks.numbers))


def _build_block_index(blocks: Blocks, axis: str) -> Value:
    extent = blocks.geometry.grid
    if extent["xyz".index(axis)] == 1:
        return np.uint32(0)
    return _repeat(blocks, _split_axis(blocks.numbers.astype(np.int64), extent, axis))


def _build_cluster_index(blocks: Blocks, axis: str) -> Value:
    return _build_block_index(blocks, axis) // np.uint32(blocks.geometry.cluster_shape["xyz".index(axis)])


def _build_place_in_cluster(blocks: Blocks, axis: str) -> Value:
    return _build_block_index(blocks, axis) % np.uint32(blocks.geometry.cluster_shape["xyz".index(axis)])


def _build_rank(blocks: Blocks, _: str) -> Value:
    """Ranks of blocks in their cluster; they stand in this order."""
    return _repeat(blocks, (np.arange(len(blocks.numbers)) % blocks.geometry.cluster_blocks).astype(np.uint32))


def _build_thread(blocks: Blocks, _: str) -> Value:
    return _lanes(blocks) % blocks.geometry.lanes_per_block


_BUILDERS: dict[str, Callable[[Blocks, str], Value]] = {
    "tid": _build_thread_index,
    "ctaid": _build_block_index,
    "clusterid": _build_cluster_index,
    "cluster_ctaid": _build_place_in_cluster,
    "cluster_ctarank": _build_rank,
    "laneid": lambda blocks, _: (_lanes(blocks) % WARP_LANES).astype(np.uint32),
    "warpid": lambda blocks, _: (_build_thread(blocks, "") // WARP_LANES).astype(np.uint32),
    "smid": lambda blocks, _: _repeat(blocks, (blocks.numbers % blocks.geometry.sm_count).astype(np.uint32)),
    "lanemask_eq": lambda blocks, _: np.uint32(1) << (_lanes(blocks) % WARP_LANES).astype(np.uint32),
    "lane": lambda blocks, _: _lanes(blocks),
    "thread": _build_thread,
}
