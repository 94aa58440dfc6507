"""What never changes of each lane of a batch: its thread, its block, where its shared memory begins."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.emulator.engine.values import WARP_LANES, Value

if TYPE_CHECKING:
    from gpa_lsp.emulator.engine.geometry import Batch

STAMP_THREAD_SHIFT = 20
"""Where the thread stands in a stamp of :mod:`.shared_checks`."""


def build_column(batch: "Batch", name: str) -> Value:
    """A constant value of each lane of a whole batch; uniform where all lanes agree whatever the batch.

    Args:
        batch: the batch.
        name: one of

            * ``tid.x`` … ``ctaid.z``, ``laneid``, ``warpid``, ``smid``, ``lanemask_eq``: uint32, as the special registers;
            * ``lane``: int64, number of the lane in the batch;
            * ``thread``: int64, linear thread in the block;
            * ``stamp``: int64, the same at its place in a stamp of :mod:`.shared_checks`;
            * ``shared.k``: int64, where the block's shared memory begins, in elements of 2**k bytes.
    """
    kind, _, detail = name.partition(".")
    return _BUILDERS[kind](batch, detail)


def _lanes(batch: "Batch") -> npt.NDArray[np.int64]:
    return np.arange(batch.root.lanes, dtype=np.int64)


def _repeat(batch: "Batch", of_blocks: Value) -> Value:
    """A value of each block, for each of its lanes."""
    if len(of_blocks) == 1:
        return of_blocks[0]
    return np.repeat(of_blocks, batch.geometry.lanes_per_block)


def _split_axis(linear: npt.NDArray[np.int64], extent: tuple[int, int, int], axis: str) -> npt.NDArray[np.uint32]:
    x, y, _ = extent
    parts: dict[str, Any] = {"x": linear % x, "y": linear // x % y, "z": linear // (x * y)}
    return np.asarray(parts[axis], dtype=np.uint32)


def _build_thread_index(batch: "Batch", axis: str) -> Value:
    extent = batch.geometry.block
    if extent["xyz".index(axis)] == 1:
        return np.uint32(0)
    return np.tile(_split_axis(np.arange(batch.geometry.lanes_per_block), extent, axis), len(batch.blocks))


def _build_block_index(batch: "Batch", axis: str) -> Value:
    extent = batch.geometry.grid
    if extent["xyz".index(axis)] == 1:
        return np.uint32(0)
    return _repeat(batch, _split_axis(batch.blocks.astype(np.int64), extent, axis))


def _build_thread(batch: "Batch", _: str) -> Value:
    return _lanes(batch) % batch.geometry.lanes_per_block


def _build_shared(batch: "Batch", shift: str) -> Value:
    stride = batch.geometry.shared_stride_bytes >> int(shift)
    return _repeat(batch, np.arange(len(batch.blocks), dtype=np.int64) * stride)


_BUILDERS: "dict[str, Callable[[Batch, str], Value]]" = {
    "tid": _build_thread_index,
    "ctaid": _build_block_index,
    "laneid": lambda batch, _: (_lanes(batch) % WARP_LANES).astype(np.uint32),
    "warpid": lambda batch, _: (_build_thread(batch, "") // WARP_LANES).astype(np.uint32),
    "smid": lambda batch, _: _repeat(batch, (batch.blocks % batch.geometry.sm_count).astype(np.uint32)),
    "lanemask_eq": lambda batch, _: np.uint32(1) << (_lanes(batch) % WARP_LANES).astype(np.uint32),
    "lane": lambda batch, _: _lanes(batch),
    "thread": _build_thread,
    "stamp": lambda batch, _: _build_thread(batch, "") << STAMP_THREAD_SHIFT,
    "shared": _build_shared,
}
