"""Volumes of accesses that follow no affine function, from what was counted over the traced blocks: :func:`count_sampled`."""

from collections.abc import Iterator
from math import prod

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.trace import AccessKind
from gpa_lsp.volumes.block_volumes import LINE_BYTES, WARP_THREADS
from gpa_lsp.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.volumes.expressions import KernelAccesses, LaunchShape, SampledAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCounts:
    """To be added to the counts of affine accesses; see :class:`~gpa_lsp.volumes.model.Counts`."""

    cycles_per_warp: float
    block_line_bytes: float
    block_request_bytes: float
    block_bypassing_bytes: float
    block_load_bytes: float
    block_atomic_bytes: float
    block_store_bytes: float
    wave_load_bytes: float
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
    return SampledCounts(
        cycles_per_warp=sum(access.requests_per_warp * access.cycles_per_request for access in kernel.sampled),
        block_line_bytes=sum(access.block_lines for access in cached) * LINE_BYTES,
        block_request_bytes=sum(_count_requests(access, warps) for access in plain),
        block_bypassing_bytes=sum(_count_requests(access, warps) for access in plain if access.bypasses_l1),
        block_load_bytes=sum(access.block_sectors for access in cached) * SECTOR_BYTES,
        block_atomic_bytes=sum(
            _count_requests(access, warps) for access in loads if access.kind is not AccessKind.LOAD
        ),
        block_store_bytes=sum(_count_requests(access, warps) for access in stores),
        wave_load_bytes=sum(_estimate_wave(access, kernel, launch, wave_blocks, l2_bytes) for access in loads),
        wave_store_bytes=sum(_estimate_wave(access, kernel, launch, wave_blocks, l2_bytes) for access in stores),
    )


def _select(kernel: KernelAccesses, *, loads: bool) -> Iterator[SampledAccess]:
    for access in kernel.sampled:
        if access.kind is not (AccessKind.STORE if loads else AccessKind.LOAD):
            yield access


def _count_requests(access: SampledAccess, warps: int) -> float:
    return access.requests_per_warp * access.sectors_per_request * warps * SECTOR_BYTES


def _estimate_wave(
    access: SampledAccess, kernel: KernelAccesses, launch: LaunchShape, wave_blocks: float, l2_bytes: int
) -> float:
    """Bytes of DRAM one wave moves for an access."""
    own = access.block_sectors * SECTOR_BYTES * access.distinct_ratio
    blocks = prod(launch.grid)
    running = min(wave_blocks, float(blocks))
    size = None if access.array is None else kernel.arrays[access.array].size_bytes
    if size is None:
        return own * running
    if size <= l2_bytes:
        return min(float(size), own * blocks) * running / blocks
    return min(float(size), own * running)
