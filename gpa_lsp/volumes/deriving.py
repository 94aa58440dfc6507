"""Counts → volumes per update, reuse of rows and layers, and what each limiter allows: the published model."""

from dataclasses import replace

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.volumes.block_volumes import WARP_THREADS
from gpa_lsp.volumes.devices import VolumeDevice
from gpa_lsp.volumes.expressions import KernelAccesses, LaunchShape
from gpa_lsp.volumes.fits import Fits
from gpa_lsp.volumes.model import Bound, Counts, LayerReuse, Limiter, Volumes

_LEAST_OVERSUBSCRIPTION, _MOST_OVERSUBSCRIPTION = 0.01, 10.0
_NOTHING_BEFORE = 0.1
"""The oversubscription the published model takes where no blocks ran before; there is nothing to hit then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What follows from counts.

    Attributes:
        volumes: by level and cause.
        reuse: of rows and of layers.
        l1_oversubscription: see :class:`~gpa_lsp.volumes.model.VolumePrediction`.
        l2_oversubscription: see there.
        l2_capacity_estimate: see there.
    """

    volumes: Volumes
    reuse: tuple[LayerReuse, LayerReuse]
    l1_oversubscription: float
    l2_oversubscription: float
    l2_capacity_estimate: float


def derive_volumes(
    counts: Counts, launch: LaunchShape, device: VolumeDevice, blocks_per_sm: int, fits: Fits
) -> Derived:
    """Volumes by level and cause; which model it is lies in the counts and the fits.

    Source: Ernst et al. (2022), sections 4.3 to 4.5; what they call V3 of the loads from DRAM, without further capacity misses of L2.
    """
    per_block = launch.threads_per_block * counts.working_ratio * launch.updates_per_thread
    per_wave = max(1, counts.wave_threads) * launch.updates_per_thread
    updates = launch.region.thread_count * launch.updates_per_thread
    sharing = blocks_per_sm if fits.counts_all_blocks else 1
    l1_over = counts.block_line_bytes * sharing / device.l1_bytes
    l1_load = counts.block_request_bytes / per_block
    bypassing = counts.block_bypassing_bytes / per_block
    compulsory = counts.block_load_bytes / per_block
    capacity = max(0.0, l1_load - bypassing - compulsory) * fits.l1_miss.at(l1_over)
    rows = _derive_reuse("y", counts, launch, device, fits)
    layers = _derive_reuse("z", counts, launch, device, fits)
    footprint = max(counts.wave_load_bytes / per_wave, counts.launch_load_bytes / updates)
    rows, layers = _bound_reuse((rows, layers), footprint - counts.launch_load_bytes / updates)
    l2_over = (counts.wave_load_bytes + counts.wave_store_bytes) / device.l2_bytes
    l2_store = counts.block_store_bytes / per_block
    stored = max(counts.wave_store_bytes / per_wave, counts.launch_store_bytes / updates)
    evicted = max(0.0, l2_store - stored) * fits.store_evicted.at(l2_over)
    volumes = Volumes(
        l1_load=l1_load,
        l2_load_compulsory=compulsory,
        l2_load_capacity=capacity,
        l2_load_bypassing=bypassing,
        l2_store=l2_store,
        dram_load_footprint=footprint,
        dram_load_reused=rows.hit + layers.hit,
        dram_load_partial=evicted,
        dram_store_compulsory=stored,
        dram_store_partial=evicted,
    )
    warm = volumes.dram_load_footprint - volumes.dram_load_reused
    return Derived(
        volumes=volumes,
        reuse=(rows, layers),
        l1_oversubscription=l1_over,
        l2_oversubscription=l2_over,
        l2_capacity_estimate=(volumes.l2_load - warm) * fits.l2_miss.at(l2_over),
    )


def _bound_reuse(found: tuple[LayerReuse, LayerReuse], most: float) -> tuple[LayerReuse, LayerReuse]:
    """Hits of both so that what every launch must load once is still loaded."""
    hits = sum(one.hit for one in found)
    if hits <= most or hits <= 0:
        return found
    first, second = (replace(one, hit=one.hit * max(0.0, most) / hits) for one in found)
    return first, second


def _derive_reuse(axis: str, counts: Counts, launch: LaunchShape, device: VolumeDevice, fits: Fits) -> LayerReuse:
    """Reuse from rows (blocks of the same row counted with them, each set by itself) or from the layer before."""
    per_wave = max(1, counts.wave_threads) * launch.updates_per_thread
    width, height = launch.updates[0], launch.updates[1]
    if axis == "y":
        overlap = (counts.shared_load_bytes[0] + counts.shared_load_bytes[1]) / per_wave
        needed = counts.before_bytes[0] + counts.before_bytes[1]
        fit, span, extent = fits.row_hit, counts.row_span, float(width)
    else:
        overlap, needed = counts.shared_load_bytes[2] / per_wave, counts.before_bytes[2]
        fit, span, extent = fits.layer_hit, counts.layer_span, float(width * height)
    over = needed / device.l2_bytes
    bounded = min(_MOST_OVERSUBSCRIPTION, max(_LEAST_OVERSUBSCRIPTION, over)) if needed else _NOTHING_BEFORE
    ratio = fit.at(bounded)
    return LayerReuse(
        axis=axis,
        overlap=overlap,
        hit=overlap * ratio,
        needed_bytes=needed,
        oversubscription=over,
        hit_ratio=ratio,
        layers_needed=span,
        transition_updates=None if span is None or over <= 0 else (extent / over) ** (1.0 if axis == "y" else 0.5),
    )


def derive_bounds(
    kernel: KernelAccesses, counts: Counts, volumes: Volumes, launch: LaunchShape, device: VolumeDevice
) -> tuple[Bound, ...]:
    """What each limiter alone would allow, the lowest first.

    Source: Ernst et al. (2022), section 2: four limiters, of which the lowest holds.
    """
    folded = launch.updates_per_thread
    flops = (kernel.flops_per_thread or 0.0) / folded
    peak = device.fp64_flops_per_s if kernel.flops_are_double else device.fp32_flops_per_s
    cycles = counts.l1_cycles_per_warp / folded / WARP_THREADS / counts.working_ratio
    found = (
        (Limiter.FLOPS, flops, peak or 0.0),
        (Limiter.L1, cycles, device.sm_count * device.sm_hz),
        (Limiter.L2, volumes.l2_load + volumes.l2_store, device.l2_bytes_per_s),
        (Limiter.DRAM, volumes.dram_load + volumes.dram_store, device.dram_bytes_per_s),
    )
    bounds = [
        Bound(limiter=limiter, updates_per_s=capacity / load, load=load, capacity_per_s=capacity)
        for limiter, load, capacity in found
        if load > 0 and capacity > 0
    ]
    return tuple(sorted(bounds, key=lambda bound: bound.updates_per_s))


def combine_bounds(bounds: tuple[Bound, ...], fits: Fits) -> float:
    """Updates per second under all limiters together; 0 without any.

    Times add as ``(Σ tᵢᵖ)^(1/p)``: with p infinite the slowest hides the others wholly, which is the published model.
    """
    if not bounds:
        return 0.0
    slowest = bounds[0].updates_per_s
    if fits.overlap_exponent is None:
        return slowest
    power = fits.overlap_exponent
    total: float = sum((slowest / bound.updates_per_s) ** power for bound in bounds)
    return float(slowest / total ** (1 / power))
