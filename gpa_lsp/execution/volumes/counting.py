"""Expressions and a launch → :class:`~gpa_lsp.execution.volumes.model.Counts`: :func:`count_all`."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.symbolic_accesses.requests import LINE_BYTES, SECTOR_BYTES, WARP_LANES
from gpa_lsp.execution.volumes.block_volumes import (
    Blocks,
    count_block,
    count_cycles,
    count_paper_cycles,
    count_warp_sectors,
)
from gpa_lsp.execution.volumes.devices import VolumeDevice
from gpa_lsp.execution.volumes.expressions import (
    BlockBox,
    KernelAccesses,
    LaunchShape,
    ThreadRegion,
    Triple,
    Wave,
    count_threads,
)
from gpa_lsp.execution.volumes.footprints import Overlaps, Place, build_intervals, find_array_strides, measure_overlaps
from gpa_lsp.execution.volumes.groups import (
    AccessGroup,
    ArrayGroups,
    Integers,
    find_span,
    group_accesses,
    list_distinct,
)
from gpa_lsp.execution.volumes.model import Counts, Rewrites, SharedLoads, VolumeMode
from gpa_lsp.execution.volumes.retention import LOADS_UNDER_WAY, add_delays, count_iterations, count_loads, find_sharing
from gpa_lsp.execution.volumes.traffic import (
    ArrayTraffic,
    bound_footprint,
    count_requested_sectors,
    count_sampled,
    measure_traffic,
)

Chosen = tuple[ArrayGroups, tuple[AccessGroup, ...]]  # Some groups of an array
Placed = tuple[ArrayGroups, tuple[int, ...]]  # An array with the strides of its outer dimensions in bytes

PAGE_BYTES = 2 << 20


def count_wave_pages(entries: Sequence[ArrayGroups], launch: LaunchShape, wave: Wave) -> int:
    """Distinct pages, by array, that as many blocks as a wave has touch at the grid's start."""
    x, y, z = (count * size for count, size in zip(wave.start, launch.block, strict=True))
    everywhere = ThreadRegion(low=(0, 0, 0), high=(x, y, z))
    pages = 0
    for entry in entries:
        place = Place(launch=launch, region=everywhere, base_bytes=entry.array.base_bytes)
        intervals = build_intervals(entry.groups, place, BlockBox(low=(0, 0, 0), high=wave.start))
        pages += _count_union(intervals[:, 0] * SECTOR_BYTES)
    return pages


def _count_union(spans: Integers) -> int:
    if not len(spans):
        return 0
    first, last = spans[:, 0] // PAGE_BYTES, (spans[:, 1] - 1) // PAGE_BYTES
    low = int(first.min())
    length = int(last.max()) - low + 2
    if length > 64 * len(spans):
        return len(list_distinct(np.concatenate([first, last])))
    opened = np.bincount(first - low, minlength=length)
    closed = np.bincount(last - low + 1, minlength=length)
    return int(np.count_nonzero(np.cumsum(opened - closed)))


class Subject(Struct, frozen=True, kw_only=True):
    """A kernel, its launch and the GPU that it is counted for."""

    kernel: KernelAccesses  # its accesses
    launch: LaunchShape  # how threads are laid out
    wave: Wave  # blocks that run at once
    device: VolumeDevice  # on which
    mode: VolumeMode  # the model

    @property
    def region(self) -> ThreadRegion:
        """Threads that are counted where the model looks at the grid's ends.

        The published program cuts threads at the number of updates also along axes that are folded, where only threads beyond that number have no
        work any more: it counts some that have none.
        """
        if self.mode is VolumeMode.PAPER:
            return ThreadRegion(low=(0, 0, 0), high=self.launch.updates)
        return self.launch.region


