"""Expressions, a launch and a GPU → :class:`~gpa_lsp.analyses.volumes.model.VolumePrediction`: :func:`predict_volumes`."""

from gpa_lsp.analyses.volumes.counting import Subject, count_all
from gpa_lsp.analyses.volumes.deriving import derive_bounds, derive_paper_volumes
from gpa_lsp.analyses.volumes.devices import VolumeDevice
from gpa_lsp.analyses.volumes.expressions import KernelAccesses, LaunchShape
from gpa_lsp.analyses.volumes.fits import PAPER_FITS
from gpa_lsp.analyses.volumes.model import VolumeMode, VolumePrediction
from gpa_lsp.analyses.volumes.waves import build_paper_wave, count_paper_blocks_per_sm


def predict_volumes(
    kernel: KernelAccesses,
    launch: LaunchShape,
    device: VolumeDevice,
    *,
    registers: int,
    shared_bytes: int = 0,
    mode: VolumeMode = VolumeMode.CORRECTED,
) -> VolumePrediction:
    """Data volumes and performance of a launch."""
    blocks_per_sm = count_paper_blocks_per_sm(launch.threads_per_block, registers)
    wave = build_paper_wave(launch, blocks_per_sm * device.sm_count)
    counts = count_all(Subject(kernel=kernel, launch=launch, wave=wave, mode=mode))
    derived = derive_paper_volumes(counts, launch, device, blocks_per_sm, PAPER_FITS)
    return VolumePrediction(
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
        reuse=derived.reuse,
        bounds=derive_bounds(kernel, counts, derived.volumes, launch, device),
    )
