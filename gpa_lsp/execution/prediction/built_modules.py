"""The PTX of built device code, parsed: :func:`read_modules`; parameters and variables of images without PTX: :func:`read_image_module`."""

import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import Symbols
from gpa_lsp.code.binary.elf import NO_BITS, Attribute, ElfImage, read_elf, walk_records
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable, Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.compiler.model import CompiledUnit
from gpa_lsp.execution.compiler.ptx_files import ChooseEntries, assemble_ptx, read_build
from gpa_lsp.execution.prediction.static_source import Capability, note_difference
from gpa_lsp.foundation.errors import InputError, MissingToolError, Problem, ToolError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.gpu.device.products import Product, find_product
from gpa_lsp.kernel.names import choose_by_name

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
