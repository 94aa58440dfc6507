"""Kernels that can be simulated, of a report or of builds, with their PTX and the GPU that launches run on: :class:`Subject`."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import read_embedded_ptx
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.model import CompiledUnit
from gpa_lsp.execution.compiler.ptx_files import ChooseEntries, assemble_ptx
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.built_modules import read_image_module
from gpa_lsp.execution.prediction.launch_sources import explain_mismatch, miss_kernel
from gpa_lsp.execution.prediction.static_source import choose_product
from gpa_lsp.foundation.errors import InputError, MissingToolError, Problem, ProblemSeverity, ToolError
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.device.find import build_product_machine, find_machine
from gpa_lsp.gpu.device.model import Machine, MemoryFacts
from gpa_lsp.gpu.device.products import Product, find_product_of
from gpa_lsp.gpu.device.rates import read_attribute
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.names import demangle, list_named
from gpa_lsp.profile.model import Launch

_CARVEOUT = "launch__shared_mem_config_size"
PTX_REMEDY = "build with -lineinfo, so that the image keeps its PTX"
_CODE_REMEDY = "build with -gencode arch=compute_XX,code=sm_XX for the architecture of the GPU"


class Place(Struct, frozen=True, kw_only=True):
    """Where a launch is simulated."""

    machine: Machine
    memory: MemoryFacts


class Subject(ColumnRecord, frozen=True, kw_only=True):
    """A kernel, the PTX that there is of it, and where each of its launches is simulated."""

    kernel: Kernel
    ptx: tuple[str, ...]
    find_place: Callable[[LaunchDescription], Place]


def assemble_units(
    units: Sequence[CompiledUnit], product: Product | None, choose_entries: ChooseEntries | None
) -> tuple[CompiledUnit, ...]:
    """The units, where none has machine code for the GPU with that of the newest PTX it can run.

    Args:
        product: the GPU; None for that which the code is for.
        choose_entries: kernels that are asked for; None for all.

    Raises:
        MissingToolError: ptxas is not installed.
        ToolError: it failed.
    """
    most = (
        max((one.compute_capability for one in units), default=(0, 0))
        if product is None
        else product.compute_capability
    )
    if any(one.cubin is not None and one.compute_capability[0] == most[0] for one in units) or (
        product is None and any(one.cubin is not None for one in units)
    ):
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


def make_built(
    units: Iterable[CompiledUnit],
    path: Path,
    kernel: str | None,
    machine: str | None,
    problems: list[Problem],
) -> list[Subject]:
    """The kernels of compiled units that are meant.

    Args:
        kernel: a name of one of them, or a part of it; None for all.
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
        raise InputError("there is no machine code in it", path=path, remedy=_CODE_REMEDY)
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
    """The PTX, for parameters and variables; where there is none, what the image says of them.

    Raises:
        InputError: it says nothing.
    """
    kernel = subject.kernel
    found = find_ptx(subject)
    if found is None and kernel.cubin is not None:
        found = read_image_module(kernel.cubin, (kernel.mangled_name,))
    if found is None or kernel.mangled_name not in found.functions:
        raise InputError("neither its PTX nor its image says what its parameters are", remedy=PTX_REMEDY)
    return found
