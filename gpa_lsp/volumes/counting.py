"""Expressions and a launch → :class:`~gpa_lsp.volumes.model.Counts`: :func:`count_all`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.volumes.block_volumes import (
    LINE_BYTES,
    WARP_THREADS,
    BlockCounts,
    Blocks,
    count_block,
    count_warp_sectors,
    find_warp_shape,
)
from gpa_lsp.volumes.dimensions import SECTOR_BYTES, find_span
from gpa_lsp.volumes.distinct import list_distinct
from gpa_lsp.volumes.expressions import (
    KernelAccesses,
    LaunchShape,
    ThreadRegion,
    Triple,
    ignore_cache_operators,
)
from gpa_lsp.volumes.footprints import Overlaps, Place, build_intervals, find_array_strides, measure_overlaps
from gpa_lsp.volumes.groups import AccessGroup, ArrayGroups, Integers, group_accesses
from gpa_lsp.volumes.l1_cycles import count_cycles, count_paper_cycles
from gpa_lsp.volumes.model import Counts, VolumeMode
from gpa_lsp.volumes.sampled import count_sampled
from gpa_lsp.volumes.waves import BlockBox, Wave

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


_BEFORE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is counted.

    Attributes:
        kernel: its accesses.
        launch: how threads are laid out.
        wave: blocks that run at once.
        l2_bytes: of the device.
        mode: the model.
    """

    kernel: KernelAccesses
    launch: LaunchShape
    wave: Wave
    l2_bytes: int
    mode: VolumeMode

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
    """Everything the model needs to be counted. Quantities of a block are of an average one; see :func:`list_block_classes`."""
    is_paper = subject.mode is VolumeMode.PAPER
    kernel, wave = (_simplify(subject) if is_paper else subject.kernel), subject.wave
    entries = group_accesses(kernel)
    whole = _build_blocks(subject)
    full = _count_loads(subject, entries, whole)
    average = full.sectors if is_paper else _average_loads(subject, entries, full.sectors)
    strides = [find_array_strides(entry, subject.launch, subject.region) for entry in entries]
    placed = list(zip(entries, strides, strict=True))
    loads = [_measure(subject, entry, steps, loads=True) for entry, steps in placed]
    stores = [_measure(subject, entry, steps, loads=False) for entry, steps in placed]
    extra = count_sampled(kernel, subject.launch, wave, subject.l2_bytes)
    bypassing = _count_requests(whole, [(entry, entry.select_bypassing()) for entry in entries])
    requests = bypassing + _count_requests(whole, [(entry, entry.select_cached()) for entry in entries])
    writes = _count_requests(whole, [(entry, entry.select(loads=False)) for entry in entries])
    least = 1.0 if is_paper else 0.0
    scale = 1.0 if is_paper else count_working_ratio(subject.launch)
    lines = full.lines + extra.block_line_bytes / LINE_BYTES
    fills = 0.0 if is_paper else lines / subject.launch.threads_per_block * WARP_THREADS
    return Counts(
        l1_cycles_per_warp=_count_l1(subject, entries, whole) + extra.cycles_per_warp + fills,
        block_line_bytes=max(least, lines * LINE_BYTES),
        block_request_bytes=max(least, requests * scale + extra.block_request_bytes),
        block_bypassing_bytes=bypassing * scale + extra.block_bypassing_bytes,
        warp_load_bytes=max(least, _count_warp_loads(entries, whole)),
        block_load_bytes=max(least, average * SECTOR_BYTES + extra.block_load_bytes),
        block_store_bytes=max(least, writes * scale + extra.block_store_bytes),
        wave_load_bytes=SECTOR_BYTES * sum(found.current for found in loads) + extra.wave_load_bytes,
        wave_store_bytes=SECTOR_BYTES * sum(found.current for found in stores) + extra.wave_store_bytes,
        before_bytes=_add([found.before for found in (*loads, *stores)]),
        shared_load_bytes=_add([found.shared for found in loads]),
        shared_store_bytes=_add([found.shared for found in stores]),
        wave_threads=count_threads(wave.current, subject.launch.block, subject.region),
        wave_pages=count_wave_pages(entries, subject.launch, wave),
        working_ratio=scale,
        row_span=_find_span(placed, 1),
        layer_span=_find_span(placed, 2),
    )


def count_threads(blocks: BlockBox, block: Triple, region: ThreadRegion) -> int:
    """Threads of some blocks of a size that lie in a region."""
    x, y, z = (low * size for low, size in zip(blocks.low, block, strict=True))
    to_x, to_y, to_z = (high * size for high, size in zip(blocks.high, block, strict=True))
    return ThreadRegion(low=(x, y, z), high=(to_x, to_y, to_z)).meet(region).thread_count


def _simplify(subject: Subject) -> KernelAccesses:
    """The kernel as the published model sees it: all loads kept in L1, and no guard but the number of updates."""
    kernel, whole = ignore_cache_operators(subject.kernel), subject.launch.region
    accesses = tuple(
        replace(access, region=None) if access.region is not None and access.region.meet(whole) == whole else access
        for access in kernel.accesses
    )
    return replace(kernel, accesses=accesses)


