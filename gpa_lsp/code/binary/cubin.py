"""Device images: ELF bytes → :class:`~gpa_lsp.code.binary.model.Cubin`.

An image holds one ``.text.<mangled name>`` section per function, whose code starts at the section's first byte. CUDA 13 moved several facts
(ABI version 7 → 8): the architecture from the low byte of ``e_flags`` to bits 8..15, the registers from the top of the section's ``sh_info``
to an attribute, the barriers from its ``sh_flags`` to another. From sm_100 on there is a second copy of the code for another instruction set
in ``.nv.merc.*`` and ``.nv.capmerc.*``; the exact prefixes leave it out.

Only the tables are read here; code and lines are decoded per function, on demand.

Source: cubins of CUDA 11 to 13 for sm_70 to sm_120, and images dumped after loading by Nsight Compute 2020.3 to 2022.1, in which the value of
a function's symbol is its run-time address.
"""

import hashlib
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.byte_reader import Allowance, StringTable
from gpa_lsp.code.binary.elf import (
    FUNCTION_SYMBOL,
    UNKNOWN_STACK,
    Attribute,
    ElfImage,
    read_barrier_count,
    read_branch_targets,
    read_elf,
    read_symbol_attributes,
    walk_records,
)
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin, Function, SubFunction
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.errors import UnsupportedInputError
from gpa_lsp.foundation.records import ColumnRecord

# ``.nv.callgraph``: who calls whom, as the compiler wrote it down.
#
# The section is a list of pairs of 32-bit numbers in four parts. A pair whose second number is negative opens a part:
#
# ====  ===================  ==========================================================
# part  pairs                meaning
# ====  ===================  ==========================================================
# -1    (caller, callee)     direct calls, both symbol indexes
# -2    (function, prototype)  a function whose address is taken, and its prototype
# -3    (caller, prototype)  a call through a pointer of that prototype
# -4    (user, function)     who takes whose address
# ====  ===================  ==========================================================
#
# Prototype numbers have nothing to do with symbol indexes; reading the later parts as calls invents some.
#
# Source: worked out on cubins with virtual functions, function pointers and recursion, compiled for this purpose (CUDA 12.9 and 13.0,
# linked and not), whose calls are known from their source.

_DIRECT, _ADDRESS_TAKEN, _CALLS_POINTER = -1, -2, -3
_PAIR_BYTES = 8