def count_all(subject: Subject) -> Counts:
    """All counts that the model needs. Quantities of a block are those of an average one; see :func:`list_block_classes`."""
    is_paper = subject.mode is VolumeMode.PAPER
    kernel, wave = (_simplify(subject) if is_paper else subject.kernel), subject.wave
    entries = group_accesses(kernel)
    whole = _build_blocks(subject)
    cached = [(entry, entry.select_cached()) for entry in entries]
    strides = [find_array_strides(entry, subject.launch, subject.region) for entry in entries]
    placed = list(zip(entries, strides, strict=True))
    extra = count_sampled(kernel, subject.launch, subject.device.l2, _count_equivalent_blocks(subject))
    affine = _count_as_published(subject, entries, cached) if is_paper else _count_framed(subject, placed)
    loads, stores = _measure_wave(subject, placed, affine)
    sharing = () if is_paper else _find_sharing(subject, placed, affine)
    launched = max(1, subject.launch.region.thread_count) * subject.launch.updates_per_thread
    wave_threads = count_threads(wave.current, subject.launch.block, subject.region)
    per_wave = max(1, wave_threads) * subject.launch.updates_per_thread
    read = SECTOR_BYTES * sum(own.traffic.touched_by_loads for own in affine.traffic)
    fetched = SECTOR_BYTES * sum(own.traffic.fetched for own in affine.traffic) / launched
    if subject.device.dram_fetch_bytes > SECTOR_BYTES:
        fetched += extra.wave_fetched_bytes / per_wave
    least = 1.0 if is_paper else 0.0
    lines = _count_lines(cached, whole) + extra.block_line_bytes / LINE_BYTES
    # Where tags take time of their own, filling a line was seen to take none.
    fills = (
        0.0 if is_paper or subject.device.l1_tags_per_cycle else lines / subject.launch.threads_per_block * WARP_LANES
    )
    working_ratio = 1.0 if is_paper else count_working_ratio(subject.launch)
    busy_ratio = 1.0 if is_paper else count_busy_ratio(subject.launch)
    sampled = extra.cycles_per_warp * busy_ratio / (working_ratio or 1.0)  # of all warps that are launched
    executed_ratio = (working_ratio or 1.0) if kernel.is_executed_whole else busy_ratio
    shared = 0.0 if is_paper else kernel.shared_cycles_per_warp * busy_ratio / executed_ratio
    return Counts(
        l1_cycles_per_warp=_count_l1(subject, entries, whole) + shared + sampled + fills,
        block_line_bytes=max(least, lines * LINE_BYTES),
        block_request_bytes=max(least, affine.requests * SECTOR_BYTES + extra.block_request_bytes),
        block_bypassing_bytes=affine.bypassing * SECTOR_BYTES + extra.block_bypassing_bytes,
        block_load_bytes=max(least, affine.loads * SECTOR_BYTES + extra.block_load_bytes),
        block_atomic_bytes=affine.atomic * SECTOR_BYTES + extra.block_atomic_bytes,
        block_store_bytes=max(least, affine.stores * SECTOR_BYTES + extra.block_store_bytes),
        block_written_bytes=max(least, affine.written * SECTOR_BYTES + extra.block_written_bytes),
        rewrites=() if is_paper else (*affine.rewrites, *extra.rewrites),
        launch_load_bytes=read,
        launch_store_bytes=SECTOR_BYTES * sum(own.traffic.touched_by_stores for own in affine.traffic),
        shared_loads=sharing,
        once_load_bytes=0.0 if is_paper else read / launched + extra.wave_load_bytes / per_wave,
        fetched_bytes=0.0 if is_paper else fetched,
        load_iterations=max((count_iterations(entry.select(loads=True)) for entry in entries), default=1),
        loads_per_thread=count_loads(entries),
        wave_load_bytes=SECTOR_BYTES * sum(found.current for found in loads) + extra.wave_load_bytes,
        wave_store_bytes=SECTOR_BYTES * sum(found.current for found in stores) + extra.wave_store_bytes,
        before_bytes=_sum_axes([found.before for found in (*loads, *stores)]),
        shared_load_bytes=_sum_axes([found.shared for found in loads]),
        wave_threads=wave_threads,
        wave_pages=count_wave_pages(entries, subject.launch, wave),
        busy_ratio=busy_ratio,
        working_ratio=working_ratio,
        executed_ratio=executed_ratio,
        row_span=_find_span(placed, 1),
        layer_span=_find_span(placed, 2),
    )


