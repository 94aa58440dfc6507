"""Recorded launches, emulated once more with a trace: :func:`examine_recorded`."""

from collections.abc import Callable

from gpa_lsp.basis.errors import Problem, spare_others
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.prediction.launch_sources import LaunchChoice
from gpa_lsp.prediction.model import KernelPrediction, PredictionSettings
from gpa_lsp.prediction.predict_build import predict_build
from gpa_lsp.programs.model import KernelRuns, ProgramRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedKernel:
    """A kernel of a program that ran.

    Attributes:
        runs: its launches.
        prediction: of its heaviest launch; None where none was kept, or it could not be predicted.
        problems: why not, and which parts of it are missing.
    """

    runs: KernelRuns
    prediction: KernelPrediction | None
    problems: tuple[Problem, ...] = ()


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