def read_call_table(
    data: bytes, name_symbol: Callable[[int], str | None]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    """Read the bytes of ``.nv.callgraph``; pairs with an index that is no function's, of which ``name_symbol`` says None, are passed over.

    >>> words = np.array([0, -1, 1, 2, 0, -2, 3, 1, 0, -3, 1, 1, 0, -4], dtype="<i4")
    >>> direct, indirect = read_call_table(words.tobytes(), "_kfg".__getitem__)
    >>> direct
    (('k', 'f'),)
    >>> indirect
    ((('k',), ('g',)),)
    """
    words = np.frombuffer(data, dtype="<i4", count=len(data) // _PAIR_BYTES * 2).reshape(-1, 2)
    direct = tuple(
        (caller, callee)
        for first, second in _find_part(words, _DIRECT)
        if (caller := name_symbol(first)) is not None and (callee := name_symbol(second)) is not None
    )
    callers = _group_by_prototype(_find_part(words, _CALLS_POINTER), name_symbol)
    callees = _group_by_prototype(_find_part(words, _ADDRESS_TAKEN), name_symbol)
    indirect = tuple((tuple(names), tuple(callees.get(prototype, ()))) for prototype, names in callers.items())
    return direct, indirect


def _find_part(words: npt.NDArray[np.int32], part: int) -> list[tuple[int, int]]:
    """The pairs of one part."""
    heads = words[:, 1] < 0
    opened_by = np.where(heads, words[:, 1], 0)
    last_head = np.maximum.accumulate(np.where(heads, np.arange(len(words)), -1))
    inside = ~heads & (last_head >= 0) & (opened_by[np.maximum(last_head, 0)] == part)
    return [(first, second) for first, second in words[inside].tolist()]


def _group_by_prototype(pairs: list[tuple[int, int]], name_symbol: Callable[[int], str | None]) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for symbol, prototype in pairs:
        name = name_symbol(symbol)
        if name is not None:
            groups.setdefault(prototype, []).append(name)
    return groups


_OBJECT_SYMBOL = 1
_SYMBOL_TYPE_MASK = 0xF
_ENTRY_FLAG = 0x10  # Bit of ``st_other`` that marks a ``__global__`` function (STO_CUDA_ENTRY)


class Symbols(ColumnRecord, frozen=True, kw_only=True):
    """The symbol table of an image with its names."""

    table: npt.NDArray[np.void]  # structured array of :data:`~gpa_lsp.code.binary.elf.SYMBOL_DTYPE`
    strings: StringTable  # what the ``name`` column points into

    @classmethod
    def of(cls, elf: ElfImage) -> "Symbols":
        """The symbols of an image."""
        return cls(table=elf.read_symbols(), strings=elf.symbol_names())

    def name(self, index: int) -> str:
        """The name of a symbol; the index must be valid."""
        return self.strings.read(int(self.table[index]["name"]))

    def is_function(self, index: int) -> bool:
        """Whether there is such a symbol, and it is a function."""
        return 0 < index < len(self.table) and int(self.table[index]["info"]) & _SYMBOL_TYPE_MASK == FUNCTION_SYMBOL

    def is_entry(self, index: int) -> bool:
        """Whether a symbol is a kernel's; the index must be valid."""
        return bool(int(self.table[index]["other"]) & _ENTRY_FLAG)

    def group_by_section(self, kind: int = _OBJECT_SYMBOL) -> dict[int, list[int]]:
        """Section index → indexes of the symbols of a kind in it, variables unless said otherwise, ascending."""
        chosen = np.flatnonzero((self.table["info"] & _SYMBOL_TYPE_MASK) == kind)
        grouped: dict[int, list[int]] = defaultdict(list)
        for index, section in zip(chosen.tolist(), self.table["section"][chosen].tolist(), strict=True):
            grouped[section].append(index)
        return grouped


CUDA_MACHINE = 190  # ``e_machine`` of device code (EM_CUDA)
OLDEST_ARCHITECTURE = 70  # First one with 16-byte instructions
LINE_SECTION = ".debug_line"
PTX_LINE_SECTION = ".nv_debug_line_sass"
# Which registers hold which variables: nvcc writes it with -G alone, and -lineinfo does not
_DEBUG_REGISTER_SECTION = ".nv_debug_info_reg_sass"
# The types of those registers, function by function: name, NUL, number as 32 bits, as many bytes. Found in images of CUDA 13.
_DEBUG_TYPE_SECTION = ".nv_debug_info_reg_type"
PTX_TEXT_PREFIX = ".nv_debug_ptx_txt"

_TEXT_PREFIX = ".text."
_INFO_PREFIX = ".nv.info."
_SHARED_PREFIX = ".nv.shared."
_PROGRAM_BITS = 1
_OWN_SYMBOL_MASK = 0xFFFFFF
_REGISTER_SHIFT = 24
_BARRIER_SHIFT = 20
_BARRIER_MASK = 0x7F
_NEW_ABI = 8
_NAMES_PER_BYTE = 8
# R_CUDA_ABS47_34 and R_CUDA_ABS55_16_34, which patch the target of a call or jump. The others against functions (56, 57, 112, 113) patch the halves
# of an address in a pair of moves: a return address or a function pointer.
_BRANCH_TARGET_RELOCATIONS = (58, 75)


def read_cubin(image: bytes, *, path: Path | None = None) -> Cubin:
    """Read the tables of a device image.

    Args:
        image: the ELF bytes.
        path: the file they came from, for errors and for :attr:`Cubin.path`.

    Raises:
        UnsupportedInputError: an ELF file for another machine, or for a GPU before compute capability 7.0.
        InputError: not an ELF file, or a damaged one; says where.
    """
    elf = read_elf(image, path=path)
    sm = read_architecture(elf)
    if 0 < sm < OLDEST_ARCHITECTURE:
        raise UnsupportedInputError(
            f"the image is for sm_{sm}, whose instructions are not read",
            path=path,
            place="ELF header",
            remedy="build for compute capability 7.0 or later",
        )
    reader = _FunctionReader(elf, image)
    functions = reader.read_all()
    table = elf.find_section(".nv.callgraph")
    direct, indirect = read_call_table(elf.section_bytes(table) if table is not None else b"", reader.name_symbol)
    return Cubin(
        path=path,
        sm=sm,
        sha256=hashlib.sha256(image).hexdigest(),
        image=image,
        functions=functions,
        calls=direct,
        indirect_calls=indirect,
        has_lines=_holds(elf, LINE_SECTION),
        has_ptx_lines=_holds(elf, PTX_LINE_SECTION)
        and any(name.startswith(PTX_TEXT_PREFIX) for name in elf.section_names),
        debug_functions=_read_debug_functions(elf, functions),
    )


def _read_debug_functions(elf: ElfImage, functions: Mapping[str, Function]) -> frozenset[str]:
    """The functions that were compiled with -G; all of them where the image does not say which."""
    if not _holds(elf, _DEBUG_REGISTER_SECTION):
        return frozenset()
    table = elf.find_section(_DEBUG_TYPE_SECTION)
    data = b"" if table is None else elf.section_bytes(table)
    found, start = set(), 0
    while start < len(data):
        end = data.find(b"\0", start)
        counted = end + 5
        if end < 0 or counted > len(data):
            return frozenset(functions)
        found.add(data[start:end].decode(errors="replace"))
        start = counted + int.from_bytes(data[end + 1 : counted], "little")
    known = found & functions.keys()
    return frozenset(known or functions)


def read_architecture(elf: ElfImage) -> int:
    """The architecture number of a device image, e.g. 90; 0 when the flags do not say.

    Raises:
        UnsupportedInputError: the file is not for an NVIDIA GPU.
    """
    if elf.machine != CUDA_MACHINE:
        raise UnsupportedInputError(
            f"an ELF file for machine {elf.machine}, not for an NVIDIA GPU",
            path=elf.path,
            place="ELF header",
            remedy="give a cubin, or the program or library that embeds one",
        )
    return (elf.flags >> 8 if elf.abi_version >= _NEW_ABI else elf.flags) & 0xFF


class _FunctionReader:
    """Gathers the facts about each ``.text.`` section from the tables of one image."""

    def __init__(self, elf: ElfImage, image: bytes) -> None:
        self.elf = elf
        self.symbols = Symbols.of(elf)
        self.image = image
        self.symbols_in = self.symbols.group_by_section(FUNCTION_SYMBOL)
        info = elf.find_section(".nv.info")
        self.attributes = read_symbol_attributes(elf.section_bytes(info) if info is not None else b"", path=elf.path)
        self.info_of: dict[int, int] = {}
        self.shared_of: dict[int, int] = {}
        self.relocations_of: dict[int, list[int]] = defaultdict(list)
        # As lists, because numbers out of a list cost a tenth of those out of a structured array.
        self.offsets: list[int] = elf.sections["offset"].tolist()
        self.sizes: list[int] = elf.sections["size"].tolist()
        self.infos: list[int] = elf.sections["info"].tolist()
        for index, name in enumerate(elf.section_names):
            if name.startswith(_INFO_PREFIX):
                self.info_of[self.infos[index]] = index
            elif name.startswith(_SHARED_PREFIX):
                self.shared_of[self.infos[index]] = self.sizes[index]
            elif name.startswith((".rel.text.", ".rela.text.")) and self.sizes[index]:
                self.relocations_of[self.infos[index]].append(index)
        self.names = _name_functions(elf)  # section index → unique function name, in section order
        # section index → index of the function's own symbol, where there is one
        self.own_symbols = {index: own for index in self.names if (own := self._find_own_symbol(index)) is not None}
        self.name_of_own = {own: self.names[index] for index, own in self.own_symbols.items()}

    def name_symbol(self, index: int) -> str | None:
        """The function a symbol stands for: the unique name of one in this image, else the symbol's own; None when it is no function."""
        if not self.symbols.is_function(index):
            return None
        return self.name_of_own.get(index) or self.symbols.name(index)

    def read_all(self) -> dict[str, Function]:
        """Unique name → function, in section order."""
        return {name: self._read_function(index, name) for index, name in self.names.items()}

    def _read_function(self, index: int, name: str) -> Function:
        own = self.own_symbols.get(index)
        size = self.sizes[index] // INSTRUCTION_BYTES * INSTRUCTION_BYTES
        place = self.elf.place(index)
        info = self.elf.section_bytes(self.info_of[index]) if index in self.info_of else None
        stack = self._attribute(Attribute.MIN_STACK_SIZE, own)
        registers = self._attribute(Attribute.REGISTER_COUNT, own)
        if registers is None and self.elf.abi_version < _NEW_ABI:
            registers = self.infos[index] >> _REGISTER_SHIFT or None
        return Function(
            name=name,
            is_entry=own is not None and self.symbols.is_entry(own),
            symbol_index=own,
            section_index=index,
            image=self.image,
            code_start=self.offsets[index],
            size_bytes=size,
            registers=registers,
            barriers=self._count_barriers(index, info),
            frame_bytes=self._attribute(Attribute.FRAME_SIZE, own),
            stack_bytes=None if stack == UNKNOWN_STACK else stack,
            shared_static_bytes=self.shared_of.get(index, 0),
            sub_functions=self._find_sub_functions(index, own, size),
            indirect_branch_targets=read_branch_targets(info, path=self.elf.path, place=place) if info else {},
            call_symbols=self._find_call_symbols(index),
        )

    def _attribute(self, attribute: Attribute, symbol: int | None) -> int | None:
        return self.attributes[attribute].get(symbol) if symbol is not None else None

    def _find_own_symbol(self, index: int) -> int | None:
        """The section names its symbol in the low bits of ``sh_info``; where that is damaged, the name decides."""
        noted = self.infos[index] & _OWN_SYMBOL_MASK
        here = self.symbols_in.get(index, [])
        if noted in here:
            return noted
        wanted = self.elf.section_names[index][len(_TEXT_PREFIX) :]
        return next((symbol for symbol in here if self.symbols.name(symbol) == wanted), None)

    def _count_barriers(self, index: int, info: bytes | None) -> int | None:
        if self.elf.abi_version < _NEW_ABI:
            return int(self.elf.sections[index]["flags"]) >> _BARRIER_SHIFT & _BARRIER_MASK
        if info is None:
            return None
        # The attribute is left out of functions that use none.
        return read_barrier_count(info, path=self.elf.path, place=self.elf.place(index)) or 0

    def _find_sub_functions(self, index: int, own: int | None, size: int) -> tuple[SubFunction, ...]:
        found = []
        for symbol in self.symbols_in.get(index, []):
            if symbol == own:
                continue
            row = self.symbols.table[symbol]
            start = int(row["value"])
            if start >= size and own is not None:
                # In images dumped after loading the values of functions are run-time addresses.
                start -= int(self.symbols.table[own]["value"])
            if 0 <= start < size:
                length = min(int(row["size"]), size - start)
                found.append(SubFunction(name=self.symbols.name(symbol), start_offset=start, size_bytes=length))
        return tuple(sorted(found, key=lambda sub: (sub.start_offset, sub.name)))

    def _find_call_symbols(self, index: int) -> dict[int, str]:
        found: dict[int, str] = {}
        for section in self.relocations_of.get(index, []):
            rows = self.elf.read_relocation_section(section)
            for row in rows[np.isin(rows["type"], _BRANCH_TARGET_RELOCATIONS)]:
                callee = self.name_symbol(int(row["symbol"]))
                if callee is not None:
                    found[int(row["offset"]) // INSTRUCTION_BYTES * INSTRUCTION_BYTES] = callee
        return dict(sorted(found.items())) if found else found


def _name_functions(elf: ElfImage) -> dict[int, str]:
    """Section index → name of its function, made unique, in section order."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    kinds = elf.sections["type"].tolist()
    allowance = Allowance(_NAMES_PER_BYTE * len(elf.data), path=elf.path, place="section names")
    for index, section_name in enumerate(elf.section_names):
        if kinds[index] != _PROGRAM_BITS or not section_name.startswith(_TEXT_PREFIX):
            continue
        allowance.spend(len(section_name))
        name = section_name[len(_TEXT_PREFIX) :]
        while name in taken:
            name = f"{name}@{index}"
        taken.add(name)
        names[index] = name
    return names


def _holds(elf: ElfImage, name: str) -> bool:
    index = elf.find_section(name)
    return index is not None and int(elf.sections[index]["size"]) > 0


_SPILL_KIND = 1
_THREE = struct.Struct("<III")


class CompiledLimits(Struct, frozen=True, kw_only=True):
    """The bounds of one function."""

    # threads of a block that ``__launch_bounds__`` or ``__block_size__`` names; None without one
    most_threads: int | None = None
    is_block_required: bool = False  # blocks must be of exactly that size
    register_cap: int | None = None  # registers per thread the compiler was allowed; None when not stored
    # pc offsets of the stores and reloads of spilled registers, ascending. Empty where nothing was spilled, and in images of compilers that do not
    # say (before CUDA 13).
    spill_offsets: tuple[int, ...] = ()


def read_compiled_limits(cubin: Cubin) -> Mapping[str, CompiledLimits]:
    """The bounds of the functions of an image, by mangled name; functions without any are missing.

    Args:
        cubin: the image.

    Raises:
        InputError: the image is damaged.
    """
    elf = read_elf(cubin.image, path=cubin.path)
    found: dict[str, CompiledLimits] = {}
    for index, name in enumerate(elf.section_names):
        function = name.removeprefix(_INFO_PREFIX)
        if function != name and function in cubin.functions:
            size = cubin.functions[function].size_bytes
            found[function] = _read_limits(elf.section_bytes(index), size, place=elf.place(index))
    return found


def _read_limits(data: bytes, size_bytes: int, *, place: str) -> CompiledLimits:
    most_threads: int | None = None
    is_required = False
    cap: int | None = None
    spills: tuple[int, ...] = ()
    for attribute, value, payload in walk_records(data, path=None, place=place):
        if attribute in (Attribute.MAX_THREADS, Attribute.REQUIRED_THREADS) and len(payload) >= _THREE.size:
            x, y, z = _THREE.unpack_from(payload)
            # What must be counts more than what may be.
            if attribute == Attribute.REQUIRED_THREADS or not is_required:
                most_threads = x * max(y, 1) * max(z, 1) or None
            is_required = is_required or attribute == Attribute.REQUIRED_THREADS
        elif attribute == Attribute.REGISTER_CAP:
            cap = value or None
        elif attribute == Attribute.ANNOTATIONS:
            spills = _read_spills(payload, size_bytes)
    return CompiledLimits(
        most_threads=most_threads, is_block_required=is_required, register_cap=cap, spill_offsets=spills
    )


def _read_spills(payload: bytes, size_bytes: int) -> tuple[int, ...]:
    """Offsets that lie outside the function, or between instructions, are damage and passed over."""
    pairs = np.frombuffer(payload, dtype="<u4", count=len(payload) // _PAIR_BYTES * 2).reshape(-1, 2)
    offsets = pairs[pairs[:, 0] == _SPILL_KIND, 1].astype(np.int64)
    kept = offsets[(offsets < size_bytes) & (offsets % INSTRUCTION_BYTES == 0)]
    return tuple(find_distinct(kept).tolist())