def count_working_ratio(launch: LaunchShape) -> float:
    """Threads with work, of all that are launched, 0..1.

    >>> count_working_ratio(LaunchShape(block=(64, 1, 1), grid=(2, 1, 1), updates=(96, 1, 1)))
    0.75
    """
    launched = prod(launch.grid) * launch.threads_per_block
    return launch.region.thread_count / launched if launched else 1.0


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


def _count_loads(subject: Subject, entries: Sequence[ArrayGroups], blocks: Blocks) -> BlockCounts:
    """What a block loads through L1: sectors over all iterations, lines of one iteration.

    Threads of a block run through a loop about together, so what shares L1 at one time is what one iteration touches: an approximation, which
    takes reuse between iterations for granted.
    """
    sectors = lines = 0.0
    for entry in entries:
        groups = entry.select_cached()
        found = count_block(entry, groups, blocks)
        once = found
        if any(group.loops for group in groups):
            once = count_block(entry, [replace(group, loops=()) for group in groups], blocks)
        lines += once.lines
        sectors += found.sectors if found.is_whole else float(_measure_block(subject, entry, blocks))
    return BlockCounts(sectors=sectors, lines=lines, is_whole=True)


def _measure_block(subject: Subject, entry: ArrayGroups, blocks: Blocks) -> int:
    """Sectors that one block loads over loops too long to enumerate: the first block of the wave, cut to as many threads."""
    launch, first = subject.launch, subject.wave.current.low
    x, y, z = (at * size for at, size in zip(first, launch.block, strict=True))
    to_x, to_y, to_z = (low + count for low, count in zip((x, y, z), blocks.threads, strict=True))
    region = ThreadRegion(low=(x, y, z), high=(to_x, to_y, to_z))
    strides = find_array_strides(entry, launch, launch.region)
    place = Place(launch=launch, region=region, base_bytes=entry.array.base_bytes, strides=strides)
    box = BlockBox(low=first, high=(first[0] + 1, first[1] + 1, first[2] + 1))
    return measure_overlaps(entry.select_cached(), place, [box]).current


def _average_loads(subject: Subject, entries: Sequence[ArrayGroups], full_sectors: float) -> float:
    """Sectors that an average block loads; blocks at the grid's ends load for fewer threads."""
    total, count = 0.0, 0
    for threads, blocks in list_block_classes(subject.launch):
        is_full = threads == subject.launch.block
        sectors = full_sectors if is_full else _count_loads(subject, entries, _build_blocks(subject, threads)).sectors
        total, count = total + sectors * blocks, count + blocks
    return total / prod(subject.launch.grid) if count else full_sectors


def _measure(subject: Subject, entry: ArrayGroups, strides: tuple[int, ...], *, loads: bool) -> Overlaps:
    wave, launch = subject.wave, subject.launch
    base = 0 if subject.mode is VolumeMode.PAPER else entry.array.base_bytes
    sets = (wave.current, wave.before_x, wave.before_y, wave.before_z)
    place = Place(launch=launch, region=subject.region, base_bytes=base, strides=strides)
    return measure_overlaps(entry.select(loads=loads), place, sets)


def _find_span(placed: Iterable[tuple[ArrayGroups, tuple[int, ...]]], axis: int) -> int | None:
    """Places along an axis that one thread's loads span, at most over the arrays, which come with the strides of their dimensions."""
    spans = [find_span((*entry.select_cached(), *entry.select_bypassing()), strides, axis) for entry, strides in placed]
    return max((span for span in spans if span is not None), default=None)


def _add(parts: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    x, y, z = (SECTOR_BYTES * sum(part[index] for part in parts) for index in range(_BEFORE))
    return (x, y, z)


def _count_l1(subject: Subject, entries: Sequence[ArrayGroups], blocks: Blocks) -> float:
    """Cycles of a warp for all its accesses.

    The published program puts loads and stores into one mapping by array, so that an array that is both read and written loses its loads.
    """
    if subject.mode is VolumeMode.PAPER:
        return sum(
            count_paper_cycles(entry, group, blocks)
            for entry in entries
            for group in entry.select(loads=False) or entry.groups
        )
    affine = sum(
        count_cycles(entry, group, blocks) * group.trips * group.executions
        for entry in entries
        for group in entry.groups
    )
    return affine + subject.kernel.shared_cycles_per_warp


def _count_requests(blocks: Blocks, chosen: Iterable[tuple[ArrayGroups, tuple[AccessGroup, ...]]]) -> float:
    """Bytes of the distinct sectors of each warp's access, summed over a block's warps and some groups' accesses."""
    sectors = sum(
        count_warp_sectors(entry, group, blocks) * group.trips * group.executions
        for entry, groups in chosen
        for group in groups
    )
    return sectors * SECTOR_BYTES


def _count_warp_loads(entries: Sequence[ArrayGroups], blocks: Blocks) -> float:
    """Bytes of the distinct sectors that the first warp's loads touch together, times the block's warps."""
    shape = find_warp_shape(blocks.block, WARP_THREADS)
    warp = Blocks(block=shape, count=(1, 1, 1), threads=shape)
    warps = prod(size // part or 1 for size, part in zip(blocks.block, shape, strict=True))
    sectors = sum(count_block(entry, entry.select_cached(), warp).sectors for entry in entries)
    return sectors * warps * SECTOR_BYTES
