"""Simulated launches of a report, a build or a source: :func:`simulate_code`. Nothing in the result was measured."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, prod
from pathlib import Path, PurePath

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import read_embedded_ptx
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.accesses.l2_traffic import list_companions
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompiledUnit, CompileSettings
from gpa_lsp.execution.compiler.ptx_files import read_build
from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.hybrid.estimate import CompiledKernel, PaperEstimate, estimate_launch
from gpa_lsp.execution.hybrid.operations import EVERY_TERM, Term
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import explain_undescribed
from gpa_lsp.execution.prediction.fault_answer import note_guesses
from gpa_lsp.execution.prediction.input_kinds import InputKind, find_kind
from gpa_lsp.execution.prediction.launch_sources import (
    EVERY_LAUNCH,
    LaunchChoice,
    choose_launches,
    explain_mismatch,
    list_names,
    miss_kernel,
    require_description,
)
from gpa_lsp.execution.prediction.launched_code import CODE_REMEDY, assemble_units, choose_units, read_image_module
from gpa_lsp.execution.prediction.static_source import Capability, choose_product, examine_for_machine, note_difference
from gpa_lsp.execution.simulator.profile_document import DocumentLaunch
from gpa_lsp.execution.simulator.simulate import simulate_kernel
from gpa_lsp.execution.simulator.walk_kernel import WalkSettings, find_registers, find_shared_bytes, walk_kernel
from gpa_lsp.execution.simulator.warp_walk import KernelWalk
from gpa_lsp.foundation.errors import InputError, Problem, ProblemSeverity, spare_others
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.foundation.work_time import work_time
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.device.find import build_product_machine, find_machine
from gpa_lsp.gpu.device.model import Machine, MemoryFacts
from gpa_lsp.gpu.device.products import Product, find_product, find_product_of, note_choice
from gpa_lsp.gpu.device.rates import read_attribute
from gpa_lsp.kernel.join import join_profile, list_unmeasured_kernels
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.names import choose_by_name, demangle, list_named, shorten_name
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile

_CARVEOUT = "launch__shared_mem_config_size"
PTX_REMEDY = "build with -lineinfo, so that the image keeps its PTX"


class Place(Struct, frozen=True, kw_only=True):
    """GPU that a launch is simulated on."""

    machine: Machine
    memory: MemoryFacts


class Subject(ColumnRecord, frozen=True, kw_only=True):
    """A kernel, its PTX texts, and the GPU of each of its launches."""

    kernel: Kernel
    ptx: tuple[str, ...]
    find_place: Callable[[LaunchDescription], Place]


def make_built(
    units: Iterable[CompiledUnit],
    path: Path,
    kernel: str | None,
    machine: str | None,
    problems: list[Problem],
) -> list[Subject]:
    """The chosen kernels of compiled units.

    Args:
        kernel: the name of one of them, or a part of it; None for all.
        machine: name of the GPU; None for the first known of the architecture.

    Raises:
        InputError: there is no such kernel, no machine code, or no such GPU.
    """
    subjects: list[Subject] = []
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
            product = choose_product(machine, unit.compute_capability)
            if product is None:
                message = f"no GPU of compute capability {unit.compute_capability} is known"
                raise InputError(message, path=path, remedy="name one with --machine")
            place = _place_on(product)
            ptx = () if unit.ptx is None else (unit.ptx,)
            subjects.append(Subject(kernel=one, ptx=ptx, find_place=lambda _, place=place: place))  # type: ignore[misc]
    if not subjects and known and kernel is not None:
        raise miss_kernel(kernel, known, path)
    if not subjects:
        raise InputError("there is no machine code in it", path=path, remedy=CODE_REMEDY)
    return subjects


def make_measured(kernel: Kernel, product: Product | None) -> Subject:
    """A kernel of a report."""

    def find_place(description: LaunchDescription) -> Place:
        if product is not None:
            return _place_on(product)
        alike = [one for one in kernel.launches if (one.grid, one.block) == (description.grid, description.block)]
        launch = next(iter((*alike, *kernel.launches)))
        machine = find_machine(kernel.device, kernel.architecture, launch)
        if machine is None:
            raise InputError("the report says too little of its GPU", remedy="name a GPU with --machine")
        return Place(machine=machine, memory=_read_memory(kernel, launch))

    ptx = () if kernel.cubin is None else read_embedded_ptx(kernel.cubin)
    return Subject(kernel=kernel, ptx=ptx, find_place=find_place)


def _place_on(product: Product) -> Place:
    return Place(machine=build_product_machine(product), memory=_read_product_memory(product))


def _read_memory(kernel: Kernel, launch: Launch) -> MemoryFacts:
    """Memory facts by the device's attributes, and the carve-out of the launch."""
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
    return MemoryFacts(l2_bytes=product.l2_bytes, bus_bits=product.memory_bus_bits, l1_bytes=product.l1_bytes)


