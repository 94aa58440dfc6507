"""Counts → volumes per update, reuse of rows and layers, and what each limiter allows."""

from math import prod

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.volumes.block_volumes import WARP_THREADS
from gpa_lsp.volumes.devices import VolumeDevice
from gpa_lsp.volumes.expressions import KernelAccesses, LaunchShape
from gpa_lsp.volumes.fits import Fit, Fits
from gpa_lsp.volumes.model import Bound, Counts, LayerReuse, Limiter, Volumes
from gpa_lsp.volumes.program_order import find_window_ratio
from gpa_lsp.volumes.retention import Flow, Retention, find_evicted_ratio, find_retention

_LEAST_OVERSUBSCRIPTION, _MOST_OVERSUBSCRIPTION = 0.01, 10.0
_NOTHING_BEFORE = 0.1
"""The oversubscription the published model takes where no blocks ran before; there is nothing to hit then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What runs where.

    Attributes:
        launch: how threads are laid out.
        device: on which.
        blocks_per_sm: resident at once.
    """

    launch: LaunchShape
    device: VolumeDevice
    blocks_per_sm: int

    @property
    def updates(self) -> int:
        """Of the whole launch, those beyond its end along folded axes included."""
        return self.launch.region.thread_count * self.launch.updates_per_thread


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


def derive_volumes(counts: Counts, setting: Setting, fits: Fits) -> Derived:
    """Volumes by level and cause; which model it is lies in the counts and the fits.

    Source: Ernst et al. (2022), sections 4.3 to 4.5; what they call V3 of the loads from DRAM, without further capacity misses of L2. What L2 holds
    between blocks is in the corrected model :mod:`~gpa_lsp.volumes.retention`'s.
    """
    launch, device = setting.launch, setting.device
    per_block = launch.threads_per_block * counts.working_ratio * launch.updates_per_thread
    per_wave = max(1, counts.wave_threads) * launch.updates_per_thread
    sharing = setting.blocks_per_sm if fits.counts_all_blocks else 1
    l1_over = counts.block_line_bytes * sharing / device.l1_bytes
    l1_load = counts.block_request_bytes / per_block
    bypassing = counts.block_bypassing_bytes / per_block
    compulsory = counts.block_load_bytes / per_block
    capacity = max(0.0, l1_load - bypassing - compulsory) * fits.l1_miss.at(l1_over)
    from_l2 = compulsory + capacity + bypassing
    l2_over = (counts.wave_load_bytes + counts.wave_store_bytes) / device.l2_bytes
    l2_store = counts.block_store_bytes / per_block
    stored = max(counts.wave_store_bytes / per_wave, counts.launch_store_bytes / setting.updates)
    evicted = max(0.0, counts.block_written_bytes / per_block - stored) * fits.store_evicted.at(l2_over)
    footprint, reuse = _derive_dram_loads(counts, setting, fits, stored)
    volumes = Volumes(
        l1_load=l1_load,
        l2_load_compulsory=compulsory,
        l2_load_capacity=capacity,
        l2_load_bypassing=bypassing,
        l2_store=l2_store,
        dram_load_footprint=footprint,
        dram_load_reused=sum(one.hit for one in reuse),
        dram_load_fetched=counts.fetched_bytes,
        dram_load_partial=evicted,
        dram_store_compulsory=stored,
        dram_store_partial=evicted,
        dram_store_again=_derive_rewrites(counts, setting, (from_l2 + l2_store) * per_wave) / per_block,
    )
    warm = volumes.dram_load_footprint - volumes.dram_load_reused
    return Derived(
        volumes=volumes,
        reuse=reuse,
        l1_oversubscription=l1_over,
        l2_oversubscription=l2_over,
        l2_capacity_estimate=(volumes.l2_load - warm) * fits.l2_miss.at(l2_over),
    )


def _derive_rewrites(counts: Counts, setting: Setting, wave_traffic_bytes: float) -> float:
    """Bytes of a block that go to DRAM once more, since too much passed through L2 until the same threads wrote them again.

    A kernel that keeps a sum in memory writes it in each iteration, and hardly anything passes in between. What a block writes in parts is put
    together in L2, too: an A100, a T4 and an RTX 3080 stored sectors once whose parts several warps, or several stores of a thread, wrote.
    Not predicted: a T4 (four reports) reads once what is written in part at first; the other two, a V100 and an RTX 4090 do not.
    """
    device = setting.device
    touched = counts.wave_load_bytes + counts.wave_store_bytes
    return sum(
        one.block_bytes
        * find_evicted_ratio(min(touched, wave_traffic_bytes * one.traffic_ratio), device.l2_bytes, device.l2_ways)
        for one in counts.rewrites
    )


