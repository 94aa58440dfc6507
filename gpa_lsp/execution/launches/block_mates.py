"""What blocks of a launch read in common, by some of them: :func:`count_readers`.

It is seen on *mates*: blocks that differ from the first in one coordinate, as far away as the grid allows. A sector that a block has in common with
its mate along an axis is taken to be read by all blocks along it.
"""

from collections.abc import Mapping
from math import ceil, prod

import numpy as np
import numpy.typing as npt

BlockPlace = tuple[int, int, int]
Sectors = npt.NDArray[np.int64]


def list_mates(grid: BlockPlace, block: BlockPlace) -> tuple[BlockPlace, ...]:
    """The blocks that show what a block shares along each axis of the grid that has more than one.

    >>> list_mates((8, 4, 1), (5, 1, 0))
    ((0, 1, 0), (5, 3, 0))
    """
    far = [0 if at >= size / 2 else size - 1 for at, size in zip(block, grid, strict=True)]
    x, y, z = block
    along = ((far[0], y, z), (x, far[1], z), (x, y, far[2]))
    return tuple(mate for mate, size in zip(along, grid, strict=True) if size > 1)


def count_readers(
    own: Sectors, distinct: Mapping[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace, most: int | None = None
) -> npt.NDArray[np.float64]:
    """Of each sector of a block, the blocks that touch it: of all, or of so many that follow each other."""
    readers = np.ones(len(own))
    mates = list_mates(grid, block)
    axes = [least for size, least in zip(grid, _measure_extents(grid, most or prod(grid)), strict=True) if size > 1]
    for mate, size in zip(mates, axes, strict=True):
        if mate in distinct:
            readers[np.isin(own, distinct[mate], assume_unique=True)] *= size
    return readers


def _measure_extents(grid: BlockPlace, blocks: int) -> BlockPlace:
    """How far blocks that follow each other reach along each axis.

    >>> _measure_extents((8, 4, 2), 20)
    (8, 3, 1)
    """
    x, y, z = grid
    return min(x, blocks), min(y, ceil(blocks / x)), min(z, ceil(blocks / (x * y)))
