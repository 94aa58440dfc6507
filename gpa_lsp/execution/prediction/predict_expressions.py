"""Address expressions that were written down → volumes, limiters and time: :func:`predict_expressions`. Nothing is compiled or executed."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.compiler.model import DEFAULT_COMPUTE_CAPABILITY
from gpa_lsp.execution.prediction.targets import Capability, choose_product, choose_volume_device
from gpa_lsp.execution.volumes.answer import answer_volumes
from gpa_lsp.execution.volumes.model import VolumeMode, VolumePrediction, describe_contradiction
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.execution.volumes.written_expressions import WrittenKernel
from gpa_lsp.foundation.errors import GpaError, InputError, Problem
from gpa_lsp.foundation.prose import join
from gpa_lsp.gpu.device.products import note_choice


class ExpressionPrediction(Struct, frozen=True, kw_only=True):
    """What was predicted of a kernel that is described by its addresses."""

    written: WrittenKernel  # the kernel and its launch
    volumes: VolumePrediction  # by level, limiters and time
    answer: Answer  # the same for people
    problems: tuple[Problem, ...] = ()  # what a reader must know of the GPU


def predict_expressions(
    written: WrittenKernel,
    *,
    machine: str | None = None,
    compute_capability: Capability | None = None,
    mode: VolumeMode = VolumeMode.CORRECTED,
) -> ExpressionPrediction:
    """Predict a kernel by the model that kernels of sources are predicted by.

    Args:
        machine: name of the GPU, or a file that describes one; None for the first known of the compute capability.
        compute_capability: where no GPU is named; None for 8.0.

    Raises:
        InputError: no GPU has the name, the model has no such GPU, or no SM holds a block.
        GpaError: volumes contradict each other, a defect of ours.
    """
    product = choose_product(machine, compute_capability or DEFAULT_COMPUTE_CAPABILITY)
    device = choose_volume_device(product, mode)
    if isinstance(device, Problem):
        raise InputError(device.message, remedy=device.remedy or "name another GPU with --machine")
    volumes = predict_volumes(
        written.accesses,
        written.launch,
        device,
        registers=written.registers,
        shared_bytes=written.shared_bytes,
        mode=mode,
    )
    if volumes.contradictions:
        raise GpaError(f"a defect of gpa-lsp: {join([describe_contradiction(one) for one in volumes.contradictions])}")
    return ExpressionPrediction(
        written=written,
        volumes=volumes,
        answer=answer_volumes(volumes, written.accesses),
        problems=tuple(Problem.note(note) for note in note_choice(machine)),
    )
