"""What a launch moves, from the blocks that were walked: :func:`find_traffic`.

What blocks share is seen on *mates*: blocks that differ from the first in one coordinate, as far away as the grid allows. A sector that a block has
in common with its mate along an axis is taken to be read by all blocks along it.
"""

from collections import defaultdict
from math import prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.simulator.program import Kind, SassProgram
from gpa_lsp.simulator.warp_walk import LOCAL_BASE, KernelWalk

_SECTOR_BYTES = 32
_LOCAL_SECTOR = LOCAL_BASE // _SECTOR_BYTES

BlockPlace = tuple[int, int, int]
Sectors = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a launch moves.

    Attributes:
        written_bytes: to L2.
        l2_hit_ratio: of the sectors a block reads first, those that another block has brought into L2.
    """

    written_bytes: float
    l2_hit_ratio: float


def list_mates(grid: BlockPlace, block: BlockPlace) -> tuple[BlockPlace, ...]:
    """The blocks that show what a block shares along each axis of the grid that has more than one.

    >>> list_mates((8, 4, 1), (5, 1, 0))
    ((0, 1, 0), (5, 3, 0))
    """
    far = [0 if at >= size / 2 else size - 1 for at, size in zip(block, grid, strict=True)]
    x, y, z = block
    along = ((far[0], y, z), (x, far[1], z), (x, y, far[2]))
    return tuple(mate for mate, size in zip(along, grid, strict=True) if size > 1)


def find_traffic(walk: KernelWalk, program: SassProgram, mates_of: BlockPlace, array_bytes: int | None) -> Traffic:
    """The traffic of all blocks, by those that were walked.

    Args:
        walk: some blocks.
        program: its instructions.
        mates_of: the block whose mates are among them, as far as they could be walked.
        array_bytes: of all arrays the launch is given: it reads no more than these hold. None where that is not known.
    """
    stores = np.isin(np.array(program.kind), [Kind.STORE, Kind.REDUCTION])
    reads: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    written = 0
    for one in walk.walks:
        is_store = stores[np.repeat(one.instruction, np.diff(one.first_sector))]
        written += int(is_store.sum())
        mine = one.sectors[~is_store]
        reads[one.block].append(mine[mine < _LOCAL_SECTOR])
    grid = prod(walk.grid)
    distinct = {place: np.unique(np.concatenate(parts)) for place, parts in reads.items()}
    own = distinct.get(mates_of, next(iter(distinct.values()), np.zeros(0, dtype=np.int64)))
    footprint = _count_distinct(own, distinct, walk.grid, mates_of)
    if array_bytes is not None:
        footprint = min(footprint, array_bytes / _SECTOR_BYTES)
    asked = float(len(own)) * grid
    return Traffic(
        written_bytes=written / max(1, len(distinct)) * grid * _SECTOR_BYTES,
        l2_hit_ratio=min(1.0, max(0.0, 1.0 - footprint / asked)) if asked else 0.0,
    )


def _count_distinct(own: Sectors, distinct: dict[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace) -> float:
    """Distinct sectors that the whole grid reads."""
    readers = np.ones(len(own))
    mates = list_mates(grid, block)
    axes = [size for size in grid if size > 1]
    for mate, size in zip(mates, axes, strict=True):
        if mate in distinct:
            readers[np.isin(own, distinct[mate], assume_unique=True)] *= size
    return float((prod(grid) / readers).sum())