def _measure_wave(
    subject: Subject, placed: Sequence[Placed], affine: "_AffineCounts"
) -> tuple[list[Overlaps], list[Overlaps]]:
    """Sectors that a wave loads and stores of each array; in the corrected model no more than its blocks ask for."""
    loads = [_measure(subject, entry, steps, loads=True) for entry, steps in placed]
    stores = [_measure(subject, entry, steps, loads=False) for entry, steps in placed]
    if subject.mode is VolumeMode.PAPER:
        return loads, stores
    ratio = _count_equivalent_blocks(subject) / prod(subject.launch.grid)
    frame = affine.traffic
    return (
        [
            bound_footprint(one, own.from_l2 * ratio, own.traffic.touched_by_loads * ratio)
            for one, own in zip(loads, frame, strict=True)
        ],
        [
            bound_footprint(one, own.traffic.stored * ratio, own.traffic.touched_by_stores * ratio)
            for one, own in zip(stores, frame, strict=True)
        ],
    )


def _find_sharing(subject: Subject, placed: Sequence[Placed], affine: "_AffineCounts") -> tuple[SharedLoads, ...]:
    found: list[SharedLoads] = []
    is_long = count_loads([entry for entry, _ in placed]) > LOADS_UNDER_WAY
    for (entry, strides), own in zip(placed, affine.traffic, strict=True):
        place = Place(launch=subject.launch, region=subject.region, base_bytes=entry.array.base_bytes, strides=strides)
        together = own.traffic.touched_by_loads
        apart = min(own.from_l2, max(together, _count_apart(subject, entry, own)))
        steps = find_sharing(entry, place, subject.wave.blocks, apart_sectors=apart, together_sectors=together)
        found.extend(add_delays(steps, entry, subject.launch) if is_long else steps)
    return tuple(found)


def _count_apart(subject: Subject, entry: ArrayGroups, own: "_Framed") -> float:
    """Sectors that all blocks load, each block a sector once, whether L1 keeps it or not."""
    if not own.traffic.bypassing and not own.traffic.atomic:
        return own.compulsory
    return _average_blocks(subject, [(entry, entry.select(loads=True))]) * prod(subject.launch.grid)


class _Framed(Struct, frozen=True, kw_only=True):
    """Sectors of one array."""

    traffic: ArrayTraffic  # what is asked for in the whole launch
    compulsory: float  # what L1 asks L2 for at least
    written: float  # what blocks write, each block a sector once

    @property
    def from_l2(self) -> float:
        """Sectors that blocks must ask L2 for: at most as many come from DRAM."""
        return self.compulsory + self.traffic.bypassing + self.traffic.atomic


class _AffineCounts(Struct, frozen=True, kw_only=True):
    """Sectors of an average block by affine accesses."""

    requests: float  # of each warp's loads, those past L1 included
    bypassing: float  # of ``requests`` those of loads that L1 does not keep
    loads: float  # distinct ones of a block through L1
    atomic: float  # of each warp's atomics
    stores: float  # of each warp's stores and atomics
    written: float  # distinct ones of a block's stores and atomics; ``stores`` in the published model
    # of ``stores`` those that go again where they went before; empty in the published model
    rewrites: tuple[Rewrites, ...] = ()
    traffic: tuple[_Framed, ...] = ()  # by array; empty in the published model


def _count_as_published(subject: Subject, entries: Sequence[ArrayGroups], cached: Sequence[Chosen]) -> _AffineCounts:
    """Counts of a block in the middle of the grid, which stands for all."""
    blocks = _build_blocks(subject)
    requests = _count_requests(blocks, cached)
    stores = _count_requests(blocks, [(entry, entry.select(loads=False)) for entry in entries])
    loads = _count_sectors(subject, cached, blocks)
    return _AffineCounts(requests=requests, bypassing=0.0, loads=loads, atomic=0.0, stores=stores, written=stores)


def _count_framed(subject: Subject, placed: Sequence[Placed]) -> _AffineCounts:
    """Means over all blocks: requests exactly, and of what a block loads no more than its warps ask for."""
    launched = prod(subject.launch.grid)
    framed = []
    for entry, strides in placed:
        traffic = measure_traffic(entry, subject.launch, strides, subject.device.dram_fetch_bytes)
        average = _average_blocks(subject, [(entry, entry.select_cached())]) * launched
        most = max(0.0, traffic.cached)
        least = max(0.0, traffic.touched_by_loads - traffic.bypassing - traffic.atomic)
        written = _average_blocks(subject, [(entry, entry.select(loads=False))]) * launched
        framed.append(
            _Framed(
                traffic=traffic,
                compulsory=min(most, max(average, least)),
                written=min(traffic.stored, max(written, traffic.touched_by_stores)),
            )
        )
    return _AffineCounts(
        requests=sum(one.traffic.cached + one.traffic.bypassing for one in framed) / launched,
        bypassing=sum(one.traffic.bypassing for one in framed) / launched,
        loads=sum(one.compulsory for one in framed) / launched,
        atomic=sum(one.traffic.atomic for one in framed) / launched,
        stores=sum(one.traffic.stored for one in framed) / launched,
        written=sum(one.written for one in framed) / launched,
        rewrites=tuple(rewritten for entry, _ in placed for rewritten in _list_rewrites(subject, entry)),
        traffic=tuple(framed),
    )


