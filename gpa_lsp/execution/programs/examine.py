"""Recorded launches, emulated once more with a trace: :func:`examine_recorded`."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.execution.prediction.fitting import LIMITS
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import KernelPrediction, LaunchComparison, PredictionSettings
from gpa_lsp.execution.prediction.predict import compare_launches, predict_code
from gpa_lsp.execution.programs.model import KernelRuns, ProgramRun, RecordedLaunch
from gpa_lsp.foundation.errors import Problem, spare_others
from gpa_lsp.foundation.work_time import work_time


class ExaminedKernel(Struct, frozen=True, kw_only=True):
    """A kernel of a program run, with the prediction of its heaviest launch."""

    runs: KernelRuns  # its launches
    # of its heaviest launch; None where none was kept, or it could not be predicted
    prediction: KernelPrediction | None
    problems: tuple[Problem, ...] = ()  # why not, and which parts of it are missing
    # of that launch and others at even distances over all of the kernel; None where fewer than two could be traced
    comparison: LaunchComparison | None = None


def examine_recorded(
    run: ProgramRun, settings: PredictionSettings, *, tell: Callable[[str], object] | None = None
) -> tuple[ExaminedKernel, ...]:
    """Predict each kernel's heaviest launch: memory accesses, divergence, limiter; and compare its launches.

    Args:
        run: with recorded launches that are still there.
        settings: for which GPU, and how much the heaviest launch of a kernel may cost, and all others together.
        tell: told the name of each kernel before it is looked at.
    """
    return tuple(_examine(kernel, settings, tell) for kernel in run.kernels)


def _examine(kernel: KernelRuns, settings: PredictionSettings, tell: Callable[[str], object] | None) -> ExaminedKernel:
    if kernel.recorded is None:
        return ExaminedKernel(runs=kernel, prediction=None)
    if tell is not None:
        tell(kernel.name)
    problems: list[Problem] = []
    prediction = _predict(kernel, kernel.recorded, settings, problems)
    compared = None if prediction is None or not kernel.others else _compare(kernel, prediction, settings)
    return ExaminedKernel(runs=kernel, prediction=prediction, problems=tuple(problems), comparison=compared)


def _predict(
    kernel: KernelRuns, recorded: RecordedLaunch, settings: PredictionSettings, problems: list[Problem]
) -> KernelPrediction | None:
    with spare_others(f"analysing a launch of {kernel.name}", problems):
        found = predict_code(recorded.module, launches=LaunchChoice(path=recorded.description), settings=settings)
        prediction = found.kernels[0] if found.kernels else None
        problems += [*found.problems, *(prediction.problems if prediction is not None else ())]
        return prediction
    return None


def _compare(kernel: KernelRuns, heaviest: KernelPrediction, settings: PredictionSettings) -> LaunchComparison | None:
    """Mean, extremes and deviation over the heaviest launch and the others that end within the limits.

    Source: CUDAAdvisor, section 3.3.
    """
    share = replace(settings.budget, seconds=settings.budget.seconds / len(kernel.others))
    deadline = work_time() + settings.budget.seconds
    traced = [heaviest]
    for one in kernel.others:
        if work_time() > deadline:
            break
        found = _predict(kernel, one, replace(settings, budget=share), [])
        if found is not None and not any(fault.kind in LIMITS for fault in found.faults):
            traced.append(found)
    return next(iter(compare_launches(traced)), None)
