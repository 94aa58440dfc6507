"""What an image without PTX says of the parameters of kernels and of its variables: :func:`read_image_module`."""

import re
import struct
from collections.abc import Iterable

from gpa_lsp.code.binary.cubin import Symbols
from gpa_lsp.code.binary.elf import NO_BITS, ElfImage, read_elf
from gpa_lsp.code.binary.elf_attributes import Attribute, walk_records
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable, Space
from gpa_lsp.code.ptx.scalar_types import ScalarType

_PARAMETER = struct.Struct("<IHHI")
_SIZE_SHIFT = 18
_ADDRESS_BYTES = 8
_VARIABLES = re.compile(r"\.nv\.(?:(?P<global>global(?:\.init)?)|constant3)(?:\..*)?")


def read_image_module(cubin: Cubin, kernels: Iterable[str]) -> PtxModule:
    """A module with kernels' parameters and the image's variables, as far as a launch needs them: sizes, places and what they begin with.

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
            name: _declare_kernel(name, _read_parameters(elf, section))
            for name, section in sections.items()
            if section is not None
        },
        variables=_read_variables(elf),
        text="",
    )


def _declare_kernel(name: str, parameters: tuple[PtxVariable, ...]) -> PtxFunction:
    return PtxFunction(
        name=name,
        is_entry=True,
        parameters=parameters,
        returns=(),
        registers=(),
        register_names=(),
        instructions=(),
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
    """Those in global and in constant memory, by their symbols."""
    symbols = Symbols.of(elf)
    objects = symbols.objects_by_section()
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
    """Where the addresses of variables stand in a section, and of which, and what is added."""
    found: dict[int, tuple[str, int]] = {}
    for row in elf.read_relocations(section):
        offset, number = int(row["offset"]), int(row["symbol"])
        if number < len(symbols.table):
            written = int.from_bytes(content[offset : offset + _ADDRESS_BYTES], "little")
            found[offset] = symbols.name(number), int(row["addend"]) or written
    return found
