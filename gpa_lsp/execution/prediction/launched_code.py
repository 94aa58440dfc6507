"""Code of a source, a build or a report: its PTX, parsed (:func:`read_modules`), with its chosen launches (:func:`read_launched`)."""

import re
import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import Symbols
from gpa_lsp.code.binary.elf import NO_BITS, Attribute, ElfImage, read_elf, walk_records
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable, Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompiledUnit, CompileSettings
from gpa_lsp.execution.compiler.ptx_files import ChooseEntries, assemble_ptx, build_unit, read_build
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import explain_undescribed, find_launch_file, read_launches
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
    note_difference,
    require_ptx,
)
from gpa_lsp.foundation.errors import (
    InputError,
    MissingToolError,
    Problem,
    ProblemSeverity,
    ToolError,
    UnsupportedInputError,
)
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.device.products import Product, find_product, note_choice
from gpa_lsp.kernel.names import choose_by_name, demangle, list_named, shorten_name
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.read import read_profile

_MOST_UNITS = 256  # Units of one architecture whose PTX is read; a library can hold thousands
CODE_REMEDY = "build with -gencode arch=compute_XX,code=sm_XX for the architecture of the GPU"
_REMEDY = "build with -lineinfo, or with -gencode arch=compute_XX,code=[sm_XX,compute_XX]"


def read_modules(
    path: Path,
    wanted: Capability | None,
    machine: str | None,
    problems: list[Problem],
    *,
    assembles: bool = True,
    kernel: str | None = None,
    newest: Capability | None = None,
) -> list[tuple[CompiledUnit, PtxModule]]:
    """The units of one architecture that have PTX, with it.

    Args:
        path: as for :func:`~gpa_lsp.execution.compiler.ptx_files.read_build`.
        wanted: code for this compute capability; None for that of the GPU, where there is such code, else for the newest.
        machine: name of the GPU; None for none.
        problems: notes and warnings for the reader are added to it.
        assembles: as for :func:`~gpa_lsp.execution.compiler.ptx_files.read_build`.
        kernel: the name, or part of it, of those that an image is assembled for; None for all.
        newest: code for later compute capabilities is taken only where there is no other; None for no such limit.

    Raises:
        InputError: the file cannot be read or has no PTX, or no GPU has the name.
        MissingToolError: the file needs NVIDIA's cuobjdump, which is not installed.
        ToolError: cuobjdump failed.
    """
    product = None if machine is None else find_product(machine)
    units = read_build(path, compute_capability=wanted, assembles=assembles, choose_entries=choose_by_name(kernel))
    known = sorted({unit.compute_capability for unit in units if unit.ptx is not None})
    known = [one for one in known if newest is None or one <= newest] or known
    if not known:
        why = next((note for unit in units for note in unit.notes), "there is no PTX in it")
        raise UnsupportedInputError(why, path=path, remedy=_REMEDY)
    exact = product is not None and product.compute_capability in known
    chosen = product.compute_capability if product is not None and exact else known[-1]
    left = [unit for unit in units if unit.ptx is not None and unit.compute_capability == chosen]
    if len(left) > _MOST_UNITS:
        message = f"only {format_count(_MOST_UNITS)} of its {format_count(len(left))} units were read"
        problems.append(Problem.warning(message, path=path))
    notes = () if product is None else note_difference(product, chosen)
    problems.extend(Problem.note(note) for note in notes)
    return [(unit, parse_ptx(unit.ptx or "", name=f"the PTX of {path.name}")) for unit in left[:_MOST_UNITS]]


def assemble_units(
    units: Sequence[CompiledUnit], product: Product | None, choose_entries: ChooseEntries | None
) -> tuple[CompiledUnit, ...]:
    """The units; where none has machine code for the GPU, with that of the newest PTX it can run.

    Args:
        product: the GPU; None for the one the code is for.
        choose_entries: chooses kernels; None for all.

    Raises:
        MissingToolError: ptxas is not installed.
        ToolError: it failed.
    """
    if product is None:
        most = max((one.compute_capability for one in units), default=(0, 0))
    else:
        most = product.compute_capability
    if any(one.cubin is not None and (product is None or one.compute_capability[0] == most[0]) for one in units):
        return tuple(units)
    texts = [one for one in units if one.ptx is not None and one.compute_capability <= most]
    newest = max((one.compute_capability for one in texts), default=most)
    made = [_assemble(one, most, choose_entries) for one in texts if one.compute_capability == newest]
    return (*units, *made)


def _assemble(unit: CompiledUnit, capability: tuple[int, int], choose_entries: ChooseEntries | None) -> CompiledUnit:
    if find_tool("ptxas") is None:
        raise MissingToolError("ptxas", needed_for="machine code of PTX", install="pip install nvidia-cuda-nvcc")
    image, notes = assemble_ptx(unit.ptx or "", f"sm_{capability[0]}{capability[1]}", choose_entries)
    if image is None:
        raise ToolError("ptxas", "; ".join(notes))
    return replace(unit, cubin=image, compute_capability=capability)


