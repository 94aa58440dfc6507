"""Distinct sectors and lines that one block, and each warp of it, touches; the volumes between L1 and L2 come from these.

Threads are enumerated, with real alignment. A group's count depends on where its block starts only modulo a line, so of the blocks of a wave
only those are counted that start at different places within one.

Source: Ernst et al. (2022), section 4.3.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from msgspec import Struct

from gpa_lsp.code.symbolic_accesses.requests import (
    LINE_BYTES,
    SECTOR_BYTES,
    WARP_LANES,
    count_bank_conflicts,
    count_distinct_rows,
    count_request_cycles,
)
from gpa_lsp.execution.volumes.expressions import Triple
from gpa_lsp.execution.volumes.groups import AccessGroup, ArrayGroups, Integers, list_distinct

# Divisions by 32 and by 4 as shifts: numpy's division of integers is several times slower
_SECTOR_SHIFT, _LINE_SHIFT = 5, 2
# Addresses of one block that are enumerated; with longer loops the block's footprint is built from boxes
MOST_ADDRESSES = 1 << 16
_MOST_ITERATIONS = 32  # Iterations of a loop over which what one warp does is averaged


class Blocks(Struct, frozen=True, kw_only=True):
    """Blocks over which something is averaged."""

    block: Triple  # threads of a block in x, y, z
    count: Triple  # blocks in x, y, z, from the grid's start
    threads: Triple  # threads of a block that have work; smaller than ``block`` at the grid's end

    @property
    def threads_per_block(self) -> int:
        """Threads with work."""
        return prod(self.threads)


def find_warp_shape(block: Triple, lanes: int) -> Triple:
    """Box of threads (x, y, z) that consecutive lanes make up.

    >>> find_warp_shape((8, 2, 16), 32), find_warp_shape((64, 2, 1), 16)
    ((8, 2, 2), (16, 1, 1))
    """
    x = min(lanes, block[0])
    y = min(block[1], max(1, lanes // block[0]))
    return (x, y, min(block[2], max(1, lanes // block[0] // block[1])))


def list_offsets(steps: Triple, shape: Triple) -> Integers:
    """Byte offset of each thread of a box from the first one, int64[threads], x fastest.

    >>> list_offsets((8, 100, 0), (2, 2, 1)).tolist()
    [0, 8, 100, 108]
    """
    x, y, z = (step * np.arange(count, dtype=np.int64) for step, count in zip(steps, shape, strict=True))
    return (z[:, np.newaxis, np.newaxis] + y[:, np.newaxis] + x).ravel()


def list_iterations(group: AccessGroup, most: int) -> Integers | None:
    """Byte offset of each iteration of the loops, int64[iterations]; None when there are more than ``most``."""
    if group.trips > most:
        return None
    found = np.zeros(1, dtype=np.int64)
    for loop in group.loops:
        found = (loop.step_bytes * np.arange(loop.trips, dtype=np.int64)[:, np.newaxis] + found).ravel()
    return found


def sample_iterations(group: AccessGroup) -> Integers:
    """Byte offsets of a few iterations of each loop, whose alignments vary as those of all do."""
    found = np.zeros(1, dtype=np.int64)
    for loop in group.loops:
        taken = min(loop.trips, _MOST_ITERATIONS)
        found = list_distinct(loop.step_bytes * np.arange(taken, dtype=np.int64)[:, np.newaxis] + found)
        if len(found) > _MOST_ITERATIONS:
            found = found[:: len(found) // _MOST_ITERATIONS]
    return found


def list_block_starts(group: AccessGroup, blocks: Blocks) -> Integers:
    """Byte offset of each block, int64[blocks]."""
    return list_offsets(group.find_block_steps(blocks.block), blocks.count)


def count_block(entry: ArrayGroups, groups: Sequence[AccessGroup], blocks: Blocks) -> tuple[float, float, bool]:
    """Distinct sectors and lines one block touches in an array, averaged over a box of blocks at the grid's start.

    Returns:
        Sectors, lines, and whether they are those of all iterations, which may be too many to enumerate.
    """
    if not groups:
        return 0.0, 0.0, True
    budget = MOST_ADDRESSES // blocks.threads_per_block
    relative, starts, is_whole = [], [], True
    for group in groups:
        most = max(1, budget // len(group.constants_bytes))
        iterations = list_iterations(group, most)
        if iterations is None:
            iterations, is_whole = sample_iterations(group)[:most], False
        offsets = list_distinct(list_offsets(group.find_thread_steps(), blocks.threads))
        places = np.add.outer(group.constants_bytes + entry.array.base_bytes, offsets).ravel()
        relative.append(np.add.outer(iterations, places).ravel())
        starts.append(list_block_starts(group, blocks))
    widths = [group.element_bytes for group in groups]
    total_sectors = total_lines = 0
    for shifts, weight in _list_different_starts(starts):
        sectors = np.concatenate(
            [
                part
                for places, shift, width in zip(relative, shifts, widths, strict=True)
                for part in _list_sectors(places + shift, width)
            ]
        )
        distinct, lines = _count_distinct(sectors)
        total_sectors += weight * distinct
        total_lines += weight * lines
    count = len(starts[0])
    return total_sectors / count, total_lines / count, is_whole


def _list_different_starts(starts: Sequence[Integers]) -> Iterator[tuple[Integers, int]]:
    """Starts of blocks that differ modulo a line, or from group to group, with how many blocks start alike."""
    every = np.stack(starts, axis=1)
    reduced = every - (every[:, :1] // LINE_BYTES) * LINE_BYTES
    # Of one column np.unique is several times faster than of rows.
    of_rows = None if len(starts) == 1 else 0
    different, weights = np.unique(reduced, axis=of_rows, return_counts=True)
    yield from zip(different.reshape(-1, len(starts)), weights.tolist(), strict=True)


def _list_sectors(addresses: Integers, width: int) -> list[Integers]:
    """Sectors of accesses of ``width`` bytes; a wide or misaligned access lies in several."""
    first = addresses >> _SECTOR_SHIFT
    if width <= SECTOR_BYTES and width & (width - 1) == 0 and not np.bitwise_or.reduce(addresses) & (width - 1):
        return [first]
    last = (addresses + width - 1) >> _SECTOR_SHIFT
    most = int((last - first).max())
    return [np.minimum(first + index, last) for index in range(most + 1)]


def _count_distinct(sectors: Integers) -> tuple[int, int]:
    """Number of distinct sectors, and of distinct lines.

    Threads that follow each other access few sectors; what repeats the one before is left out ahead of sorting, which takes the time. 32-bit
    offsets, where they fit, are sorted several times faster.
    """
    if not len(sectors):
        return 0, 0
    low = int(sectors.min()) >> _LINE_SHIFT << _LINE_SHIFT
    span = int(sectors.max()) - low
    if span < 8 * len(sectors):
        seen = np.zeros((span >> _LINE_SHIFT) + 1 << _LINE_SHIFT, dtype=np.bool_)
        seen[sectors - low] = True
        return int(np.count_nonzero(seen)), int(np.count_nonzero(seen.reshape(-1, 1 << _LINE_SHIFT).any(axis=1)))
    offsets = sectors[np.append(True, sectors[1:] != sectors[:-1])] - low
    ordered = list_distinct(offsets.astype(np.int32 if span < 1 << 31 else np.int64))
    lines = ordered >> _LINE_SHIFT
    return len(ordered), 1 + int(np.count_nonzero(lines[1:] != lines[:-1]))


def count_warp_sectors(entry: ArrayGroups, group: AccessGroup, blocks: Blocks, unit_bytes: int = SECTOR_BYTES) -> float:
    """Distinct sectors (or lines) of one warp's access, summed over a block's warps and a group's accesses, one iteration of their loops.

    Averaged over a box of blocks at the grid's start and over iterations.
    """
    places, weights = list_warp_places(entry, group, blocks, WARP_LANES, unit_bytes)
    offsets = list_offsets(group.find_thread_steps(), find_warp_shape(blocks.block, WARP_LANES))
    first = (places[:, np.newaxis] + offsets) // unit_bytes
    last = (places[:, np.newaxis] + offsets + group.element_bytes - 1) // unit_bytes
    both = first if np.array_equal(first, last) else np.concatenate([first, last], axis=1)
    both.sort(axis=1)
    distinct = 1 + np.count_nonzero(both[:, 1:] != both[:, :-1], axis=1)
    warps = blocks.threads_per_block / prod(find_warp_shape(blocks.block, WARP_LANES))
    return float(np.average(distinct, weights=weights)) * warps * len(group.constants_bytes)


def list_warp_places(
    entry: ArrayGroups, group: AccessGroup, blocks: Blocks, lanes: int, modulus: int
) -> tuple[Integers, Integers]:
    """Addresses at which warps (or half-warps) start, modulo a number of bytes, int64[n], and the count of each, int64[n].

    Over all warps of a box of blocks, all accesses of a group and some iterations of their loops.
    """
    shape = find_warp_shape(blocks.block, lanes)
    counts = (blocks.block[0] // shape[0] or 1, blocks.block[1] // shape[1] or 1, blocks.block[2] // shape[2] or 1)
    steps = group.find_thread_steps()
    within = list_offsets((steps[0] * shape[0], steps[1] * shape[1], steps[2] * shape[2]), counts)
    parts = (
        group.constants_bytes + entry.array.base_bytes,
        within,
        list_block_starts(group, blocks),
        sample_iterations(group),
    )
    places, weights = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    for part in parts:
        counted = np.bincount(part % modulus)
        residues = np.flatnonzero(counted)
        summed = (places[:, np.newaxis] + residues).ravel() % modulus
        # Places are few, and below the modulus: they are counted, not sorted.
        total = np.bincount(summed, weights=np.outer(weights, counted[residues]).ravel())
        places = np.flatnonzero(total)
        weights = total[places].astype(np.int64)
    return places, weights


# Cycles for which a warp's accesses occupy L1's data pipe: :func:`count_paper_cycles`, :func:`count_cycles`.
#
# Both find, per access, how lanes share banks; the later rule adds what looking up tags takes, and what handing over
# the values takes. The corrected model also counts a cycle for each line that is filled
# (:mod:`~gpa_lsp.execution.volumes.counting`), as the authors' later program does. On a V100 tags and data take their
# time one after the other: for loads of a 2D box from L1 alone that lie in 1 to 32 rows, and for 3D stars whose blocks
# are 2 to 8 wide, the sum is within 15 % of what was measured, without fills; the larger of the two is up to half too
# short.
#
# Sources: Ernst et al. (2022), section 4.2 (banks; "close" addresses within 1024 bytes). The later rule is that of the
# authors' program of 2025; it meets the measured cycles of strided loads of the public gpu-benches within 5 to 14 %
# (A100, A40, H200), the paper's within 29 to 48 %.


_HALF_WARP = 16
_FAR_BYTES = 1024


def count_paper_cycles(entry: ArrayGroups, group: AccessGroup, blocks: Blocks) -> float:
    """Cycles of a warp for one iteration of a group's accesses: bank conflicts of half-warps, or addresses too far apart.

    The mean over all half-warps of a box of blocks, twice.
    """
    places, weights = list_warp_places(entry, group, blocks, _HALF_WARP, _FAR_BYTES)
    offsets = list_offsets(group.find_thread_steps(), find_warp_shape(blocks.block, _HALF_WARP))
    elements = (places[:, np.newaxis] + offsets) // group.element_bytes
    conflicts = count_bank_conflicts(elements, LINE_BYTES // group.element_bytes)
    chunks = count_distinct_rows(elements // (_FAR_BYTES // group.element_bytes))
    cycles = float(np.average(np.maximum(conflicts, chunks), weights=weights))
    return 2 * cycles * len(group.constants_bytes)


def count_cycles(entry: ArrayGroups, group: AccessGroup, blocks: Blocks, *, tags_per_cycle: int | None = None) -> float:
    """Cycles of a warp for one iteration of a group's accesses by the later rule: the most of conflicts, tags and width; or their sum."""
    places, weights = list_warp_places(entry, group, blocks, WARP_LANES, LINE_BYTES)
    offsets = list_offsets(group.find_thread_steps(), find_warp_shape(blocks.block, WARP_LANES))
    cycles = count_request_cycles(places[:, np.newaxis] + offsets, group.element_bytes, tags_per_cycle=tags_per_cycle)
    return float(np.average(cycles, weights=weights)) * len(group.constants_bytes)
