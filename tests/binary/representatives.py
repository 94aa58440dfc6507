"""A few fixture images that show everything all of them show, for comparisons with NVIDIA's tools, which take half a second an image.

Most of the 232 fixtures are near-equal: four architectures, two twins, the same prologues. What a comparison checks is a set of features per image;
as few images are chosen as have every feature of all. Features are read from the bytes, by pyelftools and the few lines below, never by the readers
that are compared. ``HYPOTHESIS_PROFILE=nightly`` compares all images.
"""

import struct
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from tests.binary.seeds import find_fixture_cubins
from tests.conftest import IS_NIGHTLY

Features = frozenset[Hashable]
_Member = TypeVar("_Member")

OPCODE_BITS, GUARD_BITS, ALWAYS = 0xFFF, 0xF000, 0x7000
CONTROL_BITS, CONTROL = 0x1E0, 0x140  # Jumps, calls, barriers and ends: 0x.4. and 0x.5
SIGN = 17  # Of the distance of a jump, in the upper half of its word
INSTRUCTION_BYTES = 16
LINE_TABLES = (".debug_line", ".nv_debug_line_sass")
INLINED = 0x90
MANY_BITS = 7


def choose(features: Mapping[_Member, Features]) -> list[_Member]:
    """Members that have all features between them, in their order: always the one with the most that are still missing; the first among equals."""
    missing = set().union(*features.values())
    chosen = []
    while missing:
        best = max(features, key=lambda member: len(features[member] & missing))
        chosen.append(best)
        missing -= features[best]
    return [member for member in features if member in chosen]


def _choose_images(read_features: Callable[[Path], Features]) -> list[Path]:
    paths = find_fixture_cubins()
    return paths if IS_NIGHTLY else choose({path: read_features(path) for path in paths})


@cache
def choose_by_tables() -> list[Path]:
    """Images with every kind of section, symbol, relocation, attribute and line-table opcode there is."""
    return _choose_images(read_table_features)


@cache
def choose_by_flow() -> list[Path]:
    """Images with every control instruction of every architecture there is, guarded or not, forwards or backwards, in short and in long functions."""
    return _choose_images(read_flow_features)


@cache
def read_table_features(path: Path) -> Features:
    """The features of an image's tables. Each counts per layout: CUDA 12 and 13 encode the same things differently."""
    found: set[Hashable] = set()
    with path.open("rb") as file:
        elf = ELFFile(file)
        layout = (elf.header["e_ident"]["EI_ABIVERSION"], elf["e_type"])
        found.add(("architecture", elf["e_flags"]))
        symbols = elf.get_section_by_name(".symtab")
        assert isinstance(symbols, SymbolTableSection)
        functions = [symbol.name for symbol in symbols.iter_symbols() if symbol["st_info"]["type"] == "STT_FUNC"]
        for symbol in symbols.iter_symbols():
            is_local = symbol.name.startswith("$")
            where = symbol["st_shndx"] if isinstance(symbol["st_shndx"], str) else "somewhere"
            found.add(
                (
                    "symbol",
                    symbol["st_info"]["bind"],
                    symbol["st_info"]["type"],
                    symbol.entry["st_other"]["visibility"],
                    where,
                    is_local,
                )
            )
        for section in elf.iter_sections():
            kind = _name_kind(section.name, functions)
            found.add(("section", kind, section["sh_type"], section["sh_size"] > 0))
            if isinstance(section, RelocationSection):
                for entry in section.iter_relocations():
                    target = symbols.get_symbol(entry["r_info_sym"])
                    found.add(
                        (
                            "relocation",
                            kind,
                            entry["r_info_type"],
                            target["st_shndx"] == "SHN_UNDEF",
                            target.name.startswith("$"),
                        )
                    )
            elif section.name in LINE_TABLES:
                found.update((section.name, *one) for one in _list_line_opcodes(section.data()))
            elif section.name.startswith(".nv.info"):
                found.update(("attribute", kind, *one) for one in _list_attributes(section.data()))
    return frozenset((layout, one) for one in found)


@cache
def read_flow_features(path: Path) -> Features:
    """The control instructions of an image: opcode, guard, direction; how many there are, as a power of two; and whether they are relocated."""
    found: set[Hashable] = set()
    with path.open("rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if not section.name.startswith(".text."):
                continue
            words = [
                struct.unpack_from("<QQ", section.data(), at) for at in range(0, section["sh_size"], INSTRUCTION_BYTES)
            ]
            control = [(low, high) for low, high in words if low & CONTROL_BITS == CONTROL]
            is_relocated = any(elf.get_section_by_name(f"{kind}{section.name}") for kind in (".rel", ".rela"))
            found.add(("count", len(control).bit_length(), is_relocated))
            found.update(
                (elf["e_flags"], low & OPCODE_BITS, low & GUARD_BITS == ALWAYS, high >> SIGN & 1)
                for low, high in control
            )
    return frozenset(found)


def _name_kind(section: str, functions: Sequence[str]) -> str:
    """``.rel.text.`` of ``.rel.text.kernel``; ``.nv.info`` alone is another thing than one of a function."""
    return next((section.removesuffix(name) for name in functions if section.endswith(f".{name}")), section)


def _list_attributes(data: bytes) -> Iterator[tuple[int, int]]:
    """(format, number) of each attribute; format 4 has its length in front."""
    at = 0
    while at + 4 <= len(data):
        form, number = data[at], data[at + 1]
        yield form, number
        at += 4 + (struct.unpack_from("<H", data, at + 2)[0] if form == 4 else 0)


def _list_line_opcodes(data: bytes) -> Iterator[tuple[object, ...]]:
    """Every opcode of every line program in a section, with how its operand is encoded."""
    start = 0
    while start + 10 <= len(data):
        length, version, header_length = struct.unpack_from("<IHI", data, start)
        end = start + 4 + length
        fields = 10 if version < 4 else 11
        line_base, line_range, base = struct.unpack_from("<bBB", data, start + fields + 2)
        counts = data[start + fields + 5 : start + fields + 4 + base]
        yield "version", version, line_base, line_range, base
        yield from _walk_program(data[start + 10 + header_length : end], base, line_base, line_range, counts)
        start = end


def _walk_program(
    program: bytes, base: int, line_base: int, line_range: int, counts: Sequence[int]
) -> Iterator[tuple[object, ...]]:
    at = inlined = 0
    while at < len(program):
        opcode = program[at]
        at += 1
        if opcode >= base:
            advance, delta = divmod(opcode - base, line_range)
            yield "special", advance > 0, (delta + line_base > 0) - (delta + line_base < 0)
        elif opcode == 0:
            size, at = _skip_number(program, at)
            length = int.from_bytes(program[at - size : at], "little") if size == 1 else 0
            yield "extended", program[at], size
            inlined += program[at] == INLINED
            at += length
        elif opcode == 9:
            yield "standard", opcode
            at += 2
        else:
            sizes = []
            for _ in range(counts[opcode - 1]):
                size, at = _skip_number(program, at)
                sizes.append((size, program[at - 1] >> 6 & 1))
            yield "standard", opcode, *sizes
    yield "inlined", inlined.bit_length()


def _skip_number(data: bytes, at: int) -> tuple[int, int]:
    """The bytes of a LEB128 number, and where it ends."""
    first = at
    while data[at] >> MANY_BITS:
        at += 1
    return at + 1 - first, at + 1
