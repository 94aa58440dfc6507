"""Code of a source, a build or a report, with its chosen launches: :func:`read_launched`."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompiledUnit, CompileSettings
from gpa_lsp.execution.compiler.ptx_files import build_unit
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import explain_undescribed, find_launch_file, read_launches
from gpa_lsp.execution.prediction.built_modules import read_modules
from gpa_lsp.execution.prediction.input_kinds import InputKind, find_kind
from gpa_lsp.execution.prediction.launch_sources import (
    EVERY_LAUNCH,
    LaunchChoice,
    MeasuredLaunch,
    choose_launches,
    explain_mismatch,
    explain_no_code,
    list_launches,
    list_measured_launches,
    miss_kernel,
)
from gpa_lsp.execution.prediction.static_source import (
    Capability,
    ExaminedSource,
    SourceStatics,
    examine_for_machine,
    examine_unit,
    require_ptx,
)
from gpa_lsp.foundation.errors import InputError, Problem, ProblemSeverity
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.device.products import note_choice
from gpa_lsp.kernel.names import demangle, list_named, shorten_name
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.read import read_profile


class CodeModule:
    """PTX, its unit, and static findings, which are found when they are first asked for."""

    def __init__(self, unit: CompiledUnit, module: PtxModule, examine: Callable[[], SourceStatics]) -> None:
        self.unit = unit
        self.module = module
        self._examine = examine

    @cached_property
    def statics(self) -> SourceStatics:
        """Static findings of the code."""
        return self._examine()


class MeasuredPlace(ColumnRecord, frozen=True, kw_only=True):
    """A launch of a report."""

    profile: Profile
    launch: MeasuredLaunch


class KernelLaunch(ColumnRecord, frozen=True, kw_only=True):
    """A launch and the kernel it is of."""

    launch: LaunchDescription
    function: PtxFunction
    code: CodeModule
    measured: MeasuredPlace | None = None  # the same as it was measured, where the code is a report's


def name_kernel(one: KernelLaunch) -> str:
    """Mangled name of the kernel of a launch."""
    return one.function.name


class LaunchedCode(ColumnRecord, frozen=True, kw_only=True):
    """Code that was read, and its launches."""

    path: Path  # of the code; of a source absolute
    described: Path | None  # the description of the launches; None without one
    modules: tuple[CodeModule, ...]  # none of a source with errors
    launches: tuple[KernelLaunch, ...]  # chosen ones
    undescribed: tuple[str, ...]  # mangled names of the chosen kernels without a known launch
    examine: Callable[[], SourceStatics]

    @property
    def statics(self) -> SourceStatics:
        """Static findings of the code of the first launch, or of the first module without one."""
        return self.examine()


class CodeChoice(Struct, frozen=True, kw_only=True):
    """Choice of code, and of its launches."""

    kernel: str | None = None  # only the kernel of this name, or else those whose name contains it; None for all
    launches: LaunchChoice = EVERY_LAUNCH  # of those kernels
    text: str | None = None  # what an editor holds of the source; None to read the file
    machine: str | None = None  # name of the GPU; None for none in particular
    # to compile for, or to take out of a build; None for that of the GPU, else for what the compile command says or the newest there is
    compute_capability: Capability | None = None
    compile_settings: CompileSettings = DEFAULT_SETTINGS
    # code that was built for later ones is taken only where there is no other; None for no such limit
    newest: Capability | None = None
    assembles: bool = True  # PTX without an image gets one, for registers and static findings
    must_compile: bool = True  # errors of a source are raised; else they stand in its statics


def read_launched(path: Path, choice: CodeChoice, problems: list[Problem]) -> LaunchedCode:
    """Compile or read the code, and find the launches.

    Args:
        path: a source, something that was built (object, library, program, fat binary, cubin or PTX), or a report.
        choice: of kernels and launches.
        problems: notes and warnings for the reader are added to it.

    Raises:
        InputError: the code, its description or the profile cannot be read or holds no PTX, or the chosen launches are not there.
        MissingToolError: no compiler is installed, or a build needs NVIDIA's cuobjdump, which is not.
        ToolError: one of them failed, or did not end in time.
    """
    kind = InputKind.SOURCE if choice.text is not None else find_kind(path)
    if kind is InputKind.REPORT:
        return _read_report(path, choice, problems)
    if kind is InputKind.BUILD:
        return match_code(path, read_code(path, choice, problems), choice, problems)
    examined = _examine(path, choice)
    statics = examined.statics
    if statics.unit.ptx is None and not choice.must_compile:
        described = choice.launches.path or find_launch_file(statics.path)
        return LaunchedCode(
            path=statics.path, described=described, modules=(), launches=(), undescribed=(), examine=lambda: statics
        )
    problems += map(Problem.note, examined.notes)
    return match_code(statics.path, (_make_source(path, statics),), choice, problems)


def read_code(path: Path, choice: CodeChoice, problems: list[Problem]) -> tuple[CodeModule, ...]:
    """A source, or what was built, without its launches; see :func:`read_launched`."""
    if choice.text is not None or find_kind(path) is InputKind.SOURCE:
        return (_make_source(path, _examine(path, choice).statics),)
    problems += map(Problem.note, note_choice(choice.machine))
    built = read_modules(
        path,
        choice.compute_capability,
        choice.machine,
        problems,
        assembles=choice.assembles,
        kernel=choice.kernel,
        newest=choice.newest,
    )
    examine = partial(examine_unit, path=path.absolute(), text="", kernel=choice.kernel)
    return tuple(CodeModule(unit, module, partial(examine, unit, module=module)) for unit, module in built)


def _examine(path: Path, choice: CodeChoice) -> ExaminedSource:
    return examine_for_machine(
        path,
        text=choice.text,
        kernel=choice.kernel,
        machine=choice.machine,
        compute_capability=choice.compute_capability,
        settings=choice.compile_settings,
    )


def _make_source(path: Path, statics: SourceStatics) -> CodeModule:
    return CodeModule(statics.unit, parse_ptx(require_ptx(statics, path), name=str(path)), lambda: statics)


def match_code(path: Path, modules: Sequence[CodeModule], choice: CodeChoice, problems: list[Problem]) -> LaunchedCode:
    """The launches of code that was read already; see :func:`read_launched`."""
    described = choice.launches.path or find_launch_file(path)
    listed = list_launches(described, choice.launches)
    meant = name_meant((one.module for one in modules), choice.kernel)
    matched, unmatched = match_launches(modules, listed.launches, meant)
    if listed.must_match:
        problems += unmatched
    chosen = choose_launches(matched, choice.launches, described, name_kernel)
    launched = {one.function.name for one in matched}
    undescribed = dict.fromkeys(
        entry.name
        for one in modules
        for entry in one.module.entries
        if entry.name not in launched and (meant is None or entry.name in meant)
    )
    first = chosen[0].code if chosen else modules[0]
    return LaunchedCode(
        path=path,
        described=described,
        modules=tuple(modules),
        launches=chosen,
        undescribed=tuple(undescribed),
        examine=lambda: first.statics,
    )


def _read_report(path: Path, choice: CodeChoice, problems: list[Problem]) -> LaunchedCode:
    """The kernels of a report, with its launches; equal ones count once, and only those with described arguments are launched."""
    profile = read_profile(path)
    described = choice.launches.path or find_launch_file(path)
    given = () if described is None else read_launches(described, text=choice.launches.text)
    problems += map(Problem.note, note_choice(choice.machine))
    found = list_measured_launches(profile, choice.kernel, given, problems)
    if not found:
        raise explain_no_code(path, problems)
    absolute, modules = (profile.path or Path()).absolute(), dict[str, CodeModule]()
    for one in found:
        cubin, name = one.code.cubin, one.launch.mangled_name
        unit = build_unit(cubin, one.code.unit.text, cubin.sm)
        examine = partial(examine_unit, unit, path=absolute, text="", kernel=name)
        modules.setdefault(name, CodeModule(unit, one.code.module, examine))
    launches = [
        KernelLaunch(
            launch=one.description,
            function=one.code.function,
            code=modules[one.launch.mangled_name],
            measured=MeasuredPlace(profile=profile, launch=one),
        )
        for one in found
        if one.is_described
    ]
    chosen = choose_launches(launches, choice.launches, described, name_kernel)
    first = chosen[0].code if chosen else modules[found[0].launch.mangled_name]
    return LaunchedCode(
        path=path,
        described=described,
        modules=tuple(modules.values()),
        launches=chosen,
        undescribed=tuple(dict.fromkeys(one.launch.mangled_name for one in found if not one.is_described)),
        examine=lambda: first.statics,
    )


def name_meant(modules: Iterable[PtxModule], kernel: str | None) -> frozenset[str] | None:
    """Mangled names of the kernels that a name, or a part of one, means; None for all."""
    if kernel is None:
        return None
    names = dict.fromkeys(entry.name for module in modules for entry in module.entries)
    return frozenset(list_named(kernel, names, lambda name: (name,)))


def match_launches(
    modules: Sequence[CodeModule], launches: Sequence[LaunchDescription], meant: Collection[str] | None
) -> tuple[list[KernelLaunch], list[Problem]]:
    """Each launch, in order, with the first module that has its kernel, and a problem for each that names no kernel, or several.

    Args:
        meant: mangled names of the kernels whose launches are wanted; None for all.
    """
    found: list[KernelLaunch] = []
    problems: list[Problem] = []
    for launch in launches:
        named = name_meant((one.module for one in modules), launch.kernel) or ()
        holding = [one for one in modules if any(entry.name in named for entry in one.module.entries)]
        wrong: InputError | None = None
        for code in holding or modules[:1]:
            functions = list_named(launch.kernel, code.module.entries, lambda one: (one.name,))
            if len(functions) == 1:
                if meant is None or functions[0].name in meant:
                    found.append(KernelLaunch(launch=launch, function=functions[0], code=code))
                wrong = None
                break
            known = [one.name for one in code.module.entries]
            wrong = wrong or explain_mismatch(launch, [one.name for one in functions], known)
        if wrong is not None:
            problems.append(Problem.from_error(wrong))
    return found, problems


def explain_no_launch(path: Path, code: LaunchedCode, problems: Sequence[Problem], kernel: str | None) -> InputError:
    """Error for code without a chosen launch: the fault of a described one, or that none is described.

    Args:
        kernel: name, or part of one, that was asked for; None for all.
    """
    wrong = next((one for one in problems if one.severity is ProblemSeverity.ERROR), None)
    if wrong is not None:
        return InputError(wrong.message, path=code.described or path, place=wrong.place, remedy=wrong.remedy)
    if not code.undescribed and kernel is not None:
        return miss_kernel(kernel, [entry.name for one in code.modules for entry in one.module.entries], path)
    names = () if code.described is None else [shorten_name(demangle(one)) for one in code.undescribed]
    return explain_undescribed(path, names, code.described)
