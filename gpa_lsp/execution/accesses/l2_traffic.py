"""Traffic between L2 and DRAM of a whole launch, by a few of its blocks: :func:`measure_traffic`; what L2 loses: :class:`L2Cache`.

A *mate* of a block differs from it in one coordinate, by as much as the grid allows. A sector that a block shares with its mate along an axis is
taken to be touched by all blocks along that axis. One that it shares only with its *neighbour*, the next block along an axis, belongs to their rim,
as in stencils: it is taken to be touched by two.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, inf, prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES

BlockPlace = tuple[int, int, int]
Sectors = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
_Number = TypeVar("_Number", int, Sectors)

_FEWEST_APART = 2  # Blocks along an axis up to which the far mate is the neighbour


def place_block(grid: BlockPlace, number: _Number) -> tuple[_Number, _Number, _Number]:
    """Coordinates of blocks by their linear index, x fastest.

    >>> place_block((4, 2, 2), 11)
    (3, 0, 1)
    """
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])


def list_companions(grid: BlockPlace, number: int) -> tuple[int, ...]:
    """Linear indexes of the blocks that show what a block shares with all others: its mates and neighbours.

    >>> list_companions((8, 4, 1), 13)
    (8, 29, 14, 21)
    """
    place = place_block(grid, number)
    found = (*_list_mates(grid, place), *filter(None, _list_neighbours(grid, place)))
    return tuple(x + grid[0] * (y + grid[1] * z) for x, y, z in found)


def _list_mates(grid: BlockPlace, block: BlockPlace) -> tuple[BlockPlace, ...]:
    """Blocks that show what a block shares along each axis of the grid with more than one block."""
    far = [0 if at >= size / 2 else size - 1 for at, size in zip(block, grid, strict=True)]
    x, y, z = block
    along = ((far[0], y, z), (x, far[1], z), (x, y, far[2]))
    return tuple(mate for mate, size in zip(along, grid, strict=True) if size > 1)


def _list_neighbours(grid: BlockPlace, block: BlockPlace) -> tuple[BlockPlace | None, ...]:
    """Next block along each axis of the grid with more than one; None where it is the mate."""
    found: list[BlockPlace | None] = []
    for axis, (at, size) in enumerate(zip(block, grid, strict=True)):
        place = list(block)
        place[axis] = at + 1 if at + 1 < size else at - 1
        if size > 1:
            found.append((place[0], place[1], place[2]) if size > _FEWEST_APART else None)
    return tuple(found)


def count_readers(
    own: Sectors, distinct: Mapping[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace, most: int | None = None
) -> Numbers:
    """Number of blocks that touch each sector of a block: among all, or among *most* consecutive ones."""
    readers = np.ones(len(own))
    for mate, size in zip(_list_mates(grid, block), _list_extents(grid, most), strict=True):
        if mate in distinct:
            readers[np.isin(own, distinct[mate], assume_unique=True)] *= size
    return readers


def _count_distinct(
    own: Sectors, distinct: Mapping[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace, most: int | None = None
) -> float:
    """Distinct sectors that all blocks touch; or the sum over groups of *most* consecutive blocks."""
    shares = 1 / count_readers(own, distinct, grid, block, most)
    axes = zip(_list_mates(grid, block), _list_neighbours(grid, block), _list_extents(grid, most), strict=True)
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


def measure_traffic(
    touched: Sequence[Mapping[BlockPlace, Sequence[Sectors]]],
    grid: BlockPlace,
    block: BlockPlace,
    l2: "L2Cache",
    *,
    resident: int | None = None,
    extents: Sectors | None = None,
) -> list[tuple[Sectors, float, float]]:
    """Find the traffic of a launch's loads, and of its stores, by some of its blocks.

    Args:
        touched: sectors of each block, in any order: those of loads, then those of stores.
        block: the one that stands for all, where it is among them.
        resident: blocks that all SMs hold at once; None for the whole grid.
        extents: int64[k, 2], bytes at which arrays begin and end, by ascending beginnings; None for one array.

    Returns:
        Of each, sectors of the block that stands for all, ascending; distinct ones of the launch, no more than its arrays have; those that move
        between L2 and DRAM, once or again (of stores, those that no block has stored before while they were in L2).
    """
    found = [_count_by_array(list_distinct(one), grid, block, resident, extents) for one in touched]
    # what a wave reads passes through L2 before the next one comes to the same
    between_waves = 0.0 if resident is None else float(found[0][1][1].sum()) * min(1.0, resident / prod(grid))
    held = float(sum(counts[2].sum() for _, counts in found))
    return [
        (own, float(counts[2].sum()), count_passed(counts, l2, between_waves=between_waves, held=held))
        for own, counts in found
    ]


def count_passed(counts: Numbers, l2: "L2Cache", *, between_waves: float, held: float) -> float:
    """Sectors that move between L2 and DRAM, once or again.

    What blocks touch by themselves beyond what their arrays hold, they touch again: after as much of the whole as blocks reach back at most, which
    in gathers is all of it and in sweeps next to nothing.

    Args:
        counts: float64[4, k], of each array: distinct sectors by what blocks have in common, the sum of those of blocks that are resident together,
            as many of the first as there are, and the part of these that blocks reach back behind earlier ones at most.
        between_waves: sectors that pass through L2 from a wave of blocks to the next.
        held: distinct sectors of the launch.
    """
    once, in_waves, size, reach = counts
    evicted = l2.find_evicted_ratio(between_waves * SECTOR_BYTES)
    again = (once - size) * l2.find_evicted_ratio(reach * held * SECTOR_BYTES)
    return float((size + (in_waves - once) * evicted + again).sum())


def list_distinct(touched: Mapping[BlockPlace, Sequence[Sectors]]) -> dict[BlockPlace, Sectors]:
    """Distinct sectors of each block, ascending."""
    nothing = np.zeros(0, np.int64)
    return {place: np.unique(np.concatenate([nothing, *parts])) for place, parts in touched.items()}


def _count_by_array(
    distinct: Mapping[BlockPlace, Sectors],
    grid: BlockPlace,
    block: BlockPlace,
    resident: int | None,
    extents: Sectors | None,
) -> tuple[Sectors, Numbers]:
    """Sectors of the block that stands for all; counts, as of :func:`count_passed`, of each array that it touches and of what lies between two."""
    own = distinct.get(block, next(iter(distinct.values()), np.zeros(0, dtype=np.int64)))
    extents = np.zeros((0, 2), np.int64) if extents is None else extents
    bounds = np.stack([extents[:, 0] // SECTOR_BYTES, -(-extents[:, 1] // SECTOR_BYTES)], axis=1)
    edges = np.concatenate([[0], np.maximum.accumulate(bounds.ravel()), [np.iinfo(np.int64).max]])
    rows = []
    for number in np.unique(np.searchsorted(edges, own, side="right") - 1).tolist():
        low, high = edges[number : number + 2]
        mine = {place: _cut(distinct[place], low, high) for place in sorted(distinct, key=lambda place: place[::-1])}
        counts = [_count_distinct(_cut(own, low, high), mine, grid, block, most) for most in (None, resident)]
        size = min(counts[0], float(high - low) if number % 2 else inf)
        ends = np.array([(one[0], one[-1] + 1) for one in mine.values() if len(one)])
        reach = float((np.maximum.accumulate(ends[:, 1]) - ends[:, 0]).max())
        rows.append((*counts, size, min(1.0, reach / size)))
    return own, np.array(rows, np.float64).reshape(-1, 4).T


def _cut(sectors: Sectors, low: int, high: int) -> Sectors:
    """Ascending sectors from ``low`` up to ``high``."""
    first, last = np.searchsorted(sectors, [low, high]).tolist()
    return sectors[first:last]


_MOST_PASSED = 4.0  # Sizes of a cache after which nothing is left of what was there
_PASSED_STEPS = 400


class L2Cache(Struct, frozen=True, kw_only=True):
    """L2, which evicts what was used longest ago."""

    size_bytes: float | None  # None for one that keeps everything
    ways: int | None = None  # of each of its sets; None for one set of all

    def find_evicted_ratio(self, passed_bytes: float | Numbers) -> Numbers:
        """Part of its sectors that are gone when so much has passed through it.

        >>> L2Cache(size_bytes=6e6, ways=16).find_evicted_ratio(np.array([1e6, 6e6, 30e6])).round(1).tolist()
        [0.0, 0.5, 1.0]
        """
        at_bytes, ratios = self.list_evictions()
        gone = np.concatenate([[0.0], np.minimum(1.0, np.cumsum(ratios))])
        return gone[np.searchsorted(at_bytes, passed_bytes, side="right")]

    def list_evictions(self) -> tuple[Numbers, Numbers]:
        """Traffic through the cache at which a sector is evicted, and the probability of each amount."""
        size = inf if self.size_bytes is None else self.size_bytes
        if self.ways is None:
            return np.array([size]), np.ones(1)
        at_sizes, ratios = _list_evictions(self.ways)
        return at_sizes * size, ratios


@lru_cache(maxsize=8)
def _list_evictions(ways: int) -> tuple[Numbers, Numbers]:
    """Traffic through a cache, in its sizes, at which a sector is evicted, and the probability of each.

    Others fall into its set as by chance, so that their number is Poisson's; the sector goes with the one that fills the set.
    """
    edges = np.linspace(0.0, _MOST_PASSED, _PASSED_STEPS + 1)
    others = ways * edges
    term = np.exp(-others)
    kept = term.copy()
    for number in range(1, ways):
        term = term * others / number
        kept += term
    weights = -np.diff(kept)
    return (edges[1:] + edges[:-1]) / 2, weights / weights.sum()
