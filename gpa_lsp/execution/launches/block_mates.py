"""Sectors that blocks of a launch share, estimated from a few of them: :func:`count_readers`, :func:`count_distinct`.

A *mate* of a block differs from it in one coordinate, by as much as the grid allows. A sector that a block shares with its mate along an axis is
taken to be read by all blocks along that axis. One that it shares only with its *neighbour*, the next block along an axis, belongs to their rim, as
in stencils: it is taken to be read by two.
"""

from collections.abc import Mapping
from math import ceil, prod

import numpy as np
import numpy.typing as npt

BlockPlace = tuple[int, int, int]
Sectors = npt.NDArray[np.int64]

_FEWEST_APART = 2  # Blocks along an axis up to which the far mate is the neighbour


def place_block(grid: BlockPlace, number: int) -> BlockPlace:
    """Coordinates of a block by its linear index, x fastest.

    >>> place_block((4, 2, 2), 11)
    (3, 0, 1)
    """
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])


def list_mates(grid: BlockPlace, block: BlockPlace) -> tuple[BlockPlace, ...]:
    """Blocks that show what a block shares along each axis of the grid with more than one block.

    >>> list_mates((8, 4, 1), (5, 1, 0))
    ((0, 1, 0), (5, 3, 0))
    """
    far = [0 if at >= size / 2 else size - 1 for at, size in zip(block, grid, strict=True)]
    x, y, z = block
    along = ((far[0], y, z), (x, far[1], z), (x, y, far[2]))
    return tuple(mate for mate, size in zip(along, grid, strict=True) if size > 1)


def list_neighbours(grid: BlockPlace, block: BlockPlace) -> tuple[BlockPlace | None, ...]:
    """Next block along each axis of the grid with more than one; None where it is the mate.

    >>> list_neighbours((8, 4, 2), (5, 3, 0))
    ((6, 3, 0), (5, 2, 0), None)
    """
    found: list[BlockPlace | None] = []
    for axis, (at, size) in enumerate(zip(block, grid, strict=True)):
        place = list(block)
        place[axis] = at + 1 if at + 1 < size else at - 1
        if size > 1:
            found.append((place[0], place[1], place[2]) if size > _FEWEST_APART else None)
    return tuple(found)


def count_readers(
    own: Sectors, distinct: Mapping[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace, most: int | None = None
) -> npt.NDArray[np.float64]:
    """Number of blocks that touch each sector of a block: among all, or among *most* consecutive ones."""
    readers = np.ones(len(own))
    for mate, size in zip(list_mates(grid, block), _list_extents(grid, most), strict=True):
        if mate in distinct:
            readers[np.isin(own, distinct[mate], assume_unique=True)] *= size
    return readers


def count_distinct(
    own: Sectors, distinct: Mapping[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace, most: int | None = None
) -> float:
    """Distinct sectors that all blocks touch; or the sum over groups of *most* consecutive blocks."""
    shares = 1 / count_readers(own, distinct, grid, block, most)
    axes = zip(list_mates(grid, block), list_neighbours(grid, block), _list_extents(grid, most), strict=True)
    for mate, neighbour, size in axes:
        if neighbour is not None and neighbour in distinct and size > 1:
            rest = ~np.isin(own, distinct.get(mate, ()), assume_unique=True)
            rim = rest & np.isin(own, distinct[neighbour], assume_unique=True)
            # each block has a rim on either side: half of both is its own
            shares[rest] *= max(0.5, 1 - rim.sum() / max(1, rest.sum()))
    return prod(grid) * float(shares.sum())


def _list_extents(grid: BlockPlace, most: int | None) -> list[int]:
    """Extent of *most* consecutive blocks, or of all, along each axis of the grid with more than one block.

    >>> _list_extents((8, 4, 2), 20)
    [8, 3, 1]
    """
    x, y, z = grid
    blocks = most or prod(grid)
    extents = min(x, blocks), min(y, ceil(blocks / x)), min(z, ceil(blocks / (x * y)))
    return [extent for size, extent in zip(grid, extents, strict=True) if size > 1]
