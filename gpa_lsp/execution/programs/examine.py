"""Recorded launches: emulated once more with a trace (:func:`examine_recorded`), and written as descriptions beside the sources of their kernels
(:func:`describe_beside`).
"""

import hashlib
import json
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.execution.launches import DESCRIPTION_SUFFIX
from gpa_lsp.execution.prediction.fitting import LIMITS
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import KernelPrediction, LaunchComparison, PredictionSettings
from gpa_lsp.execution.prediction.predict import compare_launches, predict_code
from gpa_lsp.execution.programs.model import KernelRuns, ProgramRun, RecordedLaunch
from gpa_lsp.foundation.errors import Problem, spare_others
from gpa_lsp.foundation.files import atomic_write
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


_HEADING = "# Launches recorded while a program ran; recording again replaces this file.\n"
_DATA_SUFFIX = ".launches"
_DIGEST_LETTERS = 16
_FILE = re.compile(r"\bfile = (\"[^\"]*\")")


class LeftOut(Struct, frozen=True, kw_only=True):
    """A kernel for which nothing was written."""

    name: str  # for people
    reason: str  # why, a clause


class Described(Struct, frozen=True, kw_only=True):
    """Result of writing descriptions beside sources."""

    written: tuple[Path, ...]  # descriptions
    left_alone: tuple[Path, ...]  # handwritten descriptions, which stay
    kernels: tuple[str, ...]  # names, for people, of those that have a description now
    left_out: tuple[LeftOut, ...]  # the others


def describe_beside(run: ProgramRun, folder: Path) -> Described:
    """Write the recorded launches of a run beside their sources, with their data in a folder there.

    Args:
        run: with recorded launches that are still there.
        folder: only sources below it.

    Raises:
        OSError: something cannot be written.
    """
    launches: dict[Path, list[tuple[str, RecordedLaunch]]] = defaultdict(list)  # a header's go with those of its source
    left_out = []
    for kernel in run.kernels:
        one = kernel.recorded
        source = None if one is None else _find_source(one, folder)
        if one is not None and source is not None:
            launches[source.with_name(source.stem + DESCRIPTION_SUFFIX)].append((kernel.name, one))
        else:
            left_out.append(LeftOut(name=kernel.name, reason=_explain(kernel)))
    written, left_alone, kernels = [], [], []
    for description, named in launches.items():
        names = [name for name, _ in named]
        if _is_handwritten(description):
            left_alone.append(description)
            reason = f"{description.name} or its data was not written by a recording; rename it to record"
            left_out += [LeftOut(name=name, reason=reason) for name in names]
            continue
        _write(description, [one for _, one in named])
        written.append(description)
        kernels += names
    return Described(
        written=tuple(written), left_alone=tuple(left_alone), kernels=tuple(kernels), left_out=tuple(left_out)
    )


def _find_source(one: RecordedLaunch, folder: Path) -> Path | None:
    """Source of a launch, if it lies below a folder."""
    source = None if one.source is None else (folder / one.source).resolve()
    return source if source is not None and source.is_file() and source.is_relative_to(folder.resolve()) else None


def _explain(kernel: KernelRuns) -> str:
    one = kernel.recorded
    if one is None:
        return kernel.unrecorded or "no launch of it was kept"
    if one.source is None:
        return "it has no line information; build with -lineinfo"
    return f"its source is elsewhere: {one.source}"


def _is_handwritten(description: Path) -> bool:
    """Whether there is a description, or data of one, that was not recorded."""
    if not description.exists():
        return _find_data(description).exists()
    return not description.read_text(encoding="utf-8", errors="replace").startswith(_HEADING)


def _find_data(description: Path) -> Path:
    return description.with_name(description.name.removesuffix(DESCRIPTION_SUFFIX) + _DATA_SUFFIX)


def _write(description: Path, launches: list[RecordedLaunch]) -> None:
    """Write one description and its data; if that fails, those of an earlier recording stay."""
    data = _find_data(description)
    digest = hashlib.sha256()
    parts = []
    with tempfile.TemporaryDirectory(prefix=f".{data.name[:40]}.", dir=data.parent) as made:
        written = Path(made, "data")
        for one in launches:
            text = one.description.read_text(encoding="utf-8")
            for name in _FILE.findall(text):
                written.mkdir(exist_ok=True)
                file = json.loads(name)
                shutil.copyfile(one.description.with_name(file), written / file)
                digest.update((written / file).read_bytes())
            parts.append(_FILE.sub(lambda match: f"file = {json.dumps(f'{data.name}/{json.loads(match[1])}')}", text))
        # A digest of the data, so that new data changes the description too, and editors that compare texts emulate it again
        heading = f"{_HEADING}# Data: {digest.hexdigest()[:_DIGEST_LETTERS]}\n"
        with atomic_write(description) as stream:
            stream.write("\n".join([heading, *parts]))
            stream.flush()
            if data.exists():
                data.rename(Path(made, "earlier"))
            if written.exists():
                written.rename(data)
