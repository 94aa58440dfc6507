"""From a report, a build or a source to simulated launches: :func:`simulate_path`. Nothing in what comes out was measured."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from math import prod
from pathlib import Path

from gpa_lsp.arch.lookup import find_architecture
from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.basis.errors import InputError, Problem, ProblemSeverity, spare_others
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_count_of
from gpa_lsp.binary.cubin import read_cubin
from gpa_lsp.binary.embedded_ptx import read_embedded_ptx
from gpa_lsp.compiler.builds import read_build
from gpa_lsp.compiler.model import CompiledUnit
from gpa_lsp.compiler.settings import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.device.counters import read_attribute
from gpa_lsp.device.find import find_machine, find_machine_by_name
from gpa_lsp.device.model import Machine
from gpa_lsp.device.products import Product, find_product, find_product_of
from gpa_lsp.hybrid.estimate import CompiledKernel, PaperEstimate, estimate_launch
from gpa_lsp.launches.launch import ArrayArgument, LaunchDescription
from gpa_lsp.launches.read_launches import find_launch_file, read_launches
from gpa_lsp.prediction.image_module import read_image_module
from gpa_lsp.prediction.machines import choose_product
from gpa_lsp.prediction.targets import examine_for_machine, note_difference
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile
from gpa_lsp.ptx.model import PtxModule
from gpa_lsp.ptx.parse import parse_ptx
from gpa_lsp.report.names import demangle, list_named, shorten_name
from gpa_lsp.rows.join import join_profile
from gpa_lsp.rows.model import Kernel
from gpa_lsp.rows.unmeasured import list_unmeasured_kernels
from gpa_lsp.simulator.machine import MemoryFacts
from gpa_lsp.simulator.profile_document import DocumentLaunch
from gpa_lsp.simulator.simulate import find_places, simulate_kernel
from gpa_lsp.simulator.traffic import list_mates
from gpa_lsp.simulator.walk_kernel import WalkSettings, find_registers, find_shared_bytes, walk_kernel
from gpa_lsp.simulator.warp_walk import KernelWalk

Progress = Callable[[str, int, int], None]

_CARVEOUT = "launch__shared_mem_config_size"
_MOST_NAMES, _LONGEST_NAME = 10, 200
_MOST_WALKED = 12
"""Blocks of a launch that are walked at most."""
_LAST_TRY = 3
"""Times as much may be used for one block alone."""
_PTX_REMEDY = "build with -lineinfo, so that the image keeps its PTX"
_CODE_REMEDY = "build with -gencode arch=compute_XX,code=sm_XX for the architecture of the GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """How much a simulation may cost.

    Attributes:
        machine: name of the GPU; None for that of the report, or the first known of the code's architecture.
        seconds: for walking blocks of a launch; where they do not suffice, fewer blocks are tried, twice.
        total_seconds: for walking blocks of all launches together; those for which nothing is left are not simulated. None for no such limit.
        memory_bytes: for the arrays of a launch.
        executions: warp instructions that are walked at most, of one block alone three times as many; their walks are kept in memory.
        is_paper: estimate as the hybrid paper does: a time from loop bounds and branches, without executing anything and without samples.
    """

    machine: str | None = None
    seconds: float = 20.0
    total_seconds: float | None = None
    memory_bytes: int = 8 << 30
    executions: int = 12_000_000
    is_paper: bool = False


DEFAULT_SIMULATION = SimulationSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What was simulated.

    Attributes:
        launches: in the order of the description.
        estimates: in the same order, of the hybrid paper's own model, where that was asked for; there are no launches then.
        problems: what could not be, and why.
    """

    launches: tuple[DocumentLaunch, ...] = field(repr=False)
    estimates: tuple["EstimatedLaunch", ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedLaunch:
    """A launch and the time that the hybrid paper's model gives it.

    Attributes:
        name: of the kernel, for people.
        estimate: what the model says.
        machine: the GPU.
    """

    name: str
    estimate: PaperEstimate
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a launch is simulated."""

    machine: Machine
    memory: MemoryFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """A kernel, the PTX that there is of it, and where each of its launches is simulated."""

    kernel: Kernel
    ptx: tuple[str, ...]
    find_place: Callable[[LaunchDescription], _Place]


def simulate_report(
    path: Path,
    *,
    kernel: str | None = None,
    launches: Path | None = None,
    settings: SimulationSettings = DEFAULT_SIMULATION,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate launches on the module, the GPU and the clocks of a report. Its samples and counters are not looked at.

    Raises:
        InputError: the report or the description cannot be read, or no GPU has the name.
    """
    profile = read_profile(path)
    described = _read_described(path, launches)
    problems: list[Problem] = []
    wanted = {one.mangled_name for one in profile.launches}
    if kernel is not None:
        known, wanted = wanted, set(list_named(kernel, sorted(wanted), lambda name: (name, demangle(name))))
        if not wanted:
            raise _miss_kernel(kernel, sorted(known), path)
    named = {name for one in described for name in list_named(one.kernel, sorted(wanted), lambda name: (name,))}
    kernels, met = join_profile(profile, kernel_filter=lambda launch: launch.mangled_name in named)
    problems += met
    product = None if settings.machine is None else find_product(settings.machine)
    subjects = [_make_measured(one, product) for one in kernels]
    return _simulate_all(
        described, subjects, settings, problems, progress, is_chosen=kernel is not None, known=sorted(wanted)
    )


def simulate_build(
    path: Path,
    *,
    kernel: str | None = None,
    launches: Path | None = None,
    compute_capability: tuple[int, int] | None = None,
    settings: SimulationSettings = DEFAULT_SIMULATION,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate launches of device code that was built.

    Raises:
        InputError: the file or the description cannot be read, or no GPU has the name.
        MissingToolError: the file needs NVIDIA's cuobjdump, which is not installed.
        ToolError: cuobjdump failed.
    """
    product = None if settings.machine is None else find_product(settings.machine)
    units = read_build(path, compute_capability=compute_capability, assembles=product is None)
    described = _read_described(path, launches)
    problems: list[Problem] = []
    if product is not None:
        units = _choose_units(units, product, path)
        notes = note_difference(product, units[0].compute_capability)
        problems += [Problem(severity=ProblemSeverity.NOTE, message=note) for note in notes]
    subjects = _make_built(units, path, kernel, settings, problems)
    return _simulate_all(described, subjects, settings, problems, progress, is_chosen=kernel is not None)


def _choose_units(units: Sequence[CompiledUnit], product: Product, path: Path) -> tuple[CompiledUnit, ...]:
    """Code that a GPU executes: its own, else the newest of an earlier one of its generation.

    Raises:
        InputError: there is none.
    """
    major, minor = product.compute_capability
    known = {one.compute_capability for one in units if one.cubin is not None}
    fitting = [one for one in known if one[0] == major and one[1] <= minor]
    if not fitting:
        there = ", ".join(f"sm_{one[0]}{one[1]}" for one in sorted(known)) or "no architecture"
        message = f"there is machine code for {there}, and none that the {product.name} executes (sm_{major}{minor})"
        raise InputError(message, path=path, remedy=_CODE_REMEDY)
    return tuple(one for one in units if one.compute_capability == max(fitting))


def simulate_source(
    path: Path,
    *,
    kernel: str | None = None,
    launches: Path | None = None,
    text: str | None = None,
    launches_text: str | None = None,
    number: int | None = None,
    compute_capability: tuple[int, int] | None = None,
    settings: SimulationSettings = DEFAULT_SIMULATION,
    compile_settings: CompileSettings = DEFAULT_SETTINGS,
    progress: Progress | None = None,
) -> Simulation:
    """Compile a source and simulate its launches.

    Args:
        path: of the source.
        kernel: only kernels of this name, or else those whose name contains it; None for all.
        launches: the description; None for the file beside the source.
        text: what an editor holds of the source; None to read the file.
        launches_text: what an editor holds of the description; None to read the file.
        number: only this one of the launches of the kernels that are meant, from 1; None for all.
        compute_capability: to compile for; None leaves it to the GPU, or to the compile command.
        settings: how much it may cost, and the GPU.
        compile_settings: of the compiler.
        progress: told of each launch.

    Raises:
        InputError: the source or the description cannot be read, or no GPU has the name.
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
    unit = examined.statics.unit
    if unit.has_failed:
        listed = "; ".join(message.text for message in unit.messages[:3])
        raise InputError(f"it cannot be compiled: {listed}", path=path, remedy="mend it and simulate it again")
    described = _read_described(path, launches, launches_text)
    problems = [Problem(severity=ProblemSeverity.NOTE, message=note) for note in examined.notes]
    subjects = _make_built((unit,), path, kernel, settings, problems)
    if number is not None:
        described = _choose_launch(described, [one.kernel.mangled_name for one in subjects], number)
    return _simulate_all(described, subjects, settings, problems, progress, is_chosen=kernel is not None)


def simulate_launch(
    unit: CompiledUnit, launch: LaunchDescription, *, path: Path, settings: SimulationSettings = DEFAULT_SIMULATION
) -> Simulation:
    """Simulate one launch of a source that was compiled.

    Args:
        unit: with its PTX and its machine code.
        launch: of one of its kernels.
        path: of the source, for messages.
        settings: how much it may cost, and the GPU.

    Raises:
        InputError: there is no machine code, or no GPU has the name.
    """
    problems: list[Problem] = []
    subjects = _make_built((unit,), path, None, settings, problems)
    return _simulate_all((launch,), subjects, settings, problems, None, is_chosen=False)


def _choose_launch(
    described: Sequence[LaunchDescription], names: Sequence[str], number: int
) -> tuple[LaunchDescription, ...]:
    """The launch with a number among those of some kernels."""
    own = [one for one in described if list_named(one.kernel, list(names), lambda name: (name,))]
    if number > len(own):
        message = f"there is no launch {number}: {format_count_of(len(own), 'launch')} of it described"
        raise InputError(message, remedy="choose another with --launch")
    return (own[number - 1],)


def _read_described(path: Path, launches: Path | None, text: str | None = None) -> tuple[LaunchDescription, ...]:
    described = launches or find_launch_file(path)
    if described is None:
        remedy = f"have one written by gpa-lsp trace --template {path.name}, and name it with --launches"
        raise InputError(
            "no launch of it is described: what is passed to its kernels is not known", path=path, remedy=remedy
        )
    return read_launches(described, text=text)


def _make_built(
    units: Iterable[CompiledUnit],
    path: Path,
    kernel: str | None,
    settings: SimulationSettings,
    problems: list[Problem],
) -> list[_Subject]:
    """The kernels of compiled units that are meant."""
    subjects: list[_Subject] = []
    known: dict[str, None] = {}
    for unit in units:
        if unit.cubin is None:
            continue
        cubin = read_cubin(unit.cubin, path=path)

        def choose(names: list[str]) -> list[str]:
            known.update(dict.fromkeys(names))
            return list(names) if kernel is None else list_named(kernel, names, lambda name: (name, demangle(name)))

        kernels, met = list_unmeasured_kernels(cubin, choose=choose)
        problems += met
        for one in kernels:
            product = choose_product(settings.machine, unit.compute_capability)
            if product is None:
                message = f"no GPU of compute capability {unit.compute_capability} is known"
                raise InputError(message, path=path, remedy="name one with --machine")
            place = _place_on(product)
            ptx = () if unit.ptx is None else (unit.ptx,)
            subjects.append(_Subject(kernel=one, ptx=ptx, find_place=lambda _, place=place: place))  # type: ignore[misc]
    if not subjects and known and kernel is not None:
        raise _miss_kernel(kernel, known, path)
    if not subjects:
        raise InputError("there is no machine code in it", path=path, remedy=_CODE_REMEDY)
    return subjects


def _miss_kernel(kernel: str, known: Iterable[str], path: Path | None) -> InputError:
    names = ", ".join(shorten_name(demangle(one)) for one in list(known)[:_MOST_NAMES])
    return InputError(f"there is no kernel {kernel[:_LONGEST_NAME]}", path=path, remedy=f"name one of {names}")


def _make_measured(kernel: Kernel, product: Product | None) -> _Subject:
    """A kernel of a report."""

    def find_place(description: LaunchDescription) -> _Place:
        if product is not None:
            return _place_on(product)
        alike = [one for one in kernel.launches if (one.grid, one.block) == (description.grid, description.block)]
        launch = next(iter((*alike, *kernel.launches)))
        machine = find_machine(kernel.device, kernel.architecture, launch)
        if machine is None:
            raise InputError("the report says too little of its GPU", remedy="name a GPU with --machine")
        return _Place(machine=machine, memory=_read_memory(kernel, launch))

    ptx = () if kernel.cubin is None else read_embedded_ptx(kernel.cubin)
    return _Subject(kernel=kernel, ptx=ptx, find_place=find_place)


def _place_on(product: Product) -> _Place:
    return _Place(machine=find_machine_by_name(product.name), memory=_read_product_memory(product))


def _read_memory(kernel: Kernel, launch: Launch) -> MemoryFacts:
    """What the device's attributes say, and the size its shared memory was set to."""
    device = kernel.device
    product = find_product_of(device)
    known = MemoryFacts(l2_bytes=None, bus_bits=None) if product is None else _read_product_memory(product)
    return MemoryFacts(
        l2_bytes=read_attribute(device, "l2_cache_size") or known.l2_bytes,
        bus_bits=read_attribute(device, "global_memory_bus_width") or known.bus_bits,
        has_ecc=bool(read_attribute(device, "ecc_enabled")),
        carveout_bytes=launch.read_count(_CARVEOUT) or None,
    )


def _read_product_memory(product: Product) -> MemoryFacts:
    return MemoryFacts(l2_bytes=product.l2_bytes, bus_bits=product.memory_bus_bits)


def _simulate_all(
    described: Sequence[LaunchDescription],
    subjects: Sequence[_Subject],
    settings: SimulationSettings,
    problems: list[Problem],
    progress: Progress | None,
    *,
    is_chosen: bool,
    known: Sequence[str] = (),
) -> Simulation:
    """Each described launch of one of the kernels; one that cannot be simulated becomes a problem. More kernels may be known than are simulated."""
    done: list[DocumentLaunch] = []
    estimates: list[EstimatedLaunch] = []
    known = known or [one.kernel.mangled_name for one in subjects]
    meant = _match(described, subjects, known, problems, is_chosen=is_chosen)
    end_s = None if settings.total_seconds is None else time.monotonic() + settings.total_seconds
    for number, (launch, subject) in enumerate(meant):
        if end_s is not None:
            settings = replace(settings, total_seconds=end_s - time.monotonic())
        if settings.total_seconds is not None and settings.total_seconds <= 0:
            left = format_count_of(len(meant) - number, "launch")
            message = f"{left} not simulated: those before took longer than all may take together"
            problems.append(Problem(severity=ProblemSeverity.WARNING, message=message))
            break
        name = shorten_name(demangle(subject.kernel.mangled_name))
        if progress is not None:
            progress(f"simulating {name}", number, len(meant))
        with spare_others(f"simulating a launch of {name}", problems, kernel=subject.kernel.mangled_name):
            if settings.is_paper:
                estimates.append(_estimate_one(subject, launch, settings))
            else:
                done.append(_simulate_one(subject, launch, settings))
    if not done and not estimates and not any(one.severity is ProblemSeverity.ERROR for one in problems):
        names = ", ".join(shorten_name(demangle(one)) for one in known[:_MOST_NAMES])
        problems.append(
            Problem(
                severity=ProblemSeverity.ERROR,
                message=f"no launch of {names} is described" if names else "there is no kernel",
            )
        )
    return Simulation(launches=tuple(done), estimates=tuple(estimates), problems=tuple(problems))


def _match(
    described: Sequence[LaunchDescription],
    subjects: Sequence[_Subject],
    known: Sequence[str],
    problems: list[Problem],
    *,
    is_chosen: bool,
) -> list[tuple[LaunchDescription, _Subject]]:
    """Launches with their kernels. What is of none is a problem, unless kernels were chosen; what is of several always is."""
    by_name = {one.kernel.mangled_name: one for one in subjects}
    found = []
    for launch in described:
        names = list_named(launch.kernel, list(by_name), lambda name: (name,))
        if len(names) == 1:
            found.append((launch, by_name[names[0]]))
        elif names or not is_chosen:
            severity = ProblemSeverity.ERROR if names else ProblemSeverity.WARNING
            problem = Problem.from_error(_explain_mismatch(launch, names, known))
            problems.append(replace(problem, severity=severity))
    return found


def _explain_mismatch(launch: LaunchDescription, found: Sequence[str], known: Iterable[str]) -> InputError:
    """Why a description is of no kernel, or of several."""
    place = None if launch.line is None else f"line {launch.line}"
    if not found:
        error = _miss_kernel(launch.kernel, known, launch.path)
        error.place = place
        return error
    names = ", ".join(shorten_name(demangle(one)) for one in found[:_MOST_NAMES])
    message = f"{launch.kernel[:_LONGEST_NAME]} could be any of {names}"
    remedy = f"write its mangled name, such as {found[0][:_LONGEST_NAME]}"
    return InputError(message, path=launch.path, place=place, remedy=remedy)


def _estimate_one(subject: _Subject, launch: LaunchDescription, settings: SimulationSettings) -> EstimatedLaunch:
    kernel, place, architecture = _find_surroundings(subject, launch)
    module = _find_ptx(subject)
    if module is None:
        raise InputError("its PTX is not there, in which the paper's loops and branches are found", remedy=_PTX_REMEDY)
    estimate = estimate_launch(
        module,
        module.functions[kernel.mangled_name],
        launch,
        CompiledKernel(registers=find_registers(kernel), shared_bytes=find_shared_bytes(kernel, launch)),
        architecture=architecture,
        machine=place.machine,
        l2_bytes=place.memory.l2_bytes,
        seconds=settings.seconds,
    )
    return EstimatedLaunch(name=_name(kernel), estimate=estimate, machine=place.machine)


def _find_surroundings(subject: _Subject, launch: LaunchDescription) -> tuple[Kernel, _Place, Architecture]:
    kernel = subject.kernel
    if kernel.cubin is None:
        raise InputError(
            "the report does not hold its code", remedy="measure it again with --import-source and its module"
        )
    place = subject.find_place(launch)
    capability = place.machine.compute_capability
    if capability is None:
        raise InputError("the architecture of the GPU is not known", remedy="name a GPU with --machine")
    return kernel, place, find_architecture(capability)


def _name(kernel: Kernel) -> str:
    return kernel.name if kernel.name != kernel.mangled_name else demangle(kernel.mangled_name)


def _simulate_one(subject: _Subject, launch: LaunchDescription, settings: SimulationSettings) -> DocumentLaunch:
    kernel, place, architecture = _find_surroundings(subject, launch)
    own = _choose_blocks(kernel, launch, architecture, place.machine)
    walk = _walk(kernel, _find_module(subject), launch, own, settings)
    simulated = simulate_kernel(
        kernel,
        walk,
        architecture,
        place.machine,
        place.memory,
        own_blocks=own,
        array_bytes=_count_array_bytes(launch),
    )
    return DocumentLaunch(
        name=_name(kernel),
        kernel=kernel,
        walk=walk,
        simulated=simulated,
        machine=place.machine,
        memory=place.memory,
    )


def _walk(
    kernel: Kernel, module: PtxModule, launch: LaunchDescription, own: tuple[int, ...], settings: SimulationSettings
) -> KernelWalk:
    """Walk the blocks of an SM, and those that show what it shares with others; fewer where that takes too much."""
    middle = own[len(own) // 2]
    first = find_places(launch.grid, own[:1])[0]
    x, y, _ = launch.grid
    mates = tuple(at[0] + x * (at[1] + y * at[2]) for at in list_mates(launch.grid, first))
    walk: KernelWalk | None = None
    tries = {(*own, *mates): 1, (own[0], *mates): 1, (middle,): _LAST_TRY}
    end_s = None if settings.total_seconds is None else time.monotonic() + settings.total_seconds
    for blocks, factor in tries.items():
        seconds = factor * settings.seconds
        if end_s is not None:
            seconds = min(seconds, end_s - time.monotonic())
            if walk is not None and seconds <= 0:
                break
        walk = walk_kernel(
            kernel,
            module,
            launch,
            WalkSettings(
                blocks=tuple(sorted(set(blocks))),
                seconds=seconds,
                executions=factor * settings.executions,
                memory_bytes=settings.memory_bytes,
            ),
        )
        if set(walk.sampled_blocks) & set(own):
            break
    assert walk is not None  # something is always tried
    return walk


def _find_ptx(subject: _Subject) -> PtxModule | None:
    for text in subject.ptx:
        module = parse_ptx(text, name="the PTX of the image")
        if subject.kernel.mangled_name in module.functions:
            return module
    return None


def _find_module(subject: _Subject) -> PtxModule:
    """The PTX, for parameters and variables; where there is none, what the image says of them."""
    kernel = subject.kernel
    found = _find_ptx(subject)
    if found is None and kernel.cubin is not None:
        found = read_image_module(kernel.cubin, (kernel.mangled_name,))
    if found is None or kernel.mangled_name not in found.functions:
        raise InputError("neither its PTX nor its image says what its parameters are", remedy=_PTX_REMEDY)
    return found


def _choose_blocks(
    kernel: Kernel, launch: LaunchDescription, architecture: Architecture, machine: Machine
) -> tuple[int, ...]:
    """Blocks of one SM, from its first to its last. Blocks are dealt out to SMs one by one."""
    total, sm_count = prod(launch.grid), machine.sm_count or 1
    shape = BlockShape(
        threads=prod(launch.block),
        registers_per_thread=find_registers(kernel),
        shared_bytes=find_shared_bytes(kernel, launch),
    )
    occupancy = find_occupancy(architecture, shape)
    first = (total - 1) // 2 % sm_count if total > sm_count else total // 2
    own = range(first, total, sm_count)
    most = min(len(own), max(1, occupancy.blocks_per_sm) + 2, _MOST_WALKED)
    return tuple(own[place * (len(own) - 1) // max(1, most - 1)] for place in range(most))


def _count_array_bytes(launch: LaunchDescription) -> int | None:
    arrays = [one for one in launch.arguments if isinstance(one, ArrayArgument) and one.alias_of is None]
    if len(arrays) < sum(isinstance(one, ArrayArgument) for one in launch.arguments) or not arrays:
        return None
    return sum(one.count * one.type.bytes for one in arrays)
