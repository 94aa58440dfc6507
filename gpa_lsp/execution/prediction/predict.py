"""Predictions of a source, a build or a report: :func:`predict_code`. It computes nothing itself."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.compiler.model import DEFAULT_COMPUTE_CAPABILITY, DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.execution.emulator.model import TraceSink
from gpa_lsp.execution.prediction.launch_sources import EVERY_LAUNCH, LaunchChoice
from gpa_lsp.execution.prediction.launched_code import CodeChoice, KernelLaunch, read_launched
from gpa_lsp.execution.prediction.model import (
    DEFAULT_PREDICTION,
    KernelPrediction,
    LaunchComparison,
    PredictionSettings,
    SourcePrediction,
)
from gpa_lsp.execution.prediction.predict_launch import LaunchSubject, predict_launch
from gpa_lsp.execution.prediction.predict_measured import predict_measured
from gpa_lsp.execution.prediction.static_source import Capability, choose_product, choose_volume_device
from gpa_lsp.execution.traces.ask import answer_launches
from gpa_lsp.execution.traces.results import spread_listed
from gpa_lsp.execution.volumes.answer import answer_volumes
from gpa_lsp.execution.volumes.measured_volumes import scatter_volumes
from gpa_lsp.execution.volumes.model import VolumeMode, VolumePrediction, describe_contradiction
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.execution.volumes.written_expressions import WrittenKernel
from gpa_lsp.foundation.errors import GpaError, InputError, Problem, spare_others
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.prose import join
from gpa_lsp.foundation.work_time import work_time
from gpa_lsp.gpu.device.products import note_choice
from gpa_lsp.kernel.names import demangle

Progress = Callable[[str, int, int], None]  # Told (what, done, total)


def predict_code(
    path: Path,
    *,
    text: str | None = None,
    kernel: str | None = None,
    launches: LaunchChoice = EVERY_LAUNCH,
    compute_capability: Capability | None = None,
    settings: PredictionSettings = DEFAULT_PREDICTION,
    compile_settings: CompileSettings = DEFAULT_SETTINGS,
    sinks: Iterable[TraceSink] = (),
    progress: Progress | None = None,
) -> SourcePrediction:
    """Emulate the launches of a source, of what was built, or of a report, and analyse what each did.

    What was measured of a report's launches is laid beside what was emulated.

    Args:
        path: of the code; see :func:`~gpa_lsp.execution.prediction.launched_code.read_launched`.
        text: what an editor holds of a source; None to read the file.
        kernel: only the kernel of this name, or else those whose name contains it; None for all.
        launches: choice among those of these kernels.
        compute_capability: see :class:`~gpa_lsp.execution.prediction.launched_code.CodeChoice`.
        settings: GPU and limits. Without a GPU, a report's launches are predicted for the one they were measured on.
        compile_settings: of the compiler.
        sinks: get the traces as well, of one launch after the other.
        progress: called before each launch.

    Returns:
        The prediction. A launch that cannot be run becomes a problem, and the others go on; a source with errors gives its messages alone.

    Raises:
        GpaError: see :func:`~gpa_lsp.execution.prediction.launched_code.read_launched`.
    """
    problems: list[Problem] = []
    choice = CodeChoice(
        kernel=kernel,
        launches=launches,
        text=text,
        machine=settings.machine,
        compute_capability=compute_capability,
        compile_settings=compile_settings,
        must_compile=False,
    )
    code = read_launched(path, choice, problems)
    predictions = predict_launches(code.launches, settings, problems, sinks=tuple(sinks), progress=progress)
    return SourcePrediction(
        path=code.path,
        launches_path=code.described,
        statics=code.statics,
        kernels=tuple(predictions),
        undescribed=code.undescribed,
        problems=tuple(problems),
        comparisons=compare_launches(predictions),
    )


def predict_launches(
    launches: Sequence[KernelLaunch],
    settings: PredictionSettings,
    problems: list[Problem],
    *,
    sinks: tuple[TraceSink, ...] = (),
    progress: Progress | None = None,
) -> list[KernelPrediction]:
    """Each launch in turn; one that cannot be run becomes a problem."""
    predictions = []
    started_s, most_s = work_time(), settings.all_seconds
    for number, one in enumerate(launches):
        if most_s is not None and work_time() - started_s > most_s:
            left = len(launches) - number
            message = (
                f"time ran out before {format_count(left)} of {format_count(len(launches))} launches were emulated"
            )
            problems.append(Problem.from_error(GpaError(message)))
            break
        name = demangle(one.function.name)
        if progress is not None:
            progress(f"emulating {name}", number, len(launches))
        with spare_others(f"predicting a launch of {name}", problems, kernel=one.function.name):
            statics = one.code.statics
            own = (known.statics for known in statics.kernels if known.statics.mangled_name == one.function.name)
            subject = LaunchSubject(
                module=one.code.module,
                launch=one.launch,
                kernel=one.function.name,
                name=name,
                statics=next(own, None),
                compute_capability=statics.unit.compute_capability,
            )
            if one.measured is None:
                predictions.append(predict_launch(subject, settings, sinks=sinks))
            else:
                predictions.append(predict_measured(subject, one.measured, settings, sinks))
    return predictions


def compare_launches(predictions: Sequence[KernelPrediction]) -> tuple[LaunchComparison, ...]:
    """One comparison for each kernel of which several launches were traced, in their order."""
    groups: dict[str, list[KernelPrediction]] = {}
    for one in predictions:
        if one.measures:
            groups.setdefault(one.mangled_name, []).append(one)
    return tuple(_compare_members(members) for members in groups.values() if len(members) > 1)


def _compare_members(members: Sequence[KernelPrediction]) -> LaunchComparison:
    spreads = spread_listed([one.measures for one in members])
    answer = answer_launches(spreads, len(members), "emulated")
    chart = scatter_volumes([one.measured_volumes for one in members if one.measured_volumes is not None])
    return LaunchComparison(
        mangled_name=members[0].mangled_name,
        name=members[0].name,
        launches=len(members),
        spreads=spreads,
        answer=answer if chart is None else replace(answer, charts=(*answer.charts, chart)),
    )


class ExpressionPrediction(Struct, frozen=True, kw_only=True):
    """Prediction of a kernel that is described by its addresses."""

    written: WrittenKernel  # the kernel and its launch
    volumes: VolumePrediction  # by level, limiters and time
    answer: Answer  # the same for people
    problems: tuple[Problem, ...] = ()  # notes on the choice of the GPU


def predict_expressions(
    written: WrittenKernel,
    *,
    machine: str | None = None,
    compute_capability: Capability | None = None,
    mode: VolumeMode = VolumeMode.CORRECTED,
) -> ExpressionPrediction:
    """Predict a kernel that is described by its addresses, by the same model as kernels of sources.

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
