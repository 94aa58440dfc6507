"""From device code that was built to predictions: :func:`predict_build`. No source is needed, and nothing of the file is run."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from gpa_lsp.execution.emulator.model import TraceSink
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import find_launch_file
from gpa_lsp.execution.prediction.built_modules import BuiltModule, examine_built, read_modules
from gpa_lsp.execution.prediction.comparing import compare_launches
from gpa_lsp.execution.prediction.launch_sources import EVERY_LAUNCH, LaunchChoice, list_launches
from gpa_lsp.execution.prediction.model import (
    DEFAULT_PREDICTION,
    KernelPrediction,
    PredictionSettings,
    SourcePrediction,
)
from gpa_lsp.execution.prediction.predict import (
    DescribedLaunch,
    PredictionWork,
    Progress,
    choose_launches,
    list_undescribed,
    match_launches,
    name_meant,
    predict_matched,
)
from gpa_lsp.execution.prediction.targets import Capability
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.gpu.device.products import note_choice


class _BuiltLaunch(DescribedLaunch, frozen=True, kw_only=True):
    """A launch with the place of the module that has its kernel."""

    place: int


def predict_build(
    path: Path,
    *,
    kernel: str | None = None,
    launches: LaunchChoice = EVERY_LAUNCH,
    compute_capability: Capability | None = None,
    settings: PredictionSettings = DEFAULT_PREDICTION,
    sinks: Iterable[TraceSink] = (),
    progress: Progress | None = None,
) -> SourcePrediction:
    """Take the PTX out of a file that was built, and emulate the launches that are described of its kernels.

    Args:
        path: an object, library, program, fat binary or cubin with PTX in it, or a file of PTX.
        kernel: only the kernel of this name, or else those whose name contains it; None for all.
        launches: which ones, of those kernels.
        compute_capability: code for this one; None for that of the GPU in the settings where there is code for it, else the newest.
        settings: for which GPU, and how much it may cost.
        sinks: get the traces as well, of one launch after the other.
        progress: told how far it is.

    Raises:
        InputError: the file cannot be read, has no device code or no PTX; the description or the profile cannot be read; no GPU has the name.
        MissingToolError: the file needs NVIDIA's cuobjdump, which is not installed.
        ToolError: cuobjdump failed.
    """
    described = launches.path or find_launch_file(path)
    listed = list_launches(described, launches)
    problems = [Problem.note(note) for note in note_choice(settings.machine)]
    built = read_modules(path, compute_capability, settings.machine, problems, kernel=kernel)
    meant = name_meant((one.module for one in built), kernel)
    matched, unmatched = _match(built, listed.launches, meant)
    if listed.must_match:
        problems.extend(unmatched)
    chosen = choose_launches(matched, launches, described)
    statics = {place: examine_built(built[place], path, kernel) for place in dict.fromkeys(one.place for one in chosen)}
    predictions: list[KernelPrediction] = []
    for place, examined in statics.items():
        work = PredictionWork(
            module=built[place].module, statics=examined, settings=settings, sinks=tuple(sinks), progress=progress
        )
        predictions += predict_matched(work, [one for one in chosen if one.place == place], problems)
    launched = {one.function.name for one in matched}
    undescribed = dict.fromkeys(name for one in built for name in list_undescribed(one.module, launched, meant))
    return SourcePrediction(
        path=path,
        launches_path=described,
        statics=next(iter(statics.values()), None) or examine_built(built[0], path, kernel),
        kernels=tuple(predictions),
        undescribed=tuple(undescribed),
        problems=tuple(problems),
        comparisons=compare_launches(predictions),
    )


def _match(
    built: Sequence[BuiltModule], launches: Sequence[LaunchDescription], meant: Collection[str] | None
) -> tuple[list[_BuiltLaunch], list[Problem]]:
    """Each launch with the first module that has its kernel, and what is wrong with those that none has."""
    found: list[_BuiltLaunch] = []
    problems: list[Problem] = []
    for launch in launches:
        named = name_meant((one.module for one in built), launch.kernel) or ()
        places = [place for place, one in enumerate(built) if any(entry.name in named for entry in one.module.entries)]
        met: list[Problem] = []
        for place in places or range(min(1, len(built))):
            matched = match_launches(built[place].module, (launch,), None, met)
            if matched:
                if meant is None or matched[0].function.name in meant:
                    found.append(_BuiltLaunch(place=place, launch=launch, function=matched[0].function))
                met = []
                break
        problems.extend(met[:1])
    return found, problems
