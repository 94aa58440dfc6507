"""Expressions, a launch and a GPU → :class:`~gpa_lsp.execution.volumes.model.VolumePrediction`: :func:`predict_volumes`."""

from collections.abc import Iterator
from math import exp, prod

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.execution.volumes.counting import Subject, count_all
from gpa_lsp.execution.volumes.devices import SM_BYTES_PER_CYCLE, VolumeDevice
from gpa_lsp.execution.volumes.expressions import (
    IssuedWork,
    KernelAccesses,
    LaunchShape,
    build_paper_wave,
    build_wave,
    count_paper_blocks_per_sm,
)
from gpa_lsp.execution.volumes.model import (
    ISSUE_LIMITERS,
    Bound,
    Counts,
    LayerReuse,
    Limiter,
    VolumeMode,
    VolumePrediction,
    Volumes,
    find_contradictions,
)
from gpa_lsp.execution.volumes.retention import Flow, Retention, find_retention, find_window_ratio
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes, format_count
from gpa_lsp.foundation.prose import Sentence, count, say
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy

# Capacity misses: fitted functions of how much more than a cache holds is asked of it.
#
# All are double exponentials ``scale · exp(-height · exp(rate · oversubscription))``, which are near 0 on one side, near ``scale`` on the other and
# smooth between. They say nothing about why.
#
# Sources: Ernst et al. (2022), section 4.5, for the form. The published constants are those of the authors' program of May 2022.

_MOST_EXPONENT = 50.0  # exp(-exp(50)) is 0 long before; keeps huge oversubscriptions from overflowing


class Fit(Struct, frozen=True):
    """``scale · exp(-height · exp(rate · (x - shift)))``, or what that leaves of 1."""

    scale: float  # of the whole
    height: float  # of the inner function
    rate: float  # negative where the ratio grows with the oversubscription
    shift: float = 0.0  # of the oversubscription
    is_rest: bool = False  # the ratio is 1 less that

    def at(self, oversubscription: float) -> float:
        """The ratio.

        >>> round(Fit(0.73, 4.6, -0.34).at(5.25), 4)
        0.3374
        """
        inner = self.height * exp(min(_MOST_EXPONENT, self.rate * (oversubscription - self.shift)))
        ratio = self.scale * exp(-inner)
        return 1 - ratio if self.is_rest else ratio


class Fits(Struct, frozen=True, kw_only=True):
    """All fits of a model."""

    l1_miss: Fit  # of what blocks load again, the part that misses L1; over lines in L1 by size of L1
    # of what blocks of earlier rows touched, the part that L2 still holds; over what they touched by size of L2. None where
    # :mod:`~gpa_lsp.execution.volumes.retention` says what L2 holds.
    row_hit: Fit | None
    layer_hit: Fit | None  # the same of the layer before; None in the same case
    # of stores to sectors written in part, those that L2 cannot merge; over what a wave touches by size of L2
    store_evicted: Fit
    l2_miss: Fit  # of what SMs load again within a wave, the part that misses L2; over the same
    # how well limiters hide each other, see :func:`~gpa_lsp.execution.volumes.predict.combine_bounds`; None for wholly
    overlap_exponent: float | None
    counts_all_blocks: bool  # lines of all resident blocks share L1; otherwise those of one block do, since blocks of an SM are in different phases


# The published model's fits
PAPER_FITS = Fits(
    l1_miss=Fit(0.73, 4.6, -0.34),
    row_hit=Fit(1.0, 0.078, 1.03, 0.2),
    layer_hit=Fit(1.0, 0.0036, 3.97),
    store_evicted=Fit(1.0, 0.044, 0.61, is_rest=True),
    l2_miss=Fit(0.5, 13.0, -1.8),
    overlap_exponent=None,
    counts_all_blocks=True,
)

