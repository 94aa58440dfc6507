"""Sectors that a launch requests of L2, array by array, and those that DRAM must give at least: bounds of the model's estimates.

The requests of warps are counted exactly (:func:`count_requested_sectors`). A block's L1 asks for a sector once or more often, and never for more
than its warps do; a wave's blocks get from DRAM what they ask L2 for, and no more; and all that a launch touches comes from DRAM once at least.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import inf, prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.requests import LINE_BYTES, SECTOR_BYTES, WARP_LANES
from gpa_lsp.execution.accesses.l2_traffic import L2Cache, count_passed
from gpa_lsp.execution.volumes.block_volumes import list_offsets
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    BlockBox,
    FirstTouched,
    KernelAccesses,
    LaunchShape,
    SampledAccess,
    ThreadRegion,
    Triple,
    make_triple,
)
from gpa_lsp.execution.volumes.footprints import (
    Overlaps,
    Place,
    build_intervals,
    count_exactly,
    count_starts,
    measure_overlaps,
    measure_union,
)
from gpa_lsp.execution.volumes.groups import AccessGroup, ArrayGroups, Integers
from gpa_lsp.execution.volumes.model import Rewrites

_MOST_STARTS = 1 << 14  # Places from which accesses go on that are looked at for what DRAM fetches


class ArrayTraffic(Struct, frozen=True, kw_only=True):
    """Sectors of the whole launch in one array."""

    cached: float  # asked for by loads through L1
    bypassing: float  # asked for by loads that L1 does not keep
    atomic: float  # asked for by atomics and reductions
    stored: float  # sent by stores, atomics and reductions
    touched_by_loads: float  # distinct ones that loads, atomics and reductions touch, at most
    touched_by_stores: float  # distinct ones that are written, at most
    fetched: float  # that DRAM gives along with ``touched_by_loads``


def measure_traffic(
    entry: ArrayGroups, launch: LaunchShape, strides: tuple[int, ...], fetch_bytes: int = SECTOR_BYTES
) -> ArrayTraffic:
    """Traffic of one array.

    Args:
        strides: of its outer dimensions, in bytes.
        fetch_bytes: that DRAM gives at once.
    """
    whole = BlockBox(low=(0, 0, 0), high=launch.grid)
    place = Place(launch=launch, region=launch.region, base_bytes=entry.array.base_bytes, strides=strides)

    def ask(groups: Iterable[AccessGroup]) -> float:
        base = entry.array.base_bytes
        return sum(count_requested_sectors(group, base, launch, launch.region, whole) for group in groups)

    held = _count_array_sectors(entry.array)

    def touch(groups: Sequence[AccessGroup], asked: float) -> float:
        exact = count_exactly(groups, place, whole) if any(stride % SECTOR_BYTES for stride in strides) else None
        found = measure_overlaps(groups, place, [whole]).current if exact is None else exact
        return min(float(found), asked, held)

    loads, stores = entry.select(loads=True), entry.select(loads=False)
    cached, bypassing = ask(entry.select_cached()), ask(entry.select_bypassing())
    atomic, stored = ask(group for group in loads if group.is_store), ask(stores)
    read = touch(loads, cached + bypassing + atomic)
    ratio = _find_fetched_ratio(loads, place, launch.grid, fetch_bytes)
    return ArrayTraffic(
        cached=cached,
        bypassing=bypassing,
        atomic=atomic,
        stored=stored,
        touched_by_loads=read,
        touched_by_stores=touch(stores, stored),
        fetched=min(read * ratio, held - read),
    )


def _find_fetched_ratio(groups: Sequence[AccessGroup], place: Place, grid: Triple, fetch_bytes: int) -> float:
    """Sectors that are fetched without being touched, per sector that some accesses touch.

    L2 fetches more than a sector at once where its neighbour is not there either: 64 bytes on the GPUs that were looked at. A kernel that packs
    the halo of rows was measured to read 1.50 times the sectors it needs on a V100: of every second row, the two it needs lie in 64 bytes together.
    """
    unit = fetch_bytes // SECTOR_BYTES
    if unit <= 1:
        return 0.0
    sectors = build_intervals(groups, place, _choose_blocks(groups, place, grid))[:, 0]
    if not len(sectors):
        return 0.0
    fetched = np.stack([sectors[:, 0] // unit, (sectors[:, 1] - 1) // unit + 1], axis=1)
    return measure_union(fetched) * unit / measure_union(sectors) - 1


def _choose_blocks(groups: Sequence[AccessGroup], place: Place, grid: Triple) -> BlockBox:
    """The most blocks that can be looked at; axes along which blocks are far apart are cut first."""
    steps = [group.find_block_steps(place.launch.block) for group in groups]
    far = sorted(range(3), key=lambda axis: -max((abs(step[axis]) for step in steps), default=0))
    high = list(grid)
    for axis in far:
        while high[axis] > 1 and count_starts(groups, place, _box(high)) > _MOST_STARTS:
            high[axis] = (high[axis] + 1) // 2
    return _box(high)


def _box(high: Sequence[int]) -> BlockBox:
    return BlockBox(low=(0, 0, 0), high=make_triple(high))


def bound_footprint(found: Overlaps, most: float, least: float) -> Overlaps:
    """A wave's footprint, no larger than what its blocks ask for, and no smaller than its part of what the launch touches.

    What it shares with others shrinks with it. The least holds of the mean wave, which the one that was measured stands for.
    """
    if found.current <= most:
        return replace(found, current=max(found.current, min(least, most)))
    ratio = most / found.current
    return Overlaps(current=most, before=found.before, shared=tuple(one * ratio for one in found.shared))


# Requests of a launch's warps by one access, exactly: :func:`count_requested_sectors`.
#
# Warps are enumerated as the hardware makes them, 32 threads of a block after another, and only threads that make the
# access count. What a warp asks for depends on where it starts modulo a sector alone, so each kind of block is looked
# at once for every such place.

_INACTIVE = np.iinfo(np.int64).max  # Sector of a lane that makes no access
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
    """int64[32]: number of accesses and iterations by the place within a sector where thread 0 of block 0 begins."""
    starts: Integers = np.bincount((group.constants_bytes + base_bytes) % SECTOR_BYTES, minlength=SECTOR_BYTES).astype(
        np.int64
    )
    for loop in group.loops:
        starts = _add_starts(starts, loop.step_bytes, 0, loop.trips)
    return starts


def _add_starts(starts: Integers, step: int, first: int, count: int) -> Integers:
    """Counts by place after the addition of ``count`` values, a step apart: places repeat after as many as a sector has bytes."""
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
    lanes = -(-len(offsets) // WARP_LANES) * WARP_LANES
    padded = np.zeros(lanes, dtype=np.int64)
    padded[: len(offsets)] = offsets
    is_there = np.zeros(lanes, dtype=np.bool_)
    is_there[: len(offsets)] = active
    warps = is_there.reshape(-1, WARP_LANES)
    kept = warps.any(axis=1)
    warps, padded = warps[kept], padded.reshape(-1, WARP_LANES)[kept]
    begin = places[:, np.newaxis, np.newaxis] + padded
    end = (begin + group.element_bytes - 1) // SECTOR_BYTES
    begin //= SECTOR_BYTES
    most = int((end - begin).max(initial=0))
    columns = [np.minimum(begin + index, end) for index in range(most + 1)]
    sectors = np.concatenate([np.where(warps, column, _INACTIVE) for column in columns], axis=2)
    sectors.sort(axis=2)
    is_new = sectors[:, :, 1:] != sectors[:, :, :-1]
    # Inactive lanes stand last: they are one more value where a lane is missing.
    distinct = 1 + np.count_nonzero(is_new, axis=2) - (~warps).any(axis=1)
    summed: Integers = distinct.sum(axis=1)
    return summed


class SampledCounts(Struct, frozen=True, kw_only=True):
    """Counts to be added to those of affine accesses; see :class:`~gpa_lsp.execution.volumes.model.Counts`."""

    cycles_per_warp: float
    block_line_bytes: float
    block_request_bytes: float
    block_bypassing_bytes: float
    block_load_bytes: float
    block_atomic_bytes: float
    block_store_bytes: float
    block_written_bytes: float
    rewrites: tuple[Rewrites, ...]
    wave_load_bytes: float
    wave_fetched_bytes: float
    wave_store_bytes: float


def count_sampled(kernel: KernelAccesses, launch: LaunchShape, l2: L2Cache, wave_blocks: float) -> SampledCounts:
    """Counts of accesses without an expression: the traced blocks stand for all, ``wave_blocks`` average ones have the threads of the wave.

    Approximation: blocks of a wave share as much as the traced ones did. Arrays that fit into L2 are read from DRAM once per launch, and that is
    shared out among the waves; of larger ones, every wave reads its part again.
    """
    warps = -(-launch.threads_per_block // WARP_LANES)
    loads = list(_select(kernel, loads=True))
    plain = [access for access in loads if access.kind is AccessKind.LOAD]
    cached = [access for access in plain if not access.bypasses_l1]
    stores = list(_select(kernel, loads=False))

    def estimate(touched: Iterable[tuple[int | None, float]]) -> float:
        return SECTOR_BYTES * _estimate_wave(touched, kernel, prod(launch.grid), wave_blocks, l2)

    first = [(one.array, _find_first(one, one.read)) for one in loads]
    written = [(one.array, _find_first(one, one.written)) for one in stores]
    loaded = estimate((array, one.wave_sectors) for array, one in first)
    fetched = estimate((array, one.wave_pairs * 2) for array, one in first)
    return SampledCounts(
        cycles_per_warp=sum(access.requests_per_warp * access.cycles_per_request for access in kernel.sampled),
        block_line_bytes=sum(_find_first(access, access.read).block_lines for access in cached) * LINE_BYTES,
        block_request_bytes=sum(_count_requests(access, warps) for access in plain),
        block_bypassing_bytes=sum(_count_requests(access, warps) for access in plain if access.bypasses_l1),
        block_load_bytes=sum(_find_first(access, access.read).block_sectors for access in cached) * SECTOR_BYTES,
        block_atomic_bytes=sum(
            _count_requests(access, warps) for access in loads if access.kind is not AccessKind.LOAD
        ),
        block_store_bytes=sum(_count_requests(access, warps) for access in stores),
        block_written_bytes=sum(one.block_sectors for _, one in written) * SECTOR_BYTES,
        rewrites=tuple(_list_rewrites(stores, warps)),
        wave_load_bytes=loaded,
        wave_fetched_bytes=max(0.0, fetched - loaded),
        wave_store_bytes=estimate((array, one.wave_sectors) for array, one in written),
    )


def _select(kernel: KernelAccesses, *, loads: bool) -> Iterator[SampledAccess]:
    for access in kernel.sampled:
        if access.kind is not (AccessKind.STORE if loads else AccessKind.LOAD):
            yield access


def _find_first(access: SampledAccess, known: FirstTouched | None) -> FirstTouched:
    """Sectors that an access touches first, as ``known``; where they are not, all it touches."""
    if known is not None:
        return known
    return FirstTouched(
        block_sectors=access.block_sectors,
        block_lines=access.block_lines,
        wave_sectors=access.block_sectors * access.distinct_ratio,
        wave_pairs=access.block_sectors * access.distinct_ratio / 2,
    )


def _count_requests(access: SampledAccess, warps: int) -> float:
    return access.requests_per_warp * access.sectors_per_request * warps * SECTOR_BYTES


def _list_rewrites(stores: Iterable[SampledAccess], warps: int) -> Iterator[Rewrites]:
    """Rewrites by stores that come back to the sectors of their block, taken as far apart as they can be."""
    for access in stores:
        stored, written = _count_requests(access, warps), access.block_sectors * SECTOR_BYTES
        if stored > written > 0:
            yield Rewrites(block_bytes=stored - written, traffic_ratio=written / stored)


def _count_array_sectors(array: AccessedArray) -> float:
    """Sectors that an array lies in; infinite where its size is unknown."""
    if array.size_bytes is None:
        return inf
    return -(-(array.base_bytes % SECTOR_BYTES + array.size_bytes) // SECTOR_BYTES)


def _estimate_wave(
    touched: Iterable[tuple[int | None, float]],
    kernel: KernelAccesses,
    blocks: int,
    wave_blocks: float,
    l2: L2Cache,
) -> float:
    """Sectors one wave moves to or from DRAM, of each array no more than it has.

    Args:
        touched: array and sectors of a block, of each access.
        blocks: of the launch.
        wave_blocks: that run at once and share L2.
    """
    by_array: dict[int | None, float] = defaultdict(float)
    for array, sectors in touched:
        by_array[array] += sectors
    running = min(wave_blocks, float(blocks))
    sizes = np.array([inf if one is None else _count_array_sectors(kernel.arrays[one]) for one in by_array])
    waves = np.minimum(sizes, np.array([*by_array.values()]) * running) * blocks / running
    held = np.minimum(sizes, waves)
    counts = np.stack([waves, waves, held, np.ones(len(held))])
    return count_passed(counts, l2, between_waves=0.0, held=float(held.sum())) * running / blocks