def _derive_dram_loads(
    counts: Counts, setting: Setting, fits: Fits, stored: float
) -> tuple[float, tuple[LayerReuse, LayerReuse]]:
    """Bytes per update that are loaded without reuse between blocks, and what of it rows and layers save."""
    if fits.row_hit is not None and fits.layer_hit is not None:
        per_wave = max(1, counts.wave_threads) * setting.launch.updates_per_thread
        rows = _apply_fit("y", counts, setting, fits.row_hit)
        return counts.wave_load_bytes / per_wave, (rows, _apply_fit("z", counts, setting, fits.layer_hit))
    blocks = prod(setting.launch.grid)
    flow = Flow(
        shared=counts.shared_loads,
        once_bytes=counts.once_load_bytes,
        stored_bytes=stored,
        running=setting.blocks_per_sm * setting.device.sm_count,
        blocks=blocks,
        updates_per_block=setting.updates / blocks,
        iterations=counts.load_iterations,
        window_ratio=find_window_ratio(counts.loads_per_thread),
    )
    retention = find_retention(flow, setting.device.l2_bytes, setting.device.l2_ways)
    footprint = counts.once_load_bytes + sum(one.again_bytes for one in counts.shared_loads)
    rows = _sum_reuse("y", counts, setting, retention)
    return footprint, (rows, _sum_reuse("z", counts, setting, retention))


def _sum_reuse(axis: str, counts: Counts, setting: Setting, retention: Retention) -> LayerReuse:
    """Reuse from layers before, or from rows before and blocks of the same row."""
    found = [
        (shared, missed, needed)
        for shared, missed, needed in zip(counts.shared_loads, retention.missed, retention.needed_bytes, strict=True)
        if (shared.axis == "z") is (axis == "z")
    ]
    overlap = sum(shared.again_bytes for shared, _, _ in found)
    hit = sum(shared.again_bytes * (1 - missed) for shared, missed, _ in found)
    needed = max((needed for _, _, needed in found), default=0.0)
    ratio = hit / overlap if overlap > 0 else 1.0
    return _build_reuse(axis, counts, setting, LayerHit(overlap=overlap, needed_bytes=needed, ratio=ratio))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerHit:
    """Of one axis: what was loaded before, what keeping it takes, and the part that is kept."""

    overlap: float
    needed_bytes: float
    ratio: float


def _apply_fit(axis: str, counts: Counts, setting: Setting, fit: Fit) -> LayerReuse:
    """Reuse from rows (blocks of the same row counted with them, each set by itself) or from the layer before."""
    per_wave = max(1, counts.wave_threads) * setting.launch.updates_per_thread
    if axis == "y":
        overlap = (counts.shared_load_bytes[0] + counts.shared_load_bytes[1]) / per_wave
        needed = counts.before_bytes[0] + counts.before_bytes[1]
    else:
        overlap, needed = counts.shared_load_bytes[2] / per_wave, counts.before_bytes[2]
    over = needed / setting.device.l2_bytes
    bounded = min(_MOST_OVERSUBSCRIPTION, max(_LEAST_OVERSUBSCRIPTION, over)) if needed else _NOTHING_BEFORE
    return _build_reuse(axis, counts, setting, LayerHit(overlap=overlap, needed_bytes=needed, ratio=fit.at(bounded)))


def _build_reuse(axis: str, counts: Counts, setting: Setting, found: LayerHit) -> LayerReuse:
    width, height = setting.launch.updates[0], setting.launch.updates[1]
    span, extent = (counts.row_span, width) if axis == "y" else (counts.layer_span, width * height)
    over = found.needed_bytes / setting.device.l2_bytes
    return LayerReuse(
        axis=axis,
        overlap=found.overlap,
        hit=found.overlap * found.ratio,
        needed_bytes=found.needed_bytes,
        oversubscription=over,
        hit_ratio=found.ratio,
        layers_needed=span,
        transition_updates=None if span is None or over <= 0 else (extent / over) ** (1.0 if axis == "y" else 0.5),
    )


def derive_bounds(
    kernel: KernelAccesses, counts: Counts, volumes: Volumes, launch: LaunchShape, device: VolumeDevice
) -> tuple[Bound, ...]:
    """What each limiter alone would allow, the lowest first.

    Source: Ernst et al. (2022), section 2: four limiters, of which the lowest holds. A fifth is how fast blocks can be started: with 32 to 128
    threads in each, a V100 was measured to start as many in a second, whatever their number of threads.
    """
    folded = launch.updates_per_thread
    flops = (kernel.flops_per_thread or 0.0) / folded
    peak = device.fp64_flops_per_s if kernel.flops_are_double else device.fp32_flops_per_s
    cycles = counts.l1_cycles_per_warp / folded / WARP_THREADS / counts.working_ratio
    blocks = 1 / (launch.threads_per_block * counts.working_ratio * folded)
    found = (
        (Limiter.FLOPS, flops, peak or 0.0),
        (Limiter.BLOCKS, blocks, device.block_starts_per_s or 0.0),
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

    Times of the units that data and numbers go through, one after the other, add as ``(Σ tᵢᵖ)^(1/p)``: with p infinite the slowest hides the
    others wholly, which is the published model. What starts blocks works ahead of all of them, so that it either hides them or is hidden: on a
    V100, shapes that are limited by it take its time within 1 %, whether L1 is busy for a third of that time or for two thirds.
    """
    if not bounds:
        return 0.0
    slowest = bounds[0].updates_per_s
    power = fits.overlap_exponent
    if power is None:
        return slowest
    total: float = sum((slowest / one.updates_per_s) ** power for one in bounds if one.limiter is not Limiter.BLOCKS)
    return float(slowest / max(1.0, total ** (1 / power)))
