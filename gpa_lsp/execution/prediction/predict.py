"""From a source, or device code that was built, to predictions: :func:`predict_source`. Computes nothing itself."""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.compiler.model import DEFAULT_COMPUTE_CAPABILITY, DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.execution.emulator.model import TraceSink
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import find_launch_file
from gpa_lsp.execution.prediction.built_modules import BuiltModule, examine_built, read_modules
from gpa_lsp.execution.prediction.launch_sources import (
    EVERY_LAUNCH,
    LaunchChoice,
    choose_launches,
    explain_mismatch,
    list_launches,
)
from gpa_lsp.execution.prediction.model import (
    DEFAULT_PREDICTION,
    KernelPrediction,
    LaunchComparison,
    PredictionSettings,
    SourcePrediction,
)
from gpa_lsp.execution.prediction.predict_launch import LaunchSubject, predict_launch
from gpa_lsp.execution.prediction.static_source import (
    Capability,
    SourceStatics,
    choose_product,
    choose_volume_device,
    examine_for_machine,
)
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
from gpa_lsp.kernel.names import demangle, list_named

Progress = Callable[[str, int, int], None]  # Told (what, done, total)


class DescribedLaunch(Struct, frozen=True, kw_only=True):
    """A launch and the kernel it is of."""

    launch: LaunchDescription
    function: PtxFunction


def name_kernel(one: DescribedLaunch) -> str:
    """Mangled name of the kernel of a launch."""
    return one.function.name


class PredictionWork(Struct, frozen=True, kw_only=True):
    """What all launches of a module have in common."""

    module: PtxModule  # the code
    statics: SourceStatics  # what it says without being run
    settings: PredictionSettings  # how much it may cost
    sinks: tuple[TraceSink, ...]  # get the traces as well
    progress: Progress | None  # told how far it is


def predict_source(
    path: Path,
    *,
    text: str | None = None,
    kernel: str | None = None,
    launches: LaunchChoice = EVERY_LAUNCH,
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
        kernel: only the kernel of this name, or else those whose name contains it; None for all.
        launches: which ones, of those kernels.
        compute_capability: to compile for; None for that of the GPU named in the settings, or the oldest newer one that the compiler knows; where
            none is named as in :func:`~gpa_lsp.execution.prediction.static_source.examine_source`.
        settings: for which GPU, and how much it may cost.
        compile_settings: of the compiler.
        sinks: get the traces as well, of one launch after the other.
        progress: told how far it is.

    Returns:
        The prediction. A launch that cannot be run becomes a problem, and the others go on; a source with errors gives its messages alone.

    Raises:
        InputError: the source, the description or the profile cannot be read, or no GPU has the name.
        MissingToolError: no compiler is installed.
        ToolError: the compiler did not end in time, or crashed.
    """
    examined = examine_for_machine(
        path,
        text=text,
        kernel=kernel,
        machine=settings.machine,
        compute_capability=compute_capability,
        settings=compile_settings,
    )
    statics = examined.statics
    described = launches.path or find_launch_file(statics.path)
    if statics.unit.ptx is None:
        return SourcePrediction(path=statics.path, launches_path=described, statics=statics, kernels=())
    module = parse_ptx(statics.unit.ptx, name=str(path))
    problems = [Problem.note(note) for note in examined.notes]
    work = PredictionWork(module=module, statics=statics, settings=settings, sinks=tuple(sinks), progress=progress)
    return _predict_module(work, described, launches, kernel, problems)


def _predict_module(
    work: PredictionWork, described: Path | None, choice: LaunchChoice, kernel: str | None, problems: list[Problem]
) -> SourcePrediction:
    listed = list_launches(described, choice)
    meant = name_meant((work.module,), kernel)
    matched = match_launches(work.module, listed.launches, meant, problems if listed.must_match else [])
    predictions = predict_matched(work, choose_launches(matched, choice, described, name_kernel), problems)
    launched = {one.function.name for one in matched}
    return SourcePrediction(
        path=work.statics.path,
        launches_path=described,
        statics=work.statics,
        kernels=tuple(predictions),
        undescribed=list_undescribed(work.module, launched, meant),
        problems=tuple(problems),
        comparisons=compare_launches(predictions),
    )


def name_meant(modules: Iterable[PtxModule], kernel: str | None) -> frozenset[str] | None:
    """Mangled names of the kernels that a name, or a part of one, means; None for all."""
    if kernel is None:
        return None
    names = dict.fromkeys(entry.name for module in modules for entry in module.entries)
    return frozenset(list_named(kernel, names, lambda name: (name,)))


def list_undescribed(module: PtxModule, launched: Collection[str], meant: Collection[str] | None) -> tuple[str, ...]:
    """Readable names of the kernels that are meant and of which no launch is known."""
    return tuple(
        demangle(entry.name)
        for entry in module.entries
        if entry.name not in launched and (meant is None or entry.name in meant)
    )


def match_launches(
    module: PtxModule, launches: Sequence[LaunchDescription], meant: Collection[str] | None, problems: list[Problem]
) -> tuple[DescribedLaunch, ...]:
    """The launches of a module's kernels, in their order; one that names no kernel, or several, is a problem.

    Args:
        module: the code.
        launches: of its kernels, by any of their names.
        meant: mangled names of the kernels whose launches are wanted; None for all.
        problems: what does not match is added to it.
    """
    found = []
    for launch in launches:
        functions = list_named(launch.kernel, module.entries, lambda one: (one.name,))
        if len(functions) != 1:
            known = [one.name for one in module.entries]
            problems.append(Problem.from_error(explain_mismatch(launch, [one.name for one in functions], known)))
        elif meant is None or functions[0].name in meant:
            found.append(DescribedLaunch(launch=launch, function=functions[0]))
    return tuple(found)


def predict_matched(
    work: PredictionWork, matched: Sequence[DescribedLaunch], problems: list[Problem]
) -> list[KernelPrediction]:
    """Each launch in turn; one that cannot be run becomes a problem."""
    by_name = {one.statics.mangled_name: one.statics for one in work.statics.kernels}
    predictions = []
    started_s, most_s = work_time(), work.settings.all_seconds
    for number, one in enumerate(matched):
        if most_s is not None and work_time() - started_s > most_s:
            left = len(matched) - number
            message = f"time ran out before {format_count(left)} of {format_count(len(matched))} launches were emulated"
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
        with spare_others(f"predicting a launch of {name}", problems, kernel=one.function.name):
            predictions.append(predict_launch(subject, work.settings, sinks=work.sinks))
    return predictions


_ORIGIN = "emulated"


def compare_launches(predictions: Sequence[KernelPrediction]) -> tuple[LaunchComparison, ...]:
    """One comparison for each kernel of which several launches were traced, in their order."""
    groups: dict[str, list[KernelPrediction]] = {}
    for one in predictions:
        if one.measures:
            groups.setdefault(one.mangled_name, []).append(one)
    return tuple(_compare_members(members) for members in groups.values() if len(members) > 1)


def _compare_members(members: Sequence[KernelPrediction]) -> LaunchComparison:
    spreads = spread_listed([one.measures for one in members])
    answer = answer_launches(spreads, len(members), _ORIGIN)
    chart = scatter_volumes([one.measured_volumes for one in members if one.measured_volumes is not None])
    return LaunchComparison(
        mangled_name=members[0].mangled_name,
        name=members[0].name,
        launches=len(members),
        spreads=spreads,
        answer=answer if chart is None else replace(answer, charts=(*answer.charts, chart)),
    )


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
    chosen = choose_launches(matched, launches, described, name_kernel)
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
