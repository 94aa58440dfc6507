"""What a launch moves, from the blocks that were walked: :func:`find_traffic`."""

from collections import defaultdict
from math import prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.launches.block_mates import BlockPlace, Sectors, count_readers
from gpa_lsp.execution.simulator.machine import Traffic
from gpa_lsp.execution.simulator.program import Kind, SassProgram
from gpa_lsp.execution.simulator.streams import SHARED_SECTORS
from gpa_lsp.execution.simulator.warp_walk import LOCAL_SECTOR, KernelWalk
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES

# Of a sector: a store of no more is scattered, as one of a transpose that goes down a column is.
_SCATTERED_RATIO = 0.25


def find_traffic(
    walk: KernelWalk,
    program: SassProgram,
    widths: npt.NDArray[np.int64],
    mates_of: BlockPlace,
    array_bytes: int | None,
    *,
    resident_blocks: int | None = None,
    fetch_bytes: int = SECTOR_BYTES,
) -> Traffic:
    """The traffic of all blocks, by those that were walked.

    Args:
        widths: bytes that each of them accesses for a lane.
        array_bytes: of all arrays the launch is given: it reads no more than these hold. None where that is not known.
        fetch_bytes: least that is fetched from DRAM.
        resident_blocks: blocks that all SMs hold at once; None for the whole grid.
    """
    scattered = 0
    stores = np.isin(np.array(program.kind), [Kind.STORE, Kind.REDUCTION])
    reads: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    stored: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    parted: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    for one in walk.walks:
        counts = np.diff(one.first_sector)
        is_store = stores[np.repeat(one.instruction, counts)]
        given = np.bitwise_count(one.active) * widths[one.instruction]
        of_stores = stores[one.instruction]
        scattered += int(counts[of_stores & (given <= _SCATTERED_RATIO * SECTOR_BYTES * counts)].sum())
        is_parted = is_store & np.repeat(given < counts * SECTOR_BYTES, counts)
        stored[one.block].append(one.sectors[is_store])
        parted[one.block].append(one.sectors[is_parted])
        mine = one.sectors[~is_store]
        reads[one.block].append(mine[mine < LOCAL_SECTOR])
    grid = prod(walk.grid)
    distinct = {place: np.unique(np.concatenate(parts)) for place, parts in reads.items()}
    own = distinct.get(mates_of, next(iter(distinct.values()), np.zeros(0, dtype=np.int64)))
    footprint = _count_distinct(own, distinct, walk.grid, mates_of)
    if array_bytes is not None:
        footprint = min(footprint, array_bytes / SECTOR_BYTES)
    asked = float(len(own)) * grid
    in_waves = grid * float((1 / count_readers(own, distinct, walk.grid, mates_of, resident_blocks)).sum())
    fetch_sectors = fetch_bytes // SECTOR_BYTES
    scale = grid * SECTOR_BYTES / max(1, len(distinct))
    return Traffic(
        stored_bytes=scale * sum(len(part) for parts in stored.values() for part in parts),
        written_bytes=scale * _count_all(stored),
        filled_bytes=scale * _count_all(parted),
        l2_hit_ratio=min(1.0, max(0.0, 1.0 - footprint / asked)) if asked else 0.0,
        meeting_blocks=_count_meeting(walk, program, mates_of),
        read_bytes=footprint * SECTOR_BYTES,
        refetched_ratio=max(1.0, in_waves / footprint) if footprint else 1.0,
        fetched_ratio=fetch_sectors * len(np.unique(own // fetch_sectors)) / len(own) if len(own) else 1.0,
        scattered_bytes=scale * scattered,
    )


def _count_meeting(walk: KernelWalk, program: SassProgram, mates_of: BlockPlace) -> float:
    """Blocks whose atomic operations go to the same sector: of each instruction that shares more than a few, the most."""
    most = 1.0
    for touched in _list_touched(walk, np.isin(program.kind, [Kind.REDUCTION, Kind.ATOMIC])).values():
        distinct = {place: np.unique(np.concatenate(parts)) for place, parts in touched.items()}
        own = distinct.get(mates_of, np.zeros(0, dtype=np.int64))
        readers = count_readers(own, distinct, walk.grid, mates_of)
        if np.count_nonzero(readers > 1) > SHARED_SECTORS * len(own):
            most = max(most, float(readers.max()))
    return most


def _list_touched(walk: KernelWalk, chosen: npt.NDArray[np.bool_]) -> dict[int, dict[BlockPlace, list[Sectors]]]:
    """Row → block → sectors that its executions touch, of chosen rows."""
    found: dict[int, dict[BlockPlace, list[Sectors]]] = defaultdict(lambda: defaultdict(list))
    for one in walk.walks:
        rows = np.repeat(one.instruction, np.diff(one.first_sector))
        is_chosen = chosen[rows]
        rows, sectors = rows[is_chosen], one.sectors[is_chosen]
        for row in np.unique(rows).tolist():
            found[row][one.block].append(sectors[rows == row])
    return found


def _count_all(sectors: dict[BlockPlace, list[Sectors]]) -> int:
    """Distinct ones of each block."""
    return sum(len(np.unique(np.concatenate(parts))) for parts in sectors.values())


def _count_distinct(own: Sectors, distinct: dict[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace) -> float:
    """Distinct sectors that the whole grid reads."""
    return float((prod(grid) / count_readers(own, distinct, grid, block)).sum())