def choose_units(units: Sequence[CompiledUnit], product: Product, path: Path) -> tuple[CompiledUnit, ...]:
    """Choose code that a GPU executes: its own, else the newest of an earlier one of its generation.

    Raises:
        InputError: there is none.
    """
    major, minor = product.compute_capability
    known = {one.compute_capability for one in units if one.cubin is not None}
    fitting = [one for one in known if one[0] == major and one[1] <= minor]
    if not fitting:
        there = ", ".join(f"sm_{one[0]}{one[1]}" for one in sorted(known)) or "no architecture"
        message = f"there is machine code for {there}, and none that the {product.name} executes (sm_{major}{minor})"
        raise InputError(message, path=path, remedy=CODE_REMEDY)
    return tuple(one for one in units if one.compute_capability == max(fitting))


_PARAMETER = struct.Struct("<IHHI")
_SIZE_SHIFT = 18
_ADDRESS_BYTES = 8
_VARIABLES = re.compile(r"\.nv\.(?:(?P<global>global(?:\.init)?)|constant3)(?:\..*)?")


def read_image_module(cubin: Cubin, kernels: Iterable[str]) -> PtxModule:
    """A module with kernels' parameters and the image's variables, as far as a launch needs them: sizes, offsets and initial values.

    Returns:
        Kernels without instructions, whose types are bytes.

    Raises:
        InputError: the image is damaged.
    """
    elf = read_elf(cubin.image, path=cubin.path)
    sections = {name: elf.find_section(f".nv.info.{name}") for name in kernels}
    return PtxModule(
        name="the image",
        version=(0, 0),
        target=f"sm_{cubin.sm}",
        files={},
        functions={
            name: PtxFunction(
                name=name,
                is_entry=True,
                parameters=_read_parameters(elf, section),
                returns=(),
                registers=(),
                register_names=(),
                instructions=(),
            )
            for name, section in sections.items()
            if section is not None
        },
        variables=_read_variables(elf),
        text="",
    )


def _read_parameters(elf: ElfImage, section: int) -> tuple[PtxVariable, ...]:
    found: dict[int, PtxVariable] = {}
    for attribute, _, payload in walk_records(elf.section_bytes(section), path=elf.path, place=elf.place(section)):
        if attribute == Attribute.PARAMETER and len(payload) >= _PARAMETER.size:
            _, number, offset, bits = _PARAMETER.unpack_from(payload)
            found[number] = _make_variable(f"parameter {number}", Space.PARAM, bits >> _SIZE_SHIFT, offset_bytes=offset)
    return tuple(found[number] for number in sorted(found))


def _make_variable(
    name: str,
    space: Space,
    size_bytes: int,
    *,
    offset_bytes: int = 0,
    initial: bytes | None = None,
    initial_symbols: tuple[tuple[int, str, int], ...] = (),
) -> PtxVariable:
    return PtxVariable(
        name=name,
        space=space,
        type=ScalarType.B8,
        count=size_bytes,
        alignment_bytes=1,
        offset_bytes=offset_bytes,
        initial=initial,
        initial_symbols=initial_symbols,
    )


def _read_variables(elf: ElfImage) -> dict[str, PtxVariable]:
    """Variables in global and in constant memory, by their symbols."""
    symbols = Symbols.of(elf)
    objects = symbols.group_by_section()
    found: dict[str, PtxVariable] = {}
    for section, name in enumerate(elf.section_names):
        kind = _VARIABLES.fullmatch(name)
        if kind is None:
            continue
        space = Space.GLOBAL if kind["global"] else Space.CONST
        content = None if elf.sections[section]["type"] == NO_BITS else elf.section_bytes(section)
        addresses = _list_addresses(elf, symbols, section, content or b"")
        for number in objects.get(section, ()):
            start, size = int(symbols.table[number]["value"]), int(symbols.table[number]["size"])
            own = symbols.name(number)
            within = [(at - start, *rest) for at, rest in addresses.items() if start <= at <= start + size - 8]
            initial = None if content is None else content[start : start + size]
            found[own] = _make_variable(own, space, size, initial=initial, initial_symbols=tuple(within))
    return found


def _list_addresses(elf: ElfImage, symbols: Symbols, section: int, content: bytes) -> dict[int, tuple[str, int]]:
    """Offset in a section of each address of a variable → the variable's name and the addend."""
    found: dict[int, tuple[str, int]] = {}
    for row in elf.read_relocations(section):
        offset, number = int(row["offset"]), int(row["symbol"])
        if number < len(symbols.table):
            written = int.from_bytes(content[offset : offset + _ADDRESS_BYTES], "little")
            found[offset] = symbols.name(number), int(row["addend"]) or written
    return found


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