# The corrected model's fits:
#
# * ``l1_miss``: re-fitted to 140 measured points of a V100 (3D stars of ranges 4 and 2, folded and not; 2D boxes of
#   ranges 0 to 9).
# * ``l2_miss``: as published.
# * ``store_evicted``: the height 0.4 is the mean of the five measured shapes of a V100 whose blocks are two elements
#   wide; the rise lies where the published fit to an A100 (5 % at 0.26) and these (37 to 42 % at 0.6 to 0.85) leave
#   it. It acts only where sectors are written in part.
# * ``overlap_exponent``: fitted to the performance of the 40 shapes of the 3D star of range 4 on a V100, and rounded:
#   mean error 9.3 %. The same value serves 32 shapes of a 2D box whose data stays in L1 (9.6 %, 19 to 40 % before
#   tags and starting blocks took time of their own), which say little of it themselves: 7.8 to 9.9 % for all from 1.5
#   to 4. Of other forms with one number, the slowest with 0.175 of all others added is 10.6 and 7.7 %, and takes what
#   starts blocks for a unit like the others; a closed network of three customers is 9.3 and 9.8 %. Of what cannot be
#   told with it: shapes that touch 152 pages (see ``_MANY_PAGES``).
CORRECTED_FITS = Fits(
    l1_miss=Fit(0.342, 6.925, -1.724),
    row_hit=None,
    layer_hit=None,
    store_evicted=Fit(0.4, 20.6, -8.8),
    l2_miss=PAPER_FITS.l2_miss,
    overlap_exponent=2.25,
    counts_all_blocks=False,
)


_LEAST_OVERSUBSCRIPTION, _MOST_OVERSUBSCRIPTION = 0.01, 10.0
# The oversubscription the published model takes where no blocks ran before; there is nothing to hit then
_NOTHING_BEFORE = 0.1


class Setting(Struct, frozen=True, kw_only=True):
    """A launch on a GPU."""

    launch: LaunchShape  # how threads are laid out
    device: VolumeDevice  # on which
    blocks_per_sm: int  # resident at once

    @property
    def updates(self) -> int:
        """Updates of the whole launch, those beyond its end along folded axes included."""
        return self.launch.region.thread_count * self.launch.updates_per_thread


class Derived(Struct, frozen=True, kw_only=True):
    """Volumes and reuse that follow from counts."""

    volumes: Volumes  # by level and cause
    reuse: tuple[LayerReuse, LayerReuse]  # of rows and of layers
    l1_oversubscription: float  # see :class:`~gpa_lsp.execution.volumes.model.VolumePrediction`
    l2_oversubscription: float  # see there
    l2_capacity_estimate: float  # see there


