"""Recorded launches, emulated once more with a trace: :func:`examine_recorded`."""

from collections.abc import Callable

from msgspec import Struct

from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import KernelPrediction, PredictionSettings
from gpa_lsp.execution.prediction.predict import predict_build
from gpa_lsp.execution.programs.model import KernelRuns, ProgramRun
from gpa_lsp.foundation.errors import Problem, spare_others


class ExaminedKernel(Struct, frozen=True, kw_only=True):
    """A kernel of a program that ran."""

    runs: KernelRuns  # its launches
    # of its heaviest launch; None where none was kept, or it could not be predicted
    prediction: KernelPrediction | None
    problems: tuple[Problem, ...] = ()  # why not, and which parts of it are missing


def examine_recorded(
    run: ProgramRun, settings: PredictionSettings, *, tell: Callable[[str], object] | None = None
) -> tuple[ExaminedKernel, ...]:
    """What each kernel's heaviest launch does to memory, where its warps diverge, and what limits it.

    Args:
        run: with recorded launches that are still there.
        settings: for which GPU, and how much each launch may cost.
        tell: told the name of each kernel before it is looked at.
    """
    return tuple(_examine(kernel, settings, tell) for kernel in run.kernels)


def _examine(kernel: KernelRuns, settings: PredictionSettings, tell: Callable[[str], object] | None) -> ExaminedKernel:
    recorded = kernel.recorded
    if recorded is None:
        return ExaminedKernel(runs=kernel, prediction=None)
    if tell is not None:
        tell(kernel.name)
    problems: list[Problem] = []
    prediction = None
    with spare_others(f"analysing a launch of {kernel.name}", problems):
        found = predict_build(recorded.module, launches=LaunchChoice(path=recorded.description), settings=settings)
        prediction = found.kernels[0] if found.kernels else None
        problems += [*found.problems, *(prediction.problems if prediction is not None else ())]
    return ExaminedKernel(runs=kernel, prediction=prediction, problems=tuple(problems))
