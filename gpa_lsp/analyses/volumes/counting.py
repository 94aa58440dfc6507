"""Expressions and a launch → :class:`~gpa_lsp.analyses.volumes.model.Counts`."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from gpa_lsp.analyses.volumes.block_volumes import (
    LINE_BYTES,
    WARP_THREADS,
    count_block,
    count_warp_sectors,
    find_warp_shape,
)
from gpa_lsp.analyses.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.analyses.volumes.expressions import KernelAccesses, LaunchShape, ThreadRegion, Triple
from gpa_lsp.analyses.volumes.footprints import Overlaps, build_intervals, find_array_strides, measure_overlaps
from gpa_lsp.analyses.volumes.groups import AccessGroup, ArrayGroups, group_accesses
from gpa_lsp.analyses.volumes.l1_cycles import count_cycles, count_paper_cycles
from gpa_lsp.analyses.volumes.model import Counts, VolumeMode
from gpa_lsp.analyses.volumes.waves import BlockBox, Wave

PAGE_BYTES = 2 << 20
_BEFORE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is counted.

    Attributes:
        kernel: its accesses.
        launch: how threads are laid out.
        wave: blocks that run at once.
        mode: the model.
    """

    kernel: KernelAccesses
    launch: LaunchShape
    wave: Wave
    mode: VolumeMode


def count_all(subject: Subject) -> Counts:
    """Everything the model needs to be counted."""
    launch, wave = subject.launch, subject.wave
    entries = group_accesses(subject.kernel)
    blocks = wave.representative
    sectors = lines = 0.0
    for entry in entries:
        counted = count_block(entry, entry.select(loads=True), launch, blocks)
        sectors, lines = sectors + counted.sectors, lines + counted.lines
    loads = [_measure(subject, entry, loads=True) for entry in entries]
    stores = [_measure(subject, entry, loads=False) for entry in entries]
    return Counts(
        l1_cycles_per_warp=_count_l1(subject, entries),
        block_line_bytes=max(1.0, lines * LINE_BYTES),
        block_request_bytes=max(1.0, _count_requests(entries, launch, blocks, loads=True)),
        warp_load_bytes=max(1.0, _count_warp_loads(entries, launch)),
        block_load_bytes=max(1.0, sectors * SECTOR_BYTES),
        block_store_bytes=max(1.0, _count_requests(entries, launch, blocks, loads=False)),
        wave_load_bytes=SECTOR_BYTES * sum(found.current for found in loads),
        wave_store_bytes=SECTOR_BYTES * sum(found.current for found in stores),
        before_bytes=_add([found.before for found in (*loads, *stores)]),
        shared_load_bytes=_add([found.shared for found in loads]),
        shared_store_bytes=_add([found.shared for found in stores]),
        wave_threads=count_threads(wave.current, launch, launch.region),
        wave_pages=_count_pages(subject, entries),
    )


def count_threads(blocks: BlockBox, launch: LaunchShape, region: ThreadRegion) -> int:
    """Threads of some blocks that are in a region."""
    x, y, z = (low * size for low, size in zip(blocks.low, launch.block, strict=True))
    to_x, to_y, to_z = (high * size for high, size in zip(blocks.high, launch.block, strict=True))
    return ThreadRegion(low=(x, y, z), high=(to_x, to_y, to_z)).meet(region).thread_count


def _measure(subject: Subject, entry: ArrayGroups, *, loads: bool) -> Overlaps:
    wave, launch = subject.wave, subject.launch
    strides = find_array_strides(entry, launch, launch.region)
    base = 0 if subject.mode is VolumeMode.PAPER else entry.array.base_bytes
    sets = (wave.current, wave.before_x, wave.before_y, wave.before_z)
    return measure_overlaps(entry.select(loads=loads), strides, base, launch, launch.region, sets)


def _add(parts: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    x, y, z = (SECTOR_BYTES * sum(part[index] for part in parts) for index in range(_BEFORE))
    return (x, y, z)


def _count_l1(subject: Subject, entries: Sequence[ArrayGroups]) -> float:
    """Cycles of a warp for all its accesses.

    The published program puts loads and stores into one mapping by array, so that an array that is both read and written loses its loads.
    """
    launch, blocks = subject.launch, subject.wave.representative
    if subject.mode is VolumeMode.PAPER:
        return sum(
            count_paper_cycles(entry, group, launch, blocks)
            for entry in entries
            for group in entry.select(loads=False) or entry.groups
        )
    affine = sum(
        count_cycles(entry, group, launch, blocks) * group.trips * group.executions
        for entry in entries
        for group in entry.groups
    )
    return affine + subject.kernel.shared_cycles_per_warp


def _count_requests(entries: Sequence[ArrayGroups], launch: LaunchShape, blocks: Triple, *, loads: bool) -> float:
    """Bytes of the distinct sectors of each warp's access, summed over a block's warps and accesses."""
    sectors = sum(
        count_warp_sectors(entry, group, launch, blocks) * group.trips * group.executions
        for entry in entries
        for group in entry.select(loads=loads)
    )
    return sectors * SECTOR_BYTES


def _count_warp_loads(entries: Sequence[ArrayGroups], launch: LaunchShape) -> float:
    """Bytes of the distinct sectors that the first warp's loads touch together, times the block's warps."""
    shape = find_warp_shape(launch.block, WARP_THREADS)
    warp = LaunchShape(block=shape, grid=(1, 1, 1), updates=shape)
    warps = prod(size // part or 1 for size, part in zip(launch.block, shape, strict=True))
    sectors = sum(count_block(entry, entry.select(loads=True), warp, (1, 1, 1)).sectors for entry in entries)
    return sectors * warps * SECTOR_BYTES


def _count_pages(subject: Subject, entries: Sequence[ArrayGroups]) -> int:
    """Distinct pages that a box of as many blocks as a wave has, at the grid's start, touches; a measure of the TLB's load, used in no fit."""
    launch, start = subject.launch, subject.wave.start
    everywhere = ThreadRegion(low=(0, 0, 0), high=_extend(launch, start))
    pages = 0
    for entry in entries:
        groups: Sequence[AccessGroup] = entry.groups
        intervals = build_intervals(groups, entry.array.base_bytes, launch, everywhere, BlockBox(low=(0, 0, 0), high=start))
        pages += _count_page_union(intervals[:, 0] * SECTOR_BYTES)
    return pages


def _count_page_union(spans: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> int:
    if not len(spans):
        return 0
    first, last = spans[:, 0] // PAGE_BYTES, (spans[:, 1] - 1) // PAGE_BYTES
    low = int(first.min())
    length = int(last.max()) - low + 2
    opened = np.bincount(first - low, minlength=length)
    closed = np.bincount(last - low + 1, minlength=length)
    return int(np.count_nonzero(np.cumsum(opened - closed)))


def _extend(launch: LaunchShape, blocks: Triple) -> Triple:
    x, y, z = (count * size for count, size in zip(blocks, launch.block, strict=True))
    return (x, y, z)
