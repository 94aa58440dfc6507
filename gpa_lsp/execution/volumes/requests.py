"""What the warps of a launch ask for with one access, exactly: :func:`count_requested_sectors`.

Warps are enumerated as the hardware makes them, 32 threads of a block after another, and only threads that make the access count. What a warp asks
for depends on where it starts modulo a sector alone, so each kind of block is looked at once for every such place.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from msgspec import Struct

from gpa_lsp.execution.volumes.block_volumes import WARP_THREADS, list_offsets
from gpa_lsp.execution.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.execution.volumes.expressions import LaunchShape, ThreadRegion, Triple
from gpa_lsp.execution.volumes.groups import AccessGroup, Integers
from gpa_lsp.execution.volumes.waves import BlockBox

_NOBODY = np.iinfo(np.int64).max
# The place from which a step of so many bytes, by column, leads to each place, by row
_BEFORE = (np.arange(SECTOR_BYTES)[:, np.newaxis] - np.arange(SECTOR_BYTES)) % SECTOR_BYTES


class _Part(Struct, frozen=True, kw_only=True):
    """Blocks along one axis of which the same threads make an access."""

    low: int  # first thread of each block
    high: int  # the one after the last
    first: int  # index of the first block
    count: int  # blocks


def count_requested_sectors(
    group: AccessGroup, base_bytes: int, launch: LaunchShape, region: ThreadRegion, blocks: BlockBox
) -> float:
    """Distinct sectors of each warp's access, summed over the warps of some blocks, a group's accesses and all iterations."""
    if group.region is not None:
        region = region.meet(group.region)
    axes = [list(_list_parts(axis, launch.block[axis], region, blocks)) for axis in range(3)]
    steps = group.find_block_steps(launch.block)
    once = _count_constants(group, base_bytes)
    total = 0
    for parts in product(*axes):
        starts = once
        for part, step in zip(parts, steps, strict=True):
            starts = _add_starts(starts, step, part.first, part.count)
        places = np.flatnonzero(starts)
        total += int(_count_sectors(group, launch.block, parts, places) @ starts[places])
    return total * group.executions


def _list_parts(axis: int, size: int, region: ThreadRegion, blocks: BlockBox) -> Iterator[_Part]:
    """The blocks of a box along an axis: those at the region's ends by themselves, and those between them together."""
    low, high = max(region.low[axis], blocks.low[axis] * size), min(region.high[axis], blocks.high[axis] * size)
    if high <= low:
        return
    first, last = low // size, (high - 1) // size
    whole_from, whole_to = -(-low // size), high // size
    if whole_from < whole_to:
        yield _Part(low=0, high=size, first=whole_from, count=whole_to - whole_from)
    if first < whole_from:
        yield _Part(low=low - first * size, high=min(size, high - first * size), first=first, count=1)
    if whole_to <= last and (last != first or first >= whole_from):
        yield _Part(low=max(0, low - last * size), high=high - last * size, first=last, count=1)


def _count_constants(group: AccessGroup, base_bytes: int) -> Integers:
    """How often each place within a sector is where thread 0 of block 0 begins: over the accesses and all iterations, int64[32]."""
    starts: Integers = np.bincount((group.constants_bytes + base_bytes) % SECTOR_BYTES, minlength=SECTOR_BYTES).astype(
        np.int64
    )
    for loop in group.loops:
        starts = _add_starts(starts, loop.step_bytes, 0, loop.trips)
    return starts


def _add_starts(starts: Integers, step: int, first: int, count: int) -> Integers:
    """The same after something is added that goes through ``count`` values, a step apart: places come again after as many as a sector has bytes."""
    indexes = np.arange(min(count, SECTOR_BYTES), dtype=np.int64)
    repeats = (count - indexes + SECTOR_BYTES - 1) // SECTOR_BYTES
    shifts = np.zeros(SECTOR_BYTES, dtype=np.int64)
    np.add.at(shifts, (first + indexes) * step % SECTOR_BYTES, repeats)
    added: Integers = starts[_BEFORE] @ shifts
    return added


def _count_sectors(group: AccessGroup, block: Triple, parts: tuple[_Part, ...], places: Integers) -> Integers:
    """Distinct sectors of a block's warps together, int64[places], for blocks that begin at these places."""
    offsets = list_offsets(group.find_thread_steps(), block)
    inside = [
        (np.arange(size) >= part.low) & (np.arange(size) < part.high) for size, part in zip(block, parts, strict=True)
    ]
    active = (inside[2][:, np.newaxis, np.newaxis] & inside[1][:, np.newaxis] & inside[0]).ravel()
    lanes = -(-len(offsets) // WARP_THREADS) * WARP_THREADS
    padded = np.zeros(lanes, dtype=np.int64)
    padded[: len(offsets)] = offsets
    is_there = np.zeros(lanes, dtype=np.bool_)
    is_there[: len(offsets)] = active
    warps = is_there.reshape(-1, WARP_THREADS)
    kept = warps.any(axis=1)
    warps, padded = warps[kept], padded.reshape(-1, WARP_THREADS)[kept]
    begin = places[:, np.newaxis, np.newaxis] + padded
    end = (begin + group.element_bytes - 1) // SECTOR_BYTES
    begin //= SECTOR_BYTES
    most = int((end - begin).max(initial=0))
    columns = [np.minimum(begin + index, end) for index in range(most + 1)]
    sectors = np.concatenate([np.where(warps, column, _NOBODY) for column in columns], axis=2)
    sectors.sort(axis=2)
    is_new = sectors[:, :, 1:] != sectors[:, :, :-1]
    # What nobody asks for stands last: it is one more value where a lane is missing.
    distinct = 1 + np.count_nonzero(is_new, axis=2) - (~warps).any(axis=1)
    summed: Integers = distinct.sum(axis=1)
    return summed
