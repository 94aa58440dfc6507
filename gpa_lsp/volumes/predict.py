"""Expressions, a launch and a GPU → :class:`~gpa_lsp.volumes.model.VolumePrediction`: :func:`predict_volumes`."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from gpa_lsp.arch.lookup import find_architecture
from gpa_lsp.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.numbers import format_bytes, format_count
from gpa_lsp.basis.prose import Sentence, count, say
from gpa_lsp.volumes.contradictions import find_contradictions
from gpa_lsp.volumes.counting import Subject, count_all
from gpa_lsp.volumes.deriving import Setting, combine_bounds, derive_bounds, derive_volumes
from gpa_lsp.volumes.devices import VolumeDevice
from gpa_lsp.volumes.expressions import KernelAccesses, LaunchShape
from gpa_lsp.volumes.fits import CORRECTED_FITS, PAPER_FITS
from gpa_lsp.volumes.model import Bound, Counts, VolumeMode, VolumePrediction
from gpa_lsp.volumes.waves import build_paper_wave, build_wave, count_paper_blocks_per_sm

MOST_THREADS = 1024
MOST_REGISTERS = 255
MOST_UPDATES = 1 << 42
"""Along an axis: twice what the largest grid of the largest blocks has."""

LONGEST_REACH_BYTES = 1 << 60
MANY_PAGES = 128
"""Shapes that touch 152 were measured at about half of the speed that is predicted for them, shapes that touch 80 were not (V100)."""


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
        kernel: its accesses.
        launch: how its threads are laid out.
        device: for which; :func:`~gpa_lsp.volumes.devices.find_paper_device` goes with the published model.
        registers: of a thread, as compiled.
        shared_bytes: static and dynamic shared memory of a block; the published model does not look at it.
        mode: which model.

    Returns:
        The prediction, with what in it cannot be true; see :mod:`~gpa_lsp.volumes.contradictions`.

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
    bounds = derive_bounds(kernel, counts, derived.volumes, launch, device)
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
        notes=(*kernel.notes, *device.doubts, *_list_notes(kernel, launch, counts, bounds, wave_blocks=wave.blocks)),
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
    if launch.threads_per_block > MOST_THREADS:
        raise InputError(
            f"a block of {format_count(launch.threads_per_block)} threads",
            remedy=f"no GPU takes more than {format_count(MOST_THREADS)}",
        )
    if max(launch.grid) >= 1 << 31:
        raise InputError(
            f"a grid of {launch.grid} blocks", remedy=f"no GPU takes {format_count(1 << 31)} along an axis"
        )
    if max(launch.updates) >= MOST_UPDATES:
        raise InputError(f"a launch of {launch.updates} updates", remedy="no GPU has as many threads along an axis")
    if not 0 <= registers <= MOST_REGISTERS or shared_bytes < 0:
        raise InputError(
            f"{registers} registers and {shared_bytes} bytes of shared memory", remedy="give what the compiler reports"
        )


def _check_reach(kernel: KernelAccesses, launch: LaunchShape) -> None:
    """Addresses must be far from what 64 bits hold; only nonsense comes near."""
    for access in kernel.accesses:
        reach = abs(access.constant_bytes) + sum(abs(loop.step_bytes) * loop.trips for loop in access.loops)
        for axis in range(3):
            reach += abs(access.count_thread_step(axis)) * launch.block[axis]
            reach += abs(access.count_block_step(axis, launch.block)) * launch.grid[axis]
        if reach > LONGEST_REACH_BYTES:
            place = f"access {access.instruction}" if access.instruction is not None else None
            remedy = "check the launch's grid"
            raise InputError(f"an access of {kernel.name} spans {format_bytes(reach)}", place=place, remedy=remedy)


def _list_notes(
    kernel: KernelAccesses, launch: LaunchShape, counts: Counts, bounds: tuple[Bound, ...], *, wave_blocks: int
) -> Iterator[Sentence]:
    blocks = prod(launch.grid)
    if blocks < wave_blocks:
        yield say(
            "The launch has {blocks} of the {wave} that the GPU can hold at once; the limits are those of a full GPU, so it takes longer than "
            "predicted.",
            blocks=count(blocks),
            wave=count(wave_blocks, "block"),
        )
    if kernel.flops_per_thread is None:
        yield say("The arithmetic of the kernel is unknown; floating-point operations are not considered as a limiter.")
    if kernel.sampled:
        yield say(
            "Addresses of {accesses} are not affine; there, the traced blocks stand for all.",
            accesses=count(len(kernel.sampled), "access"),
        )
    if counts.wave_pages > MANY_PAGES:
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
