"""The ELF container: sections, symbols, relocations and strings, as numpy columns.

Device images and host programs are read by the same code. pyelftools is not used here: its import costs 0.09 s of processor time, where a first
answer takes 0.75 s; it builds one Python object per section and symbol (0.3 s for an image with 6,000 sections, where columns take 5 ms), and its
symbol parser drops bit 0x10 of ``st_other``, which is what tells a kernel from a device function. The tests compare this reader with it.

Every offset, size and index of the file is checked before it is used.

Source: System V ABI, ELF-64 object file format; the CUDA particulars are in :mod:`gpa_lsp.code.binary.cubin`.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.byte_reader import FileBytes, StringTable, damaged
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.records import ColumnRecord

ELF_MAGIC = b"\x7fELF"
ELF_64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
HEADER_BYTES = 64

SYMBOL_TABLE = 2  # ``sh_type`` of ``.symtab``
RELOCATIONS_WITH_ADDEND = 4
NO_BITS = 8
RELOCATIONS = 9
# NVIDIA's attribute and call-graph sections; its higher types include unlinked shared and local memory, which have a size but no bytes
_LAST_TYPE_WITH_BITS = 0x70000001
FUNCTION_SYMBOL = 2  # Low four bits of ``st_info`` (STT_FUNC)

SECTION_DTYPE = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("alignment", "<u8"),
        ("entry_size", "<u8"),
    ]
)
SYMBOL_DTYPE = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_ADDEND_DTYPE = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_PLAIN_DTYPE = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4")])

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_EXTENDED_INDEX = 0xFFFF
_STRIPPED_BYTES = 1  # CuPy takes the last byte of what NVRTC gives for the end of a text, and leaves it out

# Sections may share bytes (the PTX of both copies of the code does); reading them all must not cost many times the file
_MOST_OVERLAP = 4


class ElfImage(ColumnRecord, frozen=True, kw_only=True):
    """An ELF file whose section table has been read and checked."""

    data: bytes | FileBytes  # the whole file
    path: Path | None  # its name, for errors; None for bytes from elsewhere
    machine: int  # ``e_machine``
    abi_version: int  # ``e_ident[EI_ABIVERSION]``
    flags: int  # ``e_flags``
    # structured array of :data:`SECTION_DTYPE`; those that have bytes lie inside the file
    sections: npt.NDArray[np.void]
    section_names: tuple[str, ...]  # one per section

    def find_section(self, name: str) -> int | None:
        """Index of the first section of that name, None when there is none."""
        return self.section_names.index(name) if name in self.section_names else None

    def section_bytes(self, index: int) -> bytes:
        """The content of a section; empty for one that occupies no space in the file (``.bss``)."""
        section = self.sections[index]
        if section["type"] == NO_BITS:
            return b""
        start = int(section["offset"])
        return bytes(self.data[start : start + int(section["size"])])

    def place(self, index: int) -> str:
        """Name of a section in error messages."""
        return f"section {self.section_names[index]}"

    def read_strings(self, index: int) -> StringTable:
        """The string table in a section.

        Raises:
            InputError: there is no such section.
        """
        if not 0 <= index < len(self.sections):
            raise damaged(f"string table {index} does not exist", path=self.path, place=None)
        return StringTable(self.section_bytes(index), path=self.path, place=self.place(index))

    def read_symbols(self) -> npt.NDArray[np.void]:
        """``.symtab`` as an array of :data:`SYMBOL_DTYPE`; empty when there is none."""
        tables = np.flatnonzero(self.sections["type"] == SYMBOL_TABLE)
        if len(tables) == 0:
            return np.empty(0, dtype=SYMBOL_DTYPE)
        return _read_rows(self.section_bytes(int(tables[0])), SYMBOL_DTYPE)

    def symbol_names(self) -> StringTable:
        """The strings that the ``name`` column of the symbols points into; empty when there is no symbol table."""
        tables = np.flatnonzero(self.sections["type"] == SYMBOL_TABLE)
        if len(tables) == 0:
            return StringTable(b"", path=self.path, place="section .symtab")
        return self.read_strings(int(self.sections[int(tables[0])]["link"]))

    def read_relocations(self, target: int) -> npt.NDArray[np.void]:
        """All relocations that patch one section.

        Args:
            target: index of the section that is patched.

        Returns:
            Structured array with ``offset`` (bytes in the target section), ``type``, ``symbol`` (index; None of them is checked here) and
            ``addend`` (0 for entries whose addend is in the patched bytes), in file order.
        """
        kinds = self.sections["type"]
        chosen = (self.sections["info"] == target) & ((kinds == RELOCATIONS) | (kinds == RELOCATIONS_WITH_ADDEND))
        parts = [self.read_relocation_section(int(index)) for index in np.flatnonzero(chosen)]
        return np.concatenate(parts) if parts else np.empty(0, dtype=_ADDEND_DTYPE)

    def read_relocation_section(self, index: int) -> npt.NDArray[np.void]:
        """The entries of one relocation section, as in :meth:`read_relocations`."""
        data = self.section_bytes(index)
        if self.sections[index]["type"] == RELOCATIONS_WITH_ADDEND:
            return _read_rows(data, _ADDEND_DTYPE)
        plain = _read_rows(data, _PLAIN_DTYPE)
        rows = np.zeros(len(plain), dtype=_ADDEND_DTYPE)
        for column in ("offset", "type", "symbol"):
            rows[column] = plain[column]
        return rows


def read_elf(data: bytes | FileBytes, *, path: Path | None = None) -> ElfImage:
    """Read the section table of a 64-bit little-endian ELF file.

    Args:
        data: the file; anything behind the last section is ignored.
        path: its name, for errors.

    Raises:
        UnsupportedInputError: an ELF file of another class or byte order.
        InputError: not an ELF file, or a damaged one.
    """
    if data[:4] != ELF_MAGIC:
        raise InputError("this is not an ELF file", path=path, place="offset 0x0", remedy="give a cubin or a program")
    if len(data) < HEADER_BYTES:
        raise damaged("the file ends inside its header", path=path, place="offset 0x0")
    if data[: len(ELF_64_LITTLE_ENDIAN)] != ELF_64_LITTLE_ENDIAN:
        raise UnsupportedInputError(
            "only 64-bit little-endian ELF files are read",
            path=path,
            place="offset 0x4",
            remedy="build for a 64-bit target",
        )
    header = _HEADER.unpack(data[:HEADER_BYTES])
    if header[5] + header[9] * header[10] > len(data) + _STRIPPED_BYTES:
        # Not read, but often the last thing in a cubin: what cuts them off tells that the file is cut.
        raise damaged("the program headers reach past the end of the file", path=path, place="ELF header")
    identification, machine, table_start, flags = header[0], header[2], header[6], header[7]
    sections = _read_section_table(data, start=table_start, entry_bytes=header[11], count=header[12], path=path)
    names_index = int(sections[0]["link"]) if header[13] == _EXTENDED_INDEX and len(sections) else header[13]
    return ElfImage(
        data=data,
        path=path,
        machine=machine,
        abi_version=identification[8],
        flags=flags,
        sections=sections,
        section_names=_read_section_names(data, sections, names_index, path=path),
    )


def measure_elf(data: bytes | FileBytes) -> int:
    """Offset behind the last byte that belongs to an ELF file which may have something else behind it."""
    sections = read_elf(data).sections
    header = _HEADER.unpack(data[:HEADER_BYTES])
    ends: list[int] = [HEADER_BYTES, header[5] + header[9] * header[10], header[6] + sections.nbytes]
    has_bits = sections["type"] != NO_BITS
    starts, sizes = sections["offset"][has_bits].tolist(), sections["size"][has_bits].tolist()
    ends.extend(start + size for start, size in zip(starts, sizes, strict=True))
    return min(max(ends), len(data))


def _read_rows(data: bytes, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """The whole rows in ``data``; a part of a row at the end is cut."""
    return np.frombuffer(data, dtype=dtype, count=len(data) // dtype.itemsize)


def _read_section_table(
    data: bytes | FileBytes, *, start: int, entry_bytes: int, count: int, path: Path | None
) -> npt.NDArray[np.void]:
    if start == 0:
        return np.empty(0, dtype=SECTION_DTYPE)
    place = f"section table at 0x{start:x}"
    if entry_bytes != SECTION_DTYPE.itemsize:
        raise damaged(f"section entries are {entry_bytes} bytes long", path=path, place=place)
    if start + SECTION_DTYPE.itemsize > len(data):
        raise damaged("the section table is outside the file", path=path, place=place)
    if count == 0:
        # Files with 65,280 sections or more keep the number in the first entry's size.
        count = int(np.frombuffer(data[start : start + SECTION_DTYPE.itemsize], dtype=SECTION_DTYPE)[0]["size"])
    end = start + count * SECTION_DTYPE.itemsize
    if end > len(data):
        raise damaged(f"{count} sections do not fit into the file of {len(data)} bytes", path=path, place=place)
    sections = np.frombuffer(data[start:end], dtype=SECTION_DTYPE)
    size = np.uint64(len(data))
    # In unsigned arithmetic offset + size can wrap around, hence the subtraction from the file's size.
    room = size - np.minimum(sections["offset"], size)
    has_bits = (sections["type"] != NO_BITS) & (sections["type"] <= _LAST_TYPE_WITH_BITS)
    outside = np.flatnonzero(has_bits & (sections["size"] > room))
    if len(outside):
        wrong = sections[int(outside[0])]
        raise damaged(
            f"section {int(outside[0])} (offset 0x{int(wrong['offset']):x}, {int(wrong['size'])} bytes) reaches past the end of the file",
            path=path,
            place=place,
        )
    if int(sections["size"][has_bits].sum(dtype=np.float64)) > _MOST_OVERLAP * len(data):
        raise damaged("the sections share the same bytes many times", path=path, place=place)
    return sections


def _read_section_names(
    data: bytes | FileBytes, sections: npt.NDArray[np.void], index: int, *, path: Path | None
) -> tuple[str, ...]:
    if len(sections) == 0:
        return ()
    if not 0 < index < len(sections):
        raise damaged(f"section {index} cannot hold the section names", path=path, place="header")
    start = int(sections[index]["offset"])
    content = b"" if sections[index]["type"] == NO_BITS else bytes(data[start : start + int(sections[index]["size"])])
    strings = StringTable(content, path=path, place=f"section {index} (section names)")
    return tuple(strings.read(offset) for offset in sections["name"].tolist())


# ``.nv.info``: what the assembler notes about functions (EIATTR records).
#
# A record is ``u8 format, u8 attribute, u16 value``; format 4 has ``value`` bytes of payload behind it. The section ``.nv.info`` holds records
# whose payload starts with a symbol index, ``.nv.info.<function>`` those of one function.
#
# Source: formats and attribute numbers aligned with what nvdisasm prints for cubins of CUDA 11 to 13, sm_70 to sm_120.


class Attribute(IntEnum):
    """The attributes that are read."""

    MAX_THREADS = 0x05  # Three u32: the block of ``__launch_bounds__`` (``.maxntid``)
    REQUIRED_THREADS = 0x10  # Three u32: the block that must be launched (``.reqntid``, ``__block_size__``)
    FRAME_SIZE = 0x11
    MIN_STACK_SIZE = 0x12
    PARAMETER = 0x17  # u32 0, u16 its number, u16 its offset among the parameters, u32 with its size from bit 18 on
    # The most registers per thread that the compiler may use: a flag's, a launch bound's, or the architecture's
    REGISTER_CAP = 0x1B
    REGISTER_COUNT = 0x2F
    INDIRECT_BRANCH_TARGETS = 0x34
    BARRIER_COUNT = 0x4C
    # Pairs of u32: a kind, and the pc offset of an instruction. Kind 1 marks stores and reloads of spilled registers. Source: of 480 accesses to
    # local memory of the fixtures' spills, sm_75 to sm_120 of CUDA 13.5, all are listed, and of 120 accesses to arrays and saved registers none is.
    ANNOTATIONS = 0x55


PER_SYMBOL = (Attribute.FRAME_SIZE, Attribute.MIN_STACK_SIZE, Attribute.REGISTER_COUNT)
UNKNOWN_STACK = 0xFFFFFFFF  # Value of MIN_STACK_SIZE where recursion or calls through pointers leave it open

_RECORD_HEAD = struct.Struct("<BBH")
_FORMAT_VALUE = 2
_FORMAT_PAYLOAD = 4
_PAIR_DTYPE = np.dtype([("format", "u1"), ("attribute", "u1"), ("size", "<u2"), ("symbol", "<u4"), ("value", "<u4")])
_PAIR_BYTES = 8
_BRANCH_HEAD = struct.Struct("<III")


def read_symbol_attributes(data: bytes, *, path: Path | None = None) -> dict[Attribute, dict[int, int]]:
    """The records of a section ``.nv.info`` that give one number for a symbol.

    >>> found = read_symbol_attributes(bytes.fromhex("042f0800050000001a000000"))
    >>> found[Attribute.REGISTER_COUNT]
    {5: 26}
    """
    found: dict[Attribute, dict[int, int]] = {attribute: {} for attribute in PER_SYMBOL}
    pairs = np.frombuffer(data, dtype=_PAIR_DTYPE, count=len(data) // _PAIR_DTYPE.itemsize)
    uniform = (pairs["format"] == _FORMAT_PAYLOAD) & (pairs["size"] == _PAIR_BYTES)
    if len(data) % _PAIR_DTYPE.itemsize == 0 and uniform.all():
        # All records alike, as in every linked image: with thousands of functions the columns are much faster than a walk.
        for attribute in PER_SYMBOL:
            chosen = pairs[pairs["attribute"] == attribute]
            found[attribute] = dict(zip(chosen["symbol"].tolist(), chosen["value"].tolist(), strict=True))
        return found
    for number, _, payload in walk_records(data, path=path, place="section .nv.info"):
        if number in PER_SYMBOL and len(payload) == _PAIR_BYTES:
            symbol, value = struct.unpack("<II", payload)
            found[Attribute(number)][symbol] = value
    return found


def read_barrier_count(data: bytes, *, path: Path | None = None, place: str = "") -> int | None:
    """The number of CTA barriers a function uses, from its ``.nv.info.<function>``; None when it is not noted.

    >>> read_barrier_count(bytes.fromhex("031bff00" "024c0400"))
    4
    """
    if bytes((_FORMAT_VALUE, Attribute.BARRIER_COUNT)) not in data:
        return None
    for attribute, value, _ in walk_records(data, path=path, place=place):
        if attribute == Attribute.BARRIER_COUNT:
            return value & 0xFF
    return None


def read_branch_targets(data: bytes, *, path: Path | None = None, place: str = "") -> dict[int, tuple[int, ...]]:
    """Targets of indirect branches, from ``.nv.info.<function>``: pc offset of the branch → those it can reach.

    >>> read_branch_targets(bytes.fromhex("04341400" "d00d0000" "00000000" "02000000" "400e0000" "e00d0000"))
    {3536: (3648, 3552)}
    """
    targets: dict[int, tuple[int, ...]] = {}
    if bytes((_FORMAT_PAYLOAD, Attribute.INDIRECT_BRANCH_TARGETS)) not in data:
        return targets
    for attribute, _, payload in walk_records(data, path=path, place=place):
        if attribute == Attribute.INDIRECT_BRANCH_TARGETS:
            _add_branch_targets(targets, payload, path=path, place=place)
    return targets


def _add_branch_targets(targets: dict[int, tuple[int, ...]], payload: bytes, *, path: Path | None, place: str) -> None:
    """One record holds the lists of several branches one behind the other."""
    position = 0
    while position + _BRANCH_HEAD.size <= len(payload):
        pc_offset, _, count = _BRANCH_HEAD.unpack_from(payload, position)
        position += _BRANCH_HEAD.size
        if count > (len(payload) - position) // 4:
            raise damaged(f"the branch at 0x{pc_offset:x} claims {count} targets", path=path, place=place)
        targets[pc_offset] = struct.unpack_from(f"<{count}I", payload, position)
        position += 4 * count


def walk_records(data: bytes, *, path: Path | None, place: str) -> Iterator[tuple[int, int, bytes]]:
    """(attribute, value, payload) of each record; the payload is empty for the formats without one."""
    position = 0
    while position + _RECORD_HEAD.size <= len(data):
        form, attribute, value = _RECORD_HEAD.unpack_from(data, position)
        position += _RECORD_HEAD.size
        if form != _FORMAT_PAYLOAD:
            yield attribute, value, b""
            continue
        if position + value > len(data):
            raise damaged(
                f"attribute 0x{attribute:x} at offset 0x{position - _RECORD_HEAD.size:x} reaches past the end",
                path=path,
                place=place,
            )
        yield attribute, value, data[position : position + value]
        position += value
