"""Volumes of accesses that follow no affine function, from what was counted over the traced blocks: :func:`count_sampled`."""

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from msgspec import Struct

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.volumes.block_volumes import LINE_BYTES, WARP_THREADS
from gpa_lsp.execution.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    FirstTouched,
    KernelAccesses,
    LaunchShape,
    SampledAccess,
)
from gpa_lsp.execution.volumes.model import Rewrites


class SampledCounts(Struct, frozen=True, kw_only=True):
    """To be added to the counts of affine accesses; see :class:`~gpa_lsp.execution.volumes.model.Counts`."""

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


def count_sampled(kernel: KernelAccesses, launch: LaunchShape, l2_bytes: int, wave_blocks: float) -> SampledCounts:
    """What the traced blocks did stands for every block; ``wave_blocks`` average ones have the threads of the wave.

    Approximation: blocks of a wave share as much as the traced ones did. An array that fits into L2 is read from DRAM once per launch, and that
    is shared out among the waves; of a larger one, every wave reads its part again.
    """
    warps = -(-launch.threads_per_block // WARP_THREADS)
    loads = list(_select(kernel, loads=True))
    plain = [access for access in loads if access.kind is AccessKind.LOAD]
    cached = [access for access in plain if not access.bypasses_l1]
    stores = list(_select(kernel, loads=False))
    wave = _Wave(blocks=wave_blocks, l2_bytes=l2_bytes)
    first = [(one.array, _find_read(one)) for one in loads]
    loaded = _estimate_wave([(array, one.wave_sectors * SECTOR_BYTES) for array, one in first], kernel, launch, wave)
    fetched = _estimate_wave([(array, one.wave_pairs * 2 * SECTOR_BYTES) for array, one in first], kernel, launch, wave)
    return SampledCounts(
        cycles_per_warp=sum(access.requests_per_warp * access.cycles_per_request for access in kernel.sampled),
        block_line_bytes=sum(_find_read(access).block_lines for access in cached) * LINE_BYTES,
        block_request_bytes=sum(_count_requests(access, warps) for access in plain),
        block_bypassing_bytes=sum(_count_requests(access, warps) for access in plain if access.bypasses_l1),
        block_load_bytes=sum(_find_read(access).block_sectors for access in cached) * SECTOR_BYTES,
        block_atomic_bytes=sum(
            _count_requests(access, warps) for access in loads if access.kind is not AccessKind.LOAD
        ),
        block_store_bytes=sum(_count_requests(access, warps) for access in stores),
        block_written_bytes=sum(_find_written(access).block_sectors for access in stores) * SECTOR_BYTES,
        rewrites=tuple(_list_rewrites(stores, warps)),
        wave_load_bytes=loaded,
        wave_fetched_bytes=max(0.0, fetched - loaded),
        wave_store_bytes=_estimate_wave(
            [(one.array, _find_written(one).wave_sectors * SECTOR_BYTES) for one in stores], kernel, launch, wave
        ),
    )


def _select(kernel: KernelAccesses, *, loads: bool) -> Iterator[SampledAccess]:
    for access in kernel.sampled:
        if access.kind is not (AccessKind.STORE if loads else AccessKind.LOAD):
            yield access


def _find_read(access: SampledAccess) -> FirstTouched:
    return access.read or _find_all(access)


def _find_written(access: SampledAccess) -> FirstTouched:
    return access.written or _find_all(access)


def _find_all(access: SampledAccess) -> FirstTouched:
    """Of an access by itself."""
    return FirstTouched(
        block_sectors=access.block_sectors,
        block_lines=access.block_lines,
        wave_sectors=access.block_sectors * access.distinct_ratio,
        wave_pairs=access.block_sectors * access.distinct_ratio / 2,
    )


def _count_requests(access: SampledAccess, warps: int) -> float:
    return access.requests_per_warp * access.sectors_per_request * warps * SECTOR_BYTES


def _list_rewrites(stores: Iterable[SampledAccess], warps: int) -> Iterator[Rewrites]:
    """Of stores that come back to the sectors of their block; when is not known: as far apart as they can be."""
    for access in stores:
        stored, written = _count_requests(access, warps), access.block_sectors * SECTOR_BYTES
        if stored > written > 0:
            yield Rewrites(block_bytes=stored - written, traffic_ratio=written / stored)


def _round_to_sectors(array: AccessedArray) -> int | None:
    """Bytes of the sectors an array lies in: none is moved in part. None where its size is unknown."""
    if array.size_bytes is None:
        return None
    return (-(-(array.base_bytes % SECTOR_BYTES + array.size_bytes) // SECTOR_BYTES)) * SECTOR_BYTES


class _Wave(Struct, frozen=True, kw_only=True):
    """Blocks that run at once, and the L2 they share."""

    blocks: float
    l2_bytes: int


def _estimate_wave(
    touched: Sequence[tuple[int | None, float]], kernel: KernelAccesses, launch: LaunchShape, wave: _Wave
) -> float:
    """Bytes of DRAM one wave moves for some accesses, by array and bytes of a block, of each array no more than it has."""
    of_arrays: dict[int | None, float] = {}
    for array, of_block in touched:
        of_arrays[array] = of_arrays.get(array, 0.0) + of_block
    blocks = prod(launch.grid)
    running = min(wave.blocks, float(blocks))
    total = 0.0
    for array, own in of_arrays.items():
        size = None if array is None else _round_to_sectors(kernel.arrays[array])
        if size is None:
            total += own * running
        elif size <= wave.l2_bytes:
            total += min(float(size), own * blocks) * running / blocks
        else:
            total += min(float(size), own * running)
    return total
