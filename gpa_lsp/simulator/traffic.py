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
from gpa_lsp.simulator.streams import SHARED_SECTORS
from gpa_lsp.simulator.warp_walk import LOCAL_BASE, KernelWalk

_SECTOR_BYTES = 32
_LOCAL_SECTOR = LOCAL_BASE // _SECTOR_BYTES

BlockPlace = tuple[int, int, int]
Sectors = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a launch moves.

    Attributes:
        stored_bytes: to L2.
        written_bytes: of them, those of distinct sectors: what a block stores again to where it has stored replaces it in L2.
        filled_bytes: of distinct sectors that are stored in parts: L2 has the rest of them read.
        l2_hit_ratio: of the sectors a block reads first, those that another block has brought into L2.
        meeting_blocks: whose atomic operations go to the same sector, where the most do; at least 1.
    """

    stored_bytes: float
    written_bytes: float
    filled_bytes: float
    l2_hit_ratio: float
    meeting_blocks: float


def list_mates(grid: BlockPlace, block: BlockPlace) -> tuple[BlockPlace, ...]:
    """The blocks that show what a block shares along each axis of the grid that has more than one.

    >>> list_mates((8, 4, 1), (5, 1, 0))
    ((0, 1, 0), (5, 3, 0))
    """
    far = [0 if at >= size / 2 else size - 1 for at, size in zip(block, grid, strict=True)]
    x, y, z = block
    along = ((far[0], y, z), (x, far[1], z), (x, y, far[2]))
    return tuple(mate for mate, size in zip(along, grid, strict=True) if size > 1)


def find_traffic(
    walk: KernelWalk,
    program: SassProgram,
    widths: npt.NDArray[np.int64],
    mates_of: BlockPlace,
    array_bytes: int | None,
) -> Traffic:
    """The traffic of all blocks, by those that were walked.

    Args:
        walk: some blocks.
        program: its instructions.
        widths: bytes that each of them accesses for a lane.
        mates_of: the block whose mates are among them, as far as they could be walked.
        array_bytes: of all arrays the launch is given: it reads no more than these hold. None where that is not known.
    """
    stores = np.isin(np.array(program.kind), [Kind.STORE, Kind.REDUCTION])
    reads: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    stored: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    parted: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    for one in walk.walks:
        counts = np.diff(one.first_sector)
        is_store = stores[np.repeat(one.instruction, counts)]
        given = np.bitwise_count(one.active) * widths[one.instruction]
        is_parted = is_store & np.repeat(given < counts * _SECTOR_BYTES, counts)
        stored[one.block].append(one.sectors[is_store])
        parted[one.block].append(one.sectors[is_parted])
        mine = one.sectors[~is_store]
        reads[one.block].append(mine[mine < _LOCAL_SECTOR])
    grid = prod(walk.grid)
    distinct = {place: np.unique(np.concatenate(parts)) for place, parts in reads.items()}
    own = distinct.get(mates_of, next(iter(distinct.values()), np.zeros(0, dtype=np.int64)))
    footprint = _count_distinct(own, distinct, walk.grid, mates_of)
    if array_bytes is not None:
        footprint = min(footprint, array_bytes / _SECTOR_BYTES)
    asked = float(len(own)) * grid
    scale = grid * _SECTOR_BYTES / max(1, len(distinct))
    return Traffic(
        stored_bytes=scale * sum(len(part) for parts in stored.values() for part in parts),
        written_bytes=scale * _count_all(stored),
        filled_bytes=scale * _count_all(parted),
        l2_hit_ratio=min(1.0, max(0.0, 1.0 - footprint / asked)) if asked else 0.0,
        meeting_blocks=_count_meeting(walk, program, mates_of),
    )


def _count_meeting(walk: KernelWalk, program: SassProgram, mates_of: BlockPlace) -> float:
    """Blocks whose atomic operations go to the same sector: of each instruction that shares more than a few, the most."""
    kinds = np.array(program.kind)
    most = 1.0
    for row in np.flatnonzero(np.isin(kinds, [Kind.REDUCTION, Kind.ATOMIC])).tolist():
        touched: dict[BlockPlace, list[Sectors]] = defaultdict(list)
        for one in walk.walks:
            chosen = np.repeat(one.instruction == row, np.diff(one.first_sector))
            touched[one.block].append(one.sectors[chosen])
        distinct = {place: np.unique(np.concatenate(parts)) for place, parts in touched.items()}
        own = distinct.get(mates_of, np.zeros(0, dtype=np.int64))
        readers = _count_readers(own, distinct, walk.grid, mates_of)
        if np.count_nonzero(readers > 1) > SHARED_SECTORS * len(own):
            most = max(most, float(readers.max()))
    return most


def _count_all(sectors: dict[BlockPlace, list[Sectors]]) -> int:
    """Distinct ones of each block."""
    return sum(len(np.unique(np.concatenate(parts))) for parts in sectors.values())


def _count_distinct(own: Sectors, distinct: dict[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace) -> float:
    """Distinct sectors that the whole grid reads."""
    return float((prod(grid) / _count_readers(own, distinct, grid, block)).sum())


def _count_readers(
    own: Sectors, distinct: dict[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace
) -> npt.NDArray[np.float64]:
    """Of each sector of a block, the blocks that touch it."""
    readers = np.ones(len(own))
    mates = list_mates(grid, block)
    axes = [size for size in grid if size > 1]
    for mate, size in zip(mates, axes, strict=True):
        if mate in distinct:
            readers[np.isin(own, distinct[mate], assume_unique=True)] *= size
    return readers
