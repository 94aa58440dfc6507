"""From a source, or device code that was built, to predictions: :func:`predict_source`. Computes nothing itself."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpa_lsp.compiler.settings import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.emulator.inputs.read_launches import find_launch_file, read_launches
from gpa_lsp.emulator.launch import LaunchDescription
from gpa_lsp.emulator.model import TraceSink
from gpa_lsp.emulator.ptx.model import PtxFunction, PtxModule
from gpa_lsp.emulator.ptx.parse import parse_ptx
from gpa_lsp.errors import GpaError, InputError, Problem
from gpa_lsp.prediction.model import KernelPrediction, SourcePrediction
from gpa_lsp.prediction.predict_launch import LaunchSubject, predict_launch
from gpa_lsp.prediction.settings import DEFAULT_PREDICTION, PredictionSettings
from gpa_lsp.prediction.static_source import SourceStatics, examine_source
from gpa_lsp.report.names import demangle, is_named

Progress = Callable[[str, int, int], None]
"""Told (what, done, total)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedLaunch:
    """A launch and the kernel it is of."""

    launch: LaunchDescription
    function: PtxFunction


def predict_source(
    path: Path,
    *,
    text: str | None = None,
    kernel: str | None = None,
    launches_path: Path | None = None,
    launches_text: str | None = None,
    launch_number: int | None = None,
    compute_capability: tuple[int, int] | None = None,
    settings: PredictionSettings = DEFAULT_PREDICTION,
    compile_settings: CompileSettings = DEFAULT_SETTINGS,
    sinks: Iterable[TraceSink] = (),
    progress: Progress | None = None,
) -> SourcePrediction:
    """Compile, read the launches, emulate each and analyse what it did.

    Args:
        path: of a CUDA C++ source.
        text: what an editor holds of it; None to read the file.
        kernel: only kernels whose name contains this; None for all.
        launches_path: the description; None for the file beside the source.
        launches_text: what an editor holds of it; None to read the file.
        launch_number: only this one of the launches of those kernels, from 1; None for all.
        compute_capability: to compile for; None as in :func:`~gpa_lsp.prediction.static_source.examine_source`, or that of the GPU named in the
            settings.
        settings: for which GPU, and how much it may cost.
        compile_settings: of the compiler.
        sinks: get the traces as well, of one launch after the other.
        progress: told how far it is.

    Returns:
        The prediction. A launch that cannot be run becomes a problem, and the others go on; a source with errors gives its messages alone.

    Raises:
        InputError: the source or the description cannot be read, or no GPU has the name.
        MissingToolError: no compiler is installed.
        ToolError: the compiler did not end in time, or crashed.
    """
    statics = examine_source(
        path, text=text, compute_capability=compute_capability, kernel=kernel, settings=compile_settings
    )
    described = launches_path or find_launch_file(statics.path)
    if statics.unit.ptx is None:
        return SourcePrediction(path=statics.path, launches_path=described, statics=statics, kernels=())
    module = parse_ptx(statics.unit.ptx, name=str(path))
    launches = () if described is None else read_launches(described, text=launches_text)
    problems: list[Problem] = []
    matched = match_launches(module, launches, kernel, problems)
    launched = {one.function.name for one in matched}
    if launch_number is not None:
        matched = choose_launch(matched, launch_number, described)
    work = _Work(module=module, statics=statics, settings=settings, sinks=tuple(sinks), progress=progress)
    predictions = _predict_all(work, matched, problems)
    undescribed = [
        demangle(entry.name)
        for entry in module.entries
        if entry.name not in launched and (kernel is None or is_named(kernel, entry.name))
    ]
    return SourcePrediction(
        path=statics.path,
        launches_path=described,
        statics=statics,
        kernels=tuple(predictions),
        undescribed=tuple(undescribed),
        problems=tuple(problems),
    )


def match_launches(
    module: PtxModule, launches: Sequence[LaunchDescription], kernel: str | None, problems: list[Problem]
) -> tuple[DescribedLaunch, ...]:
    """The launches of a module's kernels, in their order; one that names no kernel, or several, is a problem."""
    found = []
    for launch in launches:
        functions = [one for one in module.entries if launch.kernel == one.name]
        functions = functions or [one for one in module.entries if is_named(launch.kernel, one.name)]
        if len(functions) != 1:
            problems.append(Problem.from_error(_explain_mismatch(module, launch, functions)))
        elif kernel is None or is_named(kernel, functions[0].name):
            found.append(DescribedLaunch(launch=launch, function=functions[0]))
    return tuple(found)


def choose_launch(
    matched: Sequence[DescribedLaunch], number: int, described: Path | None
) -> tuple[DescribedLaunch, ...]:
    """The launch of a number, from 1.

    Raises:
        InputError: there are not so many.
    """
    if not 1 <= number <= len(matched):
        remedy = f"give a number from 1 to {len(matched)}" if matched else "describe a launch"
        raise InputError(f"there is no launch {number}", path=described, remedy=remedy)
    return (matched[number - 1],)


def _explain_mismatch(module: PtxModule, launch: LaunchDescription, found: Sequence[PtxFunction]) -> InputError:
    place = None if launch.line is None else f"line {launch.line}"
    names = ", ".join(demangle(one.name) for one in (found or module.entries)[:10])
    if found:
        message = f"{launch.kernel} may be any of {names}"
        return InputError(message, path=launch.path, place=place, remedy="write its mangled name")
    message = f"the source has no kernel {launch.kernel}"
    return InputError(message, path=launch.path, place=place, remedy=f"name one of {names}" if names else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What all launches of a source have in common."""

    module: PtxModule
    statics: SourceStatics
    settings: PredictionSettings
    sinks: tuple[TraceSink, ...]
    progress: Progress | None


def _predict_all(work: _Work, matched: Sequence[DescribedLaunch], problems: list[Problem]) -> list[KernelPrediction]:
    by_name = {one.statics.mangled_name: one.statics for one in work.statics.kernels}
    predictions = []
    started_s, most_s = time.monotonic(), work.settings.all_seconds
    for number, one in enumerate(matched):
        if most_s is not None and time.monotonic() - started_s > most_s:
            left = len(matched) - number
            message = f"time was up before {left} of {len(matched)} launches were emulated"
            problems.append(Problem.from_error(GpaError(message)))
            break
        name = demangle(one.function.name)
        if work.progress is not None:
            work.progress(f"emulating {name}", number, len(matched))
        subject = LaunchSubject(
            module=work.module,
            launch=one.launch,
            kernel=one.function.name,
            name=name,
            statics=by_name.get(one.function.name),
            compute_capability=work.statics.unit.compute_capability,
        )
        try:
            predictions.append(predict_launch(subject, work.settings, sinks=work.sinks))
        except GpaError as error:
            problems.append(Problem.from_error(error, kernel=one.function.name))
    return predictions
