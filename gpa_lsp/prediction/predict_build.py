"""From device code that was built to predictions: :func:`predict_build`. No source is needed, and nothing of the file is run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpa_lsp.compiler.builds import read_build
from gpa_lsp.compiler.model import CompiledUnit
from gpa_lsp.emulator.inputs.read_launches import find_launch_file
from gpa_lsp.emulator.launch import LaunchDescription
from gpa_lsp.emulator.model import TraceSink
from gpa_lsp.emulator.ptx.model import PtxModule
from gpa_lsp.emulator.ptx.parse import parse_ptx
from gpa_lsp.errors import Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.machine.products import find_product
from gpa_lsp.prediction.comparing import compare_launches
from gpa_lsp.prediction.launch_sources import EVERY_LAUNCH, LaunchChoice, list_launches
from gpa_lsp.prediction.model import KernelPrediction, SourcePrediction
from gpa_lsp.prediction.predict import (
    DescribedLaunch,
    PredictionWork,
    Progress,
    choose_launches,
    list_undescribed,
    match_launches,
    predict_matched,
)
from gpa_lsp.prediction.settings import DEFAULT_PREDICTION, PredictionSettings
from gpa_lsp.prediction.static_source import SourceStatics, examine_unit
from gpa_lsp.prediction.targets import Capability, note_difference

_MOST_UNITS = 256
"""Units of one architecture whose PTX is read; a library can hold thousands."""
_REMEDY = "build with -lineinfo, or with -gencode arch=compute_XX,code=[sm_XX,compute_XX]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _BuiltModule:
    """A unit with its PTX, parsed."""

    unit: CompiledUnit
    module: PtxModule


@dataclass(frozen=True, slots=True, kw_only=True)
class _BuiltLaunch(DescribedLaunch):
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
        path: an object, library, program, fat binary or cubin with PTX in it.
        kernel: only kernels whose name contains this; None for all.
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
    problems: list[Problem] = []
    built = _read_modules(path, compute_capability, settings.machine, problems)
    matched, unmatched = _match(built, listed.launches, kernel)
    if listed.must_match:
        problems.extend(unmatched)
    chosen = choose_launches(matched, launches, described)
    statics = {place: _examine(built[place], path, kernel) for place in dict.fromkeys(one.place for one in chosen)}
    predictions: list[KernelPrediction] = []
    for place, examined in statics.items():
        work = PredictionWork(
            module=built[place].module, statics=examined, settings=settings, sinks=tuple(sinks), progress=progress
        )
        predictions += predict_matched(work, [one for one in chosen if one.place == place], problems)
    launched = {one.function.name for one in matched}
    undescribed = dict.fromkeys(name for one in built for name in list_undescribed(one.module, launched, kernel))
    return SourcePrediction(
        path=path,
        launches_path=described,
        statics=next(iter(statics.values()), None) or _examine(built[0], path, kernel),
        kernels=tuple(predictions),
        undescribed=tuple(undescribed),
        problems=tuple(problems),
        comparisons=compare_launches(predictions),
    )


def _read_modules(
    path: Path, wanted: Capability | None, machine: str | None, problems: list[Problem]
) -> list[_BuiltModule]:
    """The units of one architecture."""
    product = None if machine is None else find_product(machine)
    units = read_build(path, compute_capability=wanted)
    known = sorted({unit.compute_capability for unit in units if unit.ptx is not None})
    if not known:
        why = next((note for unit in units for note in unit.notes), "there is no PTX in it")
        raise UnsupportedInputError(why, path=path, remedy=_REMEDY)
    exact = product is not None and product.compute_capability in known
    chosen = product.compute_capability if product is not None and exact else known[-1]
    left = [unit for unit in units if unit.ptx is not None and unit.compute_capability == chosen]
    if len(left) > _MOST_UNITS:
        message = f"only {_MOST_UNITS:,} of its {len(left):,} units were looked at"
        problems.append(Problem(severity=ProblemSeverity.WARNING, message=message, path=path))
    notes = () if product is None else note_difference(product, chosen)
    problems.extend(Problem(severity=ProblemSeverity.NOTE, message=note) for note in notes)
    return [
        _BuiltModule(unit=unit, module=parse_ptx(unit.ptx or "", name=f"the PTX of {path.name}"))
        for unit in left[:_MOST_UNITS]
    ]


def _match(
    built: Sequence[_BuiltModule], launches: Sequence[LaunchDescription], kernel: str | None
) -> tuple[list[_BuiltLaunch], list[Problem]]:
    """Each launch with the first module that has its kernel, and what is wrong with those that none has."""
    found: list[_BuiltLaunch] = []
    problems: list[Problem] = []
    for launch in launches:
        met: list[Problem] = []
        for place, one in enumerate(built):
            matched = match_launches(one.module, (launch,), None, met)
            if matched:
                if kernel is None or match_launches(one.module, (launch,), kernel, []):
                    found.append(_BuiltLaunch(place=place, launch=launch, function=matched[0].function))
                met = []
                break
        problems.extend(met[:1])
    return found, problems


def _examine(built: _BuiltModule, path: Path, kernel: str | None) -> SourceStatics:
    """What its image says; without one, nothing."""
    return examine_unit(built.unit, path=path.absolute(), text="", kernel=kernel)