def match_launches(
    described: Sequence[LaunchDescription],
    subjects: Sequence[Subject],
    known: Sequence[str],
    problems: list[Problem],
    *,
    is_chosen: bool,
) -> list[tuple[LaunchDescription, Subject]]:
    """Launches with their kernels; where kernels were chosen, a launch of another one is no problem."""
    by_name = {one.kernel.mangled_name: one for one in subjects}
    found = []
    for launch in described:
        names = list_named(launch.kernel, list(by_name), lambda name: (name,))
        if len(names) == 1:
            found.append((launch, by_name[names[0]]))
        elif names or not is_chosen:
            problem = Problem.from_error(explain_mismatch(launch, names, known))
            problems.append(problem if names else replace(problem, severity=ProblemSeverity.WARNING))
    return found


def find_ptx(subject: Subject) -> PtxModule | None:
    """The PTX of a kernel; None where there is none."""
    for text in subject.ptx:
        module = parse_ptx(text, name="the PTX of the image")
        if subject.kernel.mangled_name in module.functions:
            return module
    return None


def find_module(subject: Subject) -> PtxModule:
    """The PTX, for parameters and variables; without it a module of those that the image declares.

    Raises:
        InputError: it declares none.
    """
    kernel = subject.kernel
    found = find_ptx(subject)
    if found is None and kernel.cubin is not None:
        found = read_image_module(kernel.cubin, (kernel.mangled_name,))
    if found is None or kernel.mangled_name not in found.functions:
        raise InputError("neither its PTX nor its image says what its parameters are", remedy=PTX_REMEDY)
    return found


Progress = Callable[[str, int, int], None]

_MOST_WALKED = 12  # Blocks of a launch that are walked at most
_LAST_TRY = 3  # Times as much may be used for one block alone


class SimulationSettings(Struct, frozen=True, kw_only=True):
    """GPU and limits of a simulation."""

    # name of the GPU; None for that of the report, or the first known of the code's architecture
    machine: str | None = None
    seconds: float = 20.0  # for walking blocks of a launch; where they do not suffice, fewer blocks are tried, twice
    # for walking blocks of all launches together; those for which nothing is left are not simulated. None for no such limit.
    total_seconds: float | None = None
    memory_bytes: int = 8 << 30  # for the arrays of a launch
    # warp instructions that are walked at most, of one block alone three times as many; their walks are kept in memory
    executions: int = 12_000_000
    # estimate as the hybrid paper does, with these terms beside its printed ones: a time from loop bounds and branches, without samples. None to
    # simulate.
    terms: frozenset[Term] | None = None
    # for those, iterations of loops that end where the data says; None to have them executed
    loop_bound: int | None = None


DEFAULT_SIMULATION = SimulationSettings()


class Simulation(Struct, frozen=True, kw_only=True):
    """Simulated, or estimated, launches."""

    launches: tuple[DocumentLaunch, ...]  # in the order of the description
    # in the same order, of the hybrid paper's own model, where that was asked for; there are no launches then
    estimates: tuple["EstimatedLaunch", ...] = ()
    problems: tuple[Problem, ...] = ()  # of launches that could not be, and notes


class EstimatedLaunch(Struct, frozen=True, kw_only=True):
    """A launch and the time that the hybrid paper's model gives it."""

    name: str  # of the kernel, for people
    estimate: PaperEstimate  # by the model
    machine: Machine  # the GPU