def derive_volumes(counts: Counts, setting: Setting, fits: Fits) -> Derived:
    """Volumes by level and cause; which model it is lies in the counts and the fits.

    Source: Ernst et al. (2022), sections 4.3 to 4.5 (Equations 1 to 5); what they call V3 of the loads from DRAM, without further capacity misses of
    L2. What L2 holds between blocks is in the corrected model :mod:`~gpa_lsp.execution.volumes.retention`'s.
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
    cache = setting.device.l2
    touched = counts.wave_load_bytes + counts.wave_store_bytes
    return sum(
        one.block_bytes * float(cache.find_evicted_ratio(min(touched, wave_traffic_bytes * one.traffic_ratio)))
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
    retention = find_retention(flow, setting.device.l2)
    footprint = counts.once_load_bytes + sum(one.again_bytes for one in counts.shared_loads)
    rows = _sum_reuse("y", counts, setting, retention)
    return footprint, (rows, _sum_reuse("z", counts, setting, retention))


def _sum_reuse(axis: str, counts: Counts, setting: Setting, retention: Retention) -> LayerReuse:
    """Reuse of layers (``z``) before, or of rows (``y``) before and blocks of the same row."""
    found = [
        (shared, missed, needed)
        for shared, missed, needed in zip(counts.shared_loads, retention.missed, retention.needed_bytes, strict=True)
        if (shared.axis == "z") is (axis == "z")
    ]
    overlap = sum(shared.again_bytes for shared, _, _ in found)
    hit = sum(shared.again_bytes * (1 - missed) for shared, missed, _ in found)
    needed = max((needed for _, _, needed in found), default=0.0)
    ratio = hit / overlap if overlap > 0 else 1.0
    return _build_reuse(axis, counts, setting, overlap=overlap, needed_bytes=needed, hit_ratio=ratio)


def _apply_fit(axis: str, counts: Counts, setting: Setting, fit: Fit) -> LayerReuse:
    """Reuse of rows (blocks of the same row counted with them, each set by itself) or of the layer before, by a fit."""
    per_wave = max(1, counts.wave_threads) * setting.launch.updates_per_thread
    if axis == "y":
        overlap = (counts.shared_load_bytes[0] + counts.shared_load_bytes[1]) / per_wave
        needed = counts.before_bytes[0] + counts.before_bytes[1]
    else:
        overlap, needed = counts.shared_load_bytes[2] / per_wave, counts.before_bytes[2]
    over = needed / setting.device.l2_bytes
    bounded = min(_MOST_OVERSUBSCRIPTION, max(_LEAST_OVERSUBSCRIPTION, over)) if needed else _NOTHING_BEFORE
    return _build_reuse(axis, counts, setting, overlap=overlap, needed_bytes=needed, hit_ratio=fit.at(bounded))


def _build_reuse(
    axis: str, counts: Counts, setting: Setting, *, overlap: float, needed_bytes: float, hit_ratio: float
) -> LayerReuse:
    width, height = setting.launch.updates[0], setting.launch.updates[1]
    span, extent = (counts.row_span, width) if axis == "y" else (counts.layer_span, width * height)
    over = needed_bytes / setting.device.l2_bytes
    return LayerReuse(
        axis=axis,
        overlap=overlap,
        hit=overlap * hit_ratio,
        needed_bytes=needed_bytes,
        oversubscription=over,
        hit_ratio=hit_ratio,
        layers_needed=span,
        transition_updates=None if span is None or over <= 0 else (extent / over) ** (1.0 if axis == "y" else 0.5),
    )


def derive_bounds(
    kernel: KernelAccesses,
    counts: Counts,
    volumes: Volumes,
    launch: LaunchShape,
    device: VolumeDevice,
    *,
    is_filled: bool,
) -> tuple[Bound, ...]:
    """Performance that each limiter alone would allow, the lowest first.

    Args:
        is_filled: blocks are taken to fill all SMs, as in the published model; otherwise SMs without a block are idle.

    Source: Ernst et al. (2022), section 2: four limiters, of which the lowest holds. A fifth is how fast blocks can be started: with 32 to 128
    threads in each, a V100 was measured to start as many in a second, whatever their number of threads.
    Schedulers and pipes of the SM are no limiters of the paper either (:func:`count_issue_cycles`).
    """
    folded = launch.updates_per_thread
    executed = folded * (
        1.0 if kernel.issued is None else counts.executed_ratio
    )  # updates of a thread that was executed
    flops = (kernel.flops_per_thread or 0.0) / executed
    peak = device.fp64_flops_per_s if kernel.flops_are_double else device.fp32_flops_per_s
    cycles = counts.l1_cycles_per_warp / folded / WARP_LANES / counts.busy_ratio
    blocks = 1 / (launch.threads_per_block * counts.working_ratio * folded)
    sms = device.sm_count if is_filled else min(device.sm_count, prod(launch.grid))
    has_results = bool(kernel.accesses or kernel.sampled)
    issue = {} if is_filled or kernel.issued is None or not has_results else count_issue_cycles(kernel.issued, device)
    part = sms / device.sm_count
    l2_bytes = volumes.l2_load + volumes.l2_store
    l2_rate = device.l2_bytes_per_s
    if part < 1 and l2_bytes > 0:  # an SM loads and stores at once
        busier = max(volumes.l2_load, volumes.l2_store) / l2_bytes
        l2_rate = min(l2_rate, sms * SM_BYTES_PER_CYCLE * device.sm_hz / busier)
    found = (
        (Limiter.FLOPS, flops, part * (peak or 0.0)),
        *((one, cycles_of / executed, sms * device.sm_hz) for one, cycles_of in issue.items()),
        (Limiter.BLOCKS, blocks, device.block_starts_per_s or 0.0),
        (Limiter.L1, cycles, sms * device.sm_hz),
        (Limiter.L2, l2_bytes, l2_rate),
        (Limiter.DRAM, volumes.dram_load + volumes.dram_store, device.dram_bytes_per_s),
    )
    bounds = [
        Bound(limiter=limiter, updates_per_s=capacity / load, load=load)
        for limiter, load, capacity in found
        if load > 0 and capacity > 0
    ]
    return tuple(sorted(bounds, key=lambda bound: bound.updates_per_s))


def count_issue_cycles(issued: IssuedWork, device: VolumeDevice) -> dict[Limiter, float]:
    """Cycles for which a thread's instructions hold the schedulers of an SM, or a pipe of all its sub-partitions, at the rates of the architecture.

    Integers are multiplied in the FMA pipe, in a part of it where single precision is faster.
    """
    rates = find_architecture(device.compute_capability).throughput
    single, product = rates.fp32_instructions_per_cycle.value, rates.imad_instructions_per_cycle.value
    held = {
        Limiter.ISSUE: issued.instructions,
        Limiter.ALU: issued.additions / rates.int32_add_instructions_per_cycle.value
        + issued.logic / rates.int32_logic_instructions_per_cycle.value,
        Limiter.FMA: max(issued.products / product, (issued.products + issued.singles) / single),
        Limiter.XU: issued.special / rates.mufu_instructions_per_cycle.value,
    }
    return {limiter: cycles / _SUB_PARTITIONS for limiter, cycles in held.items()}


def combine_bounds(bounds: tuple[Bound, ...], fits: Fits) -> float:
    """Updates per second under all limiters together; 0 without any.

    Times of the units that data and numbers go through, one after the other, add as ``(Σ tᵢᵖ)^(1/p)``: with p infinite the slowest hides the
    others wholly, which is the published model. What starts blocks works ahead of all of them, so that it either hides them or is hidden: on a
    V100, shapes that are limited by it take its time within 1 %, whether L1 is busy for a third of that time or for two thirds. Schedulers and pipes
    are taken to do the same, as nothing was fitted for them.
    """
    if not bounds:
        return 0.0
    slowest = bounds[0].updates_per_s
    power = fits.overlap_exponent
    if power is None:
        return slowest
    total: float = sum((slowest / one.updates_per_s) ** power for one in bounds if one.limiter not in _APART)
    return float(slowest / max(1.0, total ** (1 / power)))


_APART = (Limiter.BLOCKS, *ISSUE_LIMITERS)
_SUB_PARTITIONS = 4  # Of an SM

_MOST_THREADS = 1024
_MOST_REGISTERS = 255
_MOST_UPDATES = 1 << 42  # Along an axis: twice what the largest grid of the largest blocks has

_LONGEST_REACH_BYTES = 1 << 60
# Shapes that touch 152 were measured at about half of the speed that is predicted for them, shapes that touch 80 were not (V100)
_MANY_PAGES = 128


def predict_volumes(
    kernel: KernelAccesses,
    launch: LaunchShape,
    device: VolumeDevice,
    *,
    registers: int,
    shared_bytes: int = 0,
    mode: VolumeMode = VolumeMode.CORRECTED,
) -> VolumePrediction:
    """Data volumes and performance of a launch.

    Args:
        device: for which; :func:`~gpa_lsp.execution.volumes.devices.find_paper_device` goes with the published model.

    Raises:
        InputError: the launch has no extent, or no SM holds even one block of it.
    """
    mode = VolumeMode(mode)
    _check(launch, registers, shared_bytes)
    _check_reach(kernel, launch)
    blocks_per_sm = _count_blocks_per_sm(launch, device, registers, shared_bytes, mode)
    fits = PAPER_FITS if mode is VolumeMode.PAPER else CORRECTED_FITS
    build = build_paper_wave if mode is VolumeMode.PAPER else build_wave
    wave = build(launch, blocks_per_sm * device.sm_count)
    counts = count_all(Subject(kernel=kernel, launch=launch, wave=wave, device=device, mode=mode))
    derived = derive_volumes(counts, Setting(launch=launch, device=device, blocks_per_sm=blocks_per_sm), fits)
    bounds = derive_bounds(kernel, counts, derived.volumes, launch, device, is_filled=mode is VolumeMode.PAPER)
    prediction = VolumePrediction(
        kernel=kernel.name,
        device=device,
        mode=mode,
        launch=launch,
        blocks_per_sm=blocks_per_sm,
        wave=wave,
        counts=counts,
        volumes=derived.volumes,
        l1_oversubscription=derived.l1_oversubscription,
        l2_oversubscription=derived.l2_oversubscription,
        l2_capacity_estimate=derived.l2_capacity_estimate,
        reuse=derived.reuse,
        bounds=bounds,
        updates_per_s=combine_bounds(bounds, fits),
        notes=(
            *kernel.notes,
            *device.doubts,
            *_list_notes(kernel, launch, counts, bounds, held=blocks_per_sm * device.sm_count, sms=device.sm_count),
        ),
    )
    return (
        prediction if mode is VolumeMode.PAPER else replace(prediction, contradictions=find_contradictions(prediction))
    )


def _check(launch: LaunchShape, registers: int, shared_bytes: int) -> None:
    for name, values in (
        ("block", launch.block),
        ("grid", launch.grid),
        ("updates", launch.updates),
        ("fold", launch.fold),
    ):
        if min(values) < 1:
            raise InputError(f"the launch's {name} {values} has no extent", remedy="give at least 1 along x, y and z")
    if launch.threads_per_block > _MOST_THREADS:
        raise InputError(
            f"a block of {format_count(launch.threads_per_block)} threads",
            remedy=f"no GPU takes more than {format_count(_MOST_THREADS)}",
        )
    if max(launch.grid) >= 1 << 31:
        raise InputError(
            f"a grid of {launch.grid} blocks", remedy=f"no GPU takes {format_count(1 << 31)} along an axis"
        )
    if max(launch.updates) >= _MOST_UPDATES:
        raise InputError(f"a launch of {launch.updates} updates", remedy="no GPU has as many threads along an axis")
    if not 0 <= registers <= _MOST_REGISTERS or shared_bytes < 0:
        raise InputError(
            f"{registers} registers and {shared_bytes} bytes of shared memory", remedy="give what the compiler reports"
        )


def _check_reach(kernel: KernelAccesses, launch: LaunchShape) -> None:
    """Addresses must be far from what 64 bits hold; only nonsense comes near."""
    for access in kernel.accesses:
        reach = abs(access.constant_bytes) + sum(abs(loop.step_bytes) * loop.trips for loop in access.loops)
        for axis in range(3):
            size, step = launch.block[axis], access.global_bytes[axis]
            reach += abs(step + access.thread_bytes[axis]) * size
            reach += abs(step * size + access.block_bytes[axis]) * launch.grid[axis]
        if reach > _LONGEST_REACH_BYTES:
            place = f"access {access.instruction}" if access.instruction is not None else None
            remedy = "check the launch's grid"
            raise InputError(f"an access of {kernel.name} spans {format_bytes(reach)}", place=place, remedy=remedy)


def _list_notes(
    kernel: KernelAccesses, launch: LaunchShape, counts: Counts, bounds: tuple[Bound, ...], *, held: int, sms: int
) -> Iterator[Sentence]:
    blocks = prod(launch.grid)
    if blocks < held:
        yield say(
            "The launch has {blocks} of the {held} that the {sms} of the GPU can hold at once: latency, which is not modelled, is hardly hidden, so "
            "it takes longer than predicted.",
            blocks=count(blocks),
            held=count(held, "block"),
            sms=count(sms, "SM"),
        )
    if kernel.flops_per_thread is None:
        yield say("The arithmetic of the kernel is unknown; floating-point operations are not considered as a limiter.")
    if kernel.sampled and not kernel.is_whole:
        yield say(
            "Addresses of {accesses} are not affine; there, the traced blocks stand for all.",
            accesses=count(len(kernel.sampled), "access"),
        )
    if counts.wave_pages > _MANY_PAGES:
        yield say(
            "A wave touches {pages} of 2 MiB at once; TLB misses, which are not modelled, can be costly.",
            pages=count(counts.wave_pages, "page"),
        )
    if not bounds:
        yield say("The kernel touches no global memory: nothing is predicted.")


def _count_blocks_per_sm(
    launch: LaunchShape, device: VolumeDevice, registers: int, shared_bytes: int, mode: VolumeMode
) -> int:
    if mode is VolumeMode.PAPER:
        found = count_paper_blocks_per_sm(launch.threads_per_block, registers)
    else:
        shape = BlockShape(threads=launch.threads_per_block, registers_per_thread=registers, shared_bytes=shared_bytes)
        found = find_occupancy(find_architecture(device.compute_capability), shape).blocks_per_sm
    if found == 0:
        asked = f"{format_count(launch.threads_per_block)} threads, {registers} registers each and {format_bytes(shared_bytes)} of shared memory"
        raise InputError(f"no SM of the {device.name} can hold a block of {asked}", remedy="make the block smaller")
    return found
