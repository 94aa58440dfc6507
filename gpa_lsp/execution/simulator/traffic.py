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
from gpa_lsp.execution.volumes.retention import find_evicted_ratio
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES

Shares = npt.NDArray[np.float64]
_WHOLE = 0.99  # Share of a sector from which on it counts as stored, by rounding


def find_traffic(
    walk: KernelWalk,
    program: SassProgram,
    widths: npt.NDArray[np.int64],
    mates_of: BlockPlace,
    array_bytes: int | None,
    *,
    resident_blocks: int | None = None,
    l2_bytes: float | None = None,
    l2_ways: int | None = None,
    fetch_bytes: int = SECTOR_BYTES,
) -> Traffic:
    """The traffic of all blocks, by those that were walked.

    Args:
        widths: bytes that each of them accesses for a lane.
        array_bytes: of all arrays the launch is given: it reads no more than these hold. None where that is not known.
        l2_bytes: of the GPU; None for an L2 that keeps everything.
        l2_ways: of each of its sets; None for one set of all.
        fetch_bytes: least that is fetched from DRAM.
        resident_blocks: blocks that all SMs hold at once; None for the whole grid.
    """
    stores = np.isin(np.array(program.kind), [Kind.STORE, Kind.REDUCTION])
    reads: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    stored: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    parted: dict[BlockPlace, list[Sectors]] = defaultdict(list)
    shares: dict[BlockPlace, list[Shares]] = defaultdict(list)
    for one in walk.walks:
        counts = np.diff(one.first_sector)
        is_store = stores[np.repeat(one.instruction, counts)]
        given = np.bitwise_count(one.active) * widths[one.instruction]
        share = np.repeat(given / np.maximum(counts * SECTOR_BYTES, 1), counts)
        stored[one.block].append(one.sectors[is_store])
        parted[one.block].append(one.sectors[is_store & (share < 1)])
        shares[one.block].append(share[is_store])
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
    evicted = 0.0
    if (
        resident_blocks is not None and l2_bytes
    ):  # what a wave reads passes through L2 before the next one reads it again
        passed = in_waves * SECTOR_BYTES * min(1.0, resident_blocks / grid)
        evicted = find_evicted_ratio(passed, l2_bytes, l2_ways)
    fetched = footprint + max(0.0, in_waves - footprint) * evicted
    fetch_sectors = fetch_bytes // SECTOR_BYTES
    scale = grid * SECTOR_BYTES / max(1, len(distinct))
    return Traffic(
        stored_bytes=scale * sum(len(part) for parts in stored.values() for part in parts),
        written_bytes=scale * _count_all(stored),
        parted_bytes=scale * _count_all(parted),
        filled_bytes=scale * _count_filled(stored, shares, walk.grid, mates_of),
        l2_hit_ratio=min(1.0, max(0.0, 1.0 - fetched / asked)) if asked else 0.0,
        meeting_blocks=_count_meeting(walk, program, mates_of),
        read_bytes=footprint * SECTOR_BYTES,
        refetched_ratio=fetched / footprint if footprint else 1.0,
        fetched_ratio=fetch_sectors * len(np.unique(own // fetch_sectors)) / len(own) if len(own) else 1.0,
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


def _count_filled(
    stored: dict[BlockPlace, list[Sectors]],
    shares: dict[BlockPlace, list[Shares]],
    grid: BlockPlace,
    mates_of: BlockPlace,
) -> int:
    """Distinct sectors of each block of which all its stores, and those of blocks that store there as well, leave a part. Stores to one place are
    taken to be of different bytes of it.
    """
    distinct = {place: np.unique(np.concatenate(parts)) for place, parts in stored.items()}
    writers = 1.0
    if mates_of in distinct and len(distinct[mates_of]):
        writers = float(count_readers(distinct[mates_of], distinct, grid, mates_of).mean())
    parted = 0
    for place, parts in stored.items():
        numbers = np.searchsorted(distinct[place], np.concatenate(parts))
        parted += int((np.bincount(numbers, np.concatenate(shares[place])) * writers < _WHOLE).sum())
    return parted


def _count_all(sectors: dict[BlockPlace, list[Sectors]]) -> int:
    """Distinct ones of each block."""
    return sum(len(np.unique(np.concatenate(parts))) for parts in sectors.values())


def _count_distinct(own: Sectors, distinct: dict[BlockPlace, Sectors], grid: BlockPlace, block: BlockPlace) -> float:
    """Distinct sectors that the whole grid reads."""
    return float((prod(grid) / count_readers(own, distinct, grid, block)).sum())