def _list_rewrites(subject: Subject, entry: ArrayGroups) -> Iterator[Rewrites]:
    """Rewrites by stores in loops that do not move them: an iteration of the innermost such loop passes between two of them."""
    launch = subject.launch
    whole = BlockBox(low=(0, 0, 0), high=launch.grid)
    for group in entry.select(loads=False):
        still = [index for index, loop in enumerate(group.loops) if not loop.step_bytes]
        if not still:
            continue
        repeats = prod(group.loops[index].trips for index in still)
        around = prod(loop.trips for loop in group.loops[still[0] :])
        stored = count_requested_sectors(group, entry.array.base_bytes, launch, launch.region, whole)
        again = stored / prod(launch.grid) * (1 - 1 / repeats)
        yield Rewrites(block_bytes=again * SECTOR_BYTES, traffic_ratio=1 / around)


def _count_equivalent_blocks(subject: Subject) -> float:
    """Number of average blocks that have as many threads with work as the wave."""
    threads = max(1, count_threads(subject.wave.current, subject.launch.block, subject.region))
    return threads / (subject.launch.threads_per_block * (count_working_ratio(subject.launch) or 1.0))


def _simplify(subject: Subject) -> KernelAccesses:
    """The kernel as the published model sees it: all loads kept in L1, and no guard but the number of updates."""
    kernel, whole = subject.kernel, subject.launch.region
    accesses = []
    for access in kernel.accesses:
        is_open = access.region is None or access.region.meet(whole) == whole
        accesses.append(replace(access, bypasses_l1=False, region=None if is_open else access.region))
    sampled = tuple(replace(access, bypasses_l1=False) for access in kernel.sampled)
    return replace(kernel, accesses=tuple(accesses), sampled=sampled)


def count_working_ratio(launch: LaunchShape) -> float:
    """Threads with work, of all that are launched, 0..1.

    >>> count_working_ratio(LaunchShape(block=(64, 1, 1), grid=(2, 1, 1), updates=(96, 1, 1)))
    0.75
    """
    launched = prod(launch.grid) * launch.threads_per_block
    return launch.region.thread_count / launched if launched else 1.0