def simulate_code(
    path: Path,
    *,
    kernel: str | None = None,
    launches: LaunchChoice = EVERY_LAUNCH,
    text: str | None = None,
    compute_capability: Capability | None = None,
    settings: SimulationSettings = DEFAULT_SIMULATION,
    compile_settings: CompileSettings = DEFAULT_SETTINGS,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate launches of a source, of what was built, or of a report.

    A report gives the module, the GPU and the clocks; its samples and counters are not used.

    Args:
        path: of the code.
        kernel: only kernels of this name, or else those whose name contains it; None for all.
        launches: choice among the described ones.
        text: what an editor holds of a source; None to read the file.
        compute_capability: to compile for, or to take out of a build; None leaves it to the GPU, or to the compile command.
        settings: GPU and limits.
        compile_settings: of the compiler.
        progress: called before each launch.

    Raises:
        InputError: the code or the description cannot be read, or no GPU has the name.
        MissingToolError: there is no compiler, or no cuobjdump or ptxas for a build that needs it.
        ToolError: one of them failed, or did not end in time.
    """
    problems: list[Problem] = []
    kind = InputKind.SOURCE if text is not None else find_kind(path)
    known: Sequence[str] = ()
    product = None if settings.machine is None else find_product(settings.machine)
    if kind is not InputKind.SOURCE:
        problems += map(Problem.note, note_choice(settings.machine))
    else:
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
        problems += map(Problem.note, examined.notes)
    described = require_description(path, launches).read()
    if kind is InputKind.REPORT:
        subjects, known = _list_measured(path, kernel, described, product, problems)
    elif kind is InputKind.SOURCE:
        subjects = make_built((unit,), path, kernel, settings.machine, problems)
    else:
        choose = choose_by_name(kernel)
        built = read_build(
            path, compute_capability=compute_capability, assembles=product is None, choose_entries=choose
        )
        units = assemble_units(built, product, choose)
        if product is not None:
            units = choose_units(units, product, path)
            problems += _note_difference(product, [one.compute_capability for one in units])
        subjects = make_built(units, path, kernel, settings.machine, problems)
    if launches.number is not None:
        names = [one.kernel.mangled_name for one in subjects]
        own = [one for one in described if list_named(one.kernel, names, lambda name: (name,))]
        described = choose_launches(own, launches, launches.path, lambda one: one.kernel)
    return _simulate_all(
        described,
        subjects,
        settings,
        problems,
        progress,
        path=path,
        launches=launches.path,
        is_chosen=kernel is not None,
        known=known,
    )


def _list_measured(
    path: Path,
    kernel: str | None,
    described: Sequence[LaunchDescription],
    product: Product | None,
    problems: list[Problem],
) -> tuple[list[Subject], list[str]]:
    """The kernels of a report with a described launch, and the names of all chosen ones."""
    profile = read_profile(path)
    wanted = {one.mangled_name for one in profile.launches}
    if kernel is not None:
        known, wanted = wanted, set(list_named(kernel, sorted(wanted), lambda name: (name, demangle(name))))
        if not wanted:
            raise miss_kernel(kernel, sorted(known), path)
    named = {name for one in described for name in list_named(one.kernel, sorted(wanted), lambda name: (name,))}
    kernels, met = join_profile(profile, kernel_filter=lambda launch: launch.mangled_name in named)
    problems += met
    if product is not None:
        compiled_for = [divmod(one.cubin.sm, 10) for one in kernels if one.cubin is not None]
        problems += _note_difference(product, compiled_for)
    return [make_measured(one, product) for one in kernels], sorted(wanted)


def _note_difference(product: Product, compiled_for: Sequence[tuple[int, int]]) -> Iterator[Problem]:
    """Notes that code is for other architectures than that of the GPU."""
    for capability in sorted(set(compiled_for)):
        yield from map(Problem.note, note_difference(product, capability))


def simulate_launch(
    unit: CompiledUnit, launch: LaunchDescription, *, path: Path, settings: SimulationSettings = DEFAULT_SIMULATION
) -> Simulation:
    """Simulate one launch of a source that was compiled.

    Raises:
        InputError: there is no machine code, or no GPU has the name.
    """
    problems: list[Problem] = []
    subjects = make_built((unit,), path, None, settings.machine, problems)
    return _simulate_all(
        (launch,), subjects, settings, problems, None, path=path, launches=launch.path, is_chosen=False
    )


def _simulate_all(
    described: Sequence[LaunchDescription],
    subjects: Sequence[Subject],
    settings: SimulationSettings,
    problems: list[Problem],
    progress: Progress | None,
    *,
    path: Path,
    launches: Path | None,
    is_chosen: bool,
    known: Sequence[str] = (),
) -> Simulation:
    """Simulate each described launch of one of the kernels; one that cannot be becomes a problem.

    Args:
        known: names of all kernels, of which more may be known than are simulated; empty for those of the subjects.
    """
    done: list[DocumentLaunch] = []
    estimates: list[EstimatedLaunch] = []
    known = known or [one.kernel.mangled_name for one in subjects]
    meant = match_launches(described, subjects, known, problems, is_chosen=is_chosen)
    end_s = inf if settings.total_seconds is None else work_time() + settings.total_seconds
    for number, (launch, subject) in enumerate(meant):
        if work_time() >= end_s:
            left = format_count_of(len(meant) - number, "launch")
            message = f"{left} not simulated: those before took longer than all may take together"
            problems.append(Problem.warning(message))
            break
        name = shorten_name(demangle(subject.kernel.mangled_name))
        if progress is not None:
            progress(f"simulating {name}", number, len(meant))
        problems += note_guesses(launch, kernel=subject.kernel.mangled_name)
        with spare_others(f"simulating a launch of {name}", problems, kernel=subject.kernel.mangled_name):
            if settings.terms is not None:
                estimates.append(_estimate_one(subject, launch, settings))
            else:
                one = _simulate_one(subject, launch, settings, end_s)
                problems += _note_outside(one, launch)
                done.append(one)
    if not done and not estimates and not any(one.severity is ProblemSeverity.ERROR for one in problems):
        missing = explain_undescribed(path, [list_names(known)], launches)
        problems.append(Problem.from_error(missing if known else InputError("there is no kernel", path=path)))
    return Simulation(launches=tuple(done), estimates=tuple(estimates), problems=tuple(problems))


def _estimate_one(subject: Subject, launch: LaunchDescription, settings: SimulationSettings) -> EstimatedLaunch:
    kernel, place, architecture = _find_surroundings(subject, launch)
    module = find_ptx(subject)
    if module is None:
        raise InputError("its PTX is not there, in which the paper's loops and branches are found", remedy=PTX_REMEDY)
    estimate = estimate_launch(
        module,
        module.functions[kernel.mangled_name],
        launch,
        CompiledKernel(registers=find_registers(kernel), shared_bytes=find_shared_bytes(kernel, launch)),
        architecture=architecture,
        machine=place.machine,
        memory=place.memory,
        terms=EVERY_TERM if settings.terms is None else settings.terms,
        budget=Budget(seconds=settings.seconds, memory_bytes=settings.memory_bytes),
        loop_bound=settings.loop_bound,
    )
    return EstimatedLaunch(name=_name(kernel), estimate=estimate, machine=place.machine)


def _find_surroundings(subject: Subject, launch: LaunchDescription) -> tuple[Kernel, Place, Architecture]:
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


def _simulate_one(
    subject: Subject, launch: LaunchDescription, settings: SimulationSettings, end_s: float
) -> DocumentLaunch:
    kernel, place, architecture = _find_surroundings(subject, launch)
    own = _choose_blocks(kernel, launch, architecture, place.machine)
    walk = _walk(kernel, find_module(subject), launch, own, settings, end_s=end_s)
    simulated = simulate_kernel(
        kernel,
        walk,
        architecture,
        place.machine,
        place.memory,
        own_blocks=own,
    )
    return DocumentLaunch(
        name=_name(kernel),
        kernel=kernel,
        walk=walk,
        simulated=simulated,
        machine=place.machine,
        memory=place.memory,
        is_guessed=bool(note_guesses(launch)),
    )


def _note_outside(one: DocumentLaunch, launch: LaunchDescription) -> Iterator[Problem]:
    """Warn of accesses outside of the described arrays, which read zeros there."""
    if not one.walk.outside:
        return
    rows = one.kernel.rows
    place = next((rows.place(row) for row in one.walk.outside if rows.place(row) is not None), None)
    where = f" ({PurePath(place.file).name}:{place.line})" if place is not None else ""
    yield Problem.warning(
        f"{format_count_of(len(one.walk.outside), 'instruction')} of {shorten_name(_name(one.kernel))} "
        f"{'access' if len(one.walk.outside) > 1 else 'accesses'} memory outside of the arrays that are described{where}",
        "describe the arrays as large as they are",
        path=launch.path,
        place=launch.place,
        kernel=one.kernel.mangled_name,
    )


def _walk(
    kernel: Kernel,
    module: PtxModule,
    launch: LaunchDescription,
    own: tuple[int, ...],
    settings: SimulationSettings,
    *,
    end_s: float,
) -> KernelWalk:
    """Walk the blocks of an SM, and those that show what it shares with others; fewer where these take too long."""
    middle = own[len(own) // 2]
    mates = list_companions(launch.grid, own[0])
    walk: KernelWalk | None = None
    tries = {(*own, *mates): 1, (own[0], *mates): 1, (middle,): _LAST_TRY}
    for blocks, factor in tries.items():
        seconds = min(factor * settings.seconds, end_s - work_time())
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
                counts_grid=True,
            ),
        )
        if set(walk.sampled_blocks) & set(own):
            break
    assert walk is not None  # something is always tried
    return walk


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
