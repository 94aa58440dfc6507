"""Data volumes of a launch, from a trace of a few of its blocks: :func:`predict_volumes_of`."""

from dataclasses import replace

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.basis.errors import Problem, ProblemSeverity, spare_others
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.device.products import Product
from gpa_lsp.emulator.model import Emulation
from gpa_lsp.prediction.flops import count_flops
from gpa_lsp.prediction.launch_subject import LaunchSubject
from gpa_lsp.prediction.machines import choose_volume_device
from gpa_lsp.prediction.model import PredictionSettings
from gpa_lsp.traces.piece_rows import PieceRows
from gpa_lsp.volumes.answer import answer_volumes
from gpa_lsp.volumes.continuing import continue_trace
from gpa_lsp.volumes.expressions import KernelAccesses
from gpa_lsp.volumes.from_trace import find_launch_shape, recover_expressions
from gpa_lsp.volumes.miscounts import find_miscounts, find_shortfalls
from gpa_lsp.volumes.model import Contradiction, VolumeMode, VolumePrediction
from gpa_lsp.volumes.predict import predict_volumes


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchVolumes:
    """The prediction, as far as there is one.

    Attributes:
        recovered: what the kernel does to global memory.
        predicted: None without a GPU that volumes can be predicted for.
        answers: for people.
    """

    recovered: KernelAccesses | None = None
    predicted: VolumePrediction | None = None
    answers: tuple[Answer, ...] = ()

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Rules it breaks."""
        return () if self.predicted is None else self.predicted.contradictions

    @property
    def shown(self) -> VolumePrediction | None:
        """The prediction, where it breaks no rule."""
        return None if self.contradictions else self.predicted


def predict_volumes_of(
    subject: LaunchSubject,
    settings: PredictionSettings,
    product: Product | None,
    probe: Emulation,
    counted: Emulation,
    *,
    problems: list[Problem],
    piece: PieceRows | None = None,
) -> LaunchVolumes:
    """From a few blocks alone: it costs milliseconds, and says the same of a launch of any size.

    Args:
        subject: the launch.
        settings: how.
        product: the GPU, where it is a known one.
        probe: with a trace of their accesses, or of the first of each.
        counted: blocks that ran to their end: the same, or others where those took too long.
        problems: gets why there are no volumes.
        piece: what was found of the trace so far.
    """
    device = choose_volume_device(product, settings.mode)
    if isinstance(device, Problem):
        problems.append(device)
        return LaunchVolumes()
    trace = probe.trace
    executed = len(counted.executed_blocks)
    is_whole = trace is not None and trace.is_complete and probe.is_complete
    lanes = counted.counts.lane_executions
    continuation = None if trace is None or is_whole else continue_trace(trace, lanes, executed)
    if trace is None or not counted.is_complete or (continuation is None and not is_whole):
        why = "data volumes are not predicted: the blocks traced for the addresses did not run to their end"
        remedy = "give more time or memory, or describe a smaller launch"
        problems.append(Problem(severity=ProblemSeverity.WARNING, message=why, remedy=remedy))  # the user's own limit
        return LaunchVolumes()
    piece = PieceRows(trace) if piece is None else piece
    with spare_others("predicting data volumes", problems):
        work = count_flops(counted)
        recovered = recover_expressions(
            trace,
            flops_per_thread=work.total,
            flops_are_double=work.is_double,
            piece=piece,
            continuation=continuation,
        )
        shape = find_launch_shape(recovered, subject.launch.block, subject.launch.grid)
        predicted = predict_volumes(
            recovered,
            shape,
            device,
            registers=subject.registers or 0,
            shared_bytes=subject.shared_bytes,
            mode=settings.mode,
        )
        if settings.mode is VolumeMode.CORRECTED:
            miscounts = find_miscounts(recovered, trace, piece) if continuation is None else ()
            shortfalls = find_shortfalls(predicted, trace, piece)
            predicted = replace(predicted, contradictions=(*predicted.contradictions, *miscounts, *shortfalls))
        return LaunchVolumes(recovered=recovered, predicted=predicted, answers=(answer_volumes(predicted, recovered),))
    return LaunchVolumes()