def count_busy_ratio(launch: LaunchShape) -> float:
    """Threads with work, of all threads of blocks in which one has some, 0..1: the other blocks ask for nothing.

    >>> count_busy_ratio(LaunchShape(block=(64, 1, 1), grid=(20, 1, 1), updates=(96, 1, 1)))
    0.75
    """
    blocks = prod(
        min(count, -(-high // size))
        for size, count, high in zip(launch.block, launch.grid, launch.region.high, strict=True)
    )
    return launch.region.thread_count / (blocks * launch.threads_per_block) if blocks else 1.0


def list_block_classes(launch: LaunchShape) -> Iterator[tuple[Triple, int]]:
    """Threads with work of each kind of block, and how many blocks of the kind there are: those at the grid's ends have fewer.

    >>> list(list_block_classes(LaunchShape(block=(64, 2, 1), grid=(2, 3, 1), updates=(96, 6, 1))))
    [((64, 2, 1), 3), ((32, 2, 1), 3)]
    """
    axes = []
    for size, count, high in zip(launch.block, launch.grid, launch.region.high, strict=True):
        whole, rest = min(count, high // size), high % size
        axes.append([(size, whole)] * (whole > 0) + [(rest, 1)] * (rest > 0 and whole < count))
    for (x, of_x), (y, of_y), (z, of_z) in product(*axes):
        yield (x, y, z), of_x * of_y * of_z


def _build_blocks(subject: Subject, threads: Triple | None = None) -> Blocks:
    block = subject.launch.block
    return Blocks(block=block, count=subject.wave.representative, threads=threads or block)


def _count_lines(chosen: Sequence[Chosen], blocks: Blocks) -> float:
    """Lines that a block touches by some groups in one iteration.

    Threads of a block run through a loop about together, so what shares L1 at one time is what one iteration touches: an approximation, which
    takes reuse between iterations for granted.
    """
    return sum(
        count_block(entry, [replace(group, loops=()) for group in groups], blocks)[1] for entry, groups in chosen
    )


def _count_sectors(subject: Subject, chosen: Sequence[Chosen], blocks: Blocks) -> float:
    """Sectors that a block touches by some groups over all iterations."""
    total = 0.0
    for entry, groups in chosen:
        sectors, _, is_whole = count_block(entry, groups, blocks)
        total += sectors if is_whole else _measure_block(subject, entry, groups, blocks)
    return total


def _measure_block(subject: Subject, entry: ArrayGroups, groups: Sequence[AccessGroup], blocks: Blocks) -> float:
    """Sectors that one block touches over loops too long to enumerate: the first block of the wave, cut to as many threads."""
    launch, first = subject.launch, subject.wave.current.low
    x, y, z = (at * size for at, size in zip(first, launch.block, strict=True))
    to_x, to_y, to_z = (low + count for low, count in zip((x, y, z), blocks.threads, strict=True))
    region = ThreadRegion(low=(x, y, z), high=(to_x, to_y, to_z))
    strides = find_array_strides(entry, launch, launch.region)
    place = Place(launch=launch, region=region, base_bytes=entry.array.base_bytes, strides=strides)
    box = BlockBox(low=first, high=(first[0] + 1, first[1] + 1, first[2] + 1))
    return measure_overlaps(groups, place, [box]).current


def _average_blocks(subject: Subject, chosen: Sequence[Chosen]) -> float:
    """Sectors that an average block touches by some groups; blocks at the grid's ends do for fewer threads."""
    classes = list(list_block_classes(subject.launch)) or [(subject.launch.block, prod(subject.launch.grid))]
    total = sum(
        _count_sectors(subject, chosen, _build_blocks(subject, threads)) * blocks for threads, blocks in classes
    )
    return total / prod(subject.launch.grid)


def _measure(subject: Subject, entry: ArrayGroups, strides: tuple[int, ...], *, loads: bool) -> Overlaps:
    wave, launch = subject.wave, subject.launch
    base = 0 if subject.mode is VolumeMode.PAPER else entry.array.base_bytes
    sets = (wave.current, wave.before_x, wave.before_y, wave.before_z)
    place = Place(launch=launch, region=subject.region, base_bytes=base, strides=strides)
    return measure_overlaps(entry.select(loads=loads), place, sets)


def _find_span(placed: Iterable[Placed], axis: int) -> int | None:
    """Places along an axis that one thread's loads span, at most over the arrays."""
    spans = [find_span((*entry.select_cached(), *entry.select_bypassing()), strides, axis) for entry, strides in placed]
    return max((span for span in spans if span is not None), default=None)


def _sum_axes(parts: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    x, y, z = (SECTOR_BYTES * sum(part[axis] for part in parts) for axis in range(3))
    return (x, y, z)


def _count_l1(subject: Subject, entries: Sequence[ArrayGroups], blocks: Blocks) -> float:
    """Cycles of a warp for all its accesses that have expressions.

    The published program puts loads and stores into one mapping by array, so that an array that is both read and written loses its loads.
    """
    if subject.mode is VolumeMode.PAPER:
        return sum(
            count_paper_cycles(entry, group, blocks)
            for entry in entries
            for group in entry.select(loads=False) or entry.groups
        )
    return sum(
        count_cycles(entry, group, blocks, tags_per_cycle=subject.device.l1_tags_per_cycle)
        * group.trips
        * group.executions
        for entry in entries
        for group in entry.groups
    )


def _count_requests(blocks: Blocks, chosen: Iterable[Chosen]) -> float:
    """Distinct sectors of each warp's access, summed over a block's warps and some groups' accesses."""
    return sum(
        count_warp_sectors(entry, group, blocks) * group.trips * group.executions
        for entry, groups in chosen
        for group in groups
    )
