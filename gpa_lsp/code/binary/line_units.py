"""The headers of line tables: one per translation unit, with the names of its source files.

Source: DWARF 2, section 6.2.4; version 4 adds one field. NVIDIA appends a 32-bit number behind the file names, see
:attr:`LineUnit.names_base`.
"""

import struct
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.binary.byte_reader import ByteReader
from gpa_lsp.foundation.errors import UnsupportedInputError

_KNOWN_VERSIONS = (2, 3, 4)
_FIRST_VERSION_WITH_BUNDLES = 4
_LONG_FORMAT = 0xFFFFFFF0
_UNIT_HEAD = struct.Struct("<IHI")


class LineUnit(Struct, frozen=True, kw_only=True):
    """The header of one unit."""

    start: int  # offset of the unit in the section
    program_start: int  # offset of its first opcode
    end: int  # offset behind its last opcode
    instruction_bytes: int  # factor of the address advance of special opcodes
    line_base: int  # smallest line advance of a special opcode
    line_range: int  # number of different line advances
    operand_counts: bytes  # number of operands of each standard opcode, from opcode 1 on
    # number 1 first; number 0 is the folder of the compilation, which is not in the section
    directories: tuple[str, ...]
    files: tuple[tuple[str, int], ...]  # (name, number of the directory), number 1 first
    # (modification time, seconds since 1970; length in bytes) of each file when it was compiled; zeros where the compiler did not say
    stamps: tuple[tuple[int, int], ...]
    # offset in ``.debug_str`` from which names of inlined functions count; None in a header without it
    names_base: int | None


def read_units(section: bytes, *, path: Path | None = None, place: str = "section .debug_line") -> tuple[LineUnit, ...]:
    """Read the headers of all units, without running their programs.

    Raises:
        UnsupportedInputError: a unit of another DWARF version.
        InputError: a damaged header.
    """
    units: list[LineUnit] = []
    position = 0
    while position < len(section):
        unit = _read_unit(ByteReader(section, position=position, end=len(section), path=path, place=place))
        units.append(unit)
        position = unit.end
    return tuple(units)


def _read_unit(reader: ByteReader) -> LineUnit:
    start = reader.position
    length, version, header_length = _UNIT_HEAD.unpack(reader.take(_UNIT_HEAD.size))
    if length >= _LONG_FORMAT or version not in _KNOWN_VERSIONS:
        raise UnsupportedInputError(
            f"line tables of DWARF version {version} are not read" if length < _LONG_FORMAT else "a 64-bit line table",
            path=reader.path,
            place=f"{reader.place} offset 0x{start:x}",
            remedy="compile with nvcc -lineinfo, which writes version 2 or 3",
        )
    end = start + 4 + length
    program_start = reader.position + header_length
    if end > len(reader.data) or program_start > end:
        raise reader.fail(f"the unit at 0x{start:x} is longer than its section")
    reader.end = program_start
    instruction_bytes = reader.byte()
    reader.take(2 if version >= _FIRST_VERSION_WITH_BUNDLES else 1)
    line_base, line_range, opcode_base = struct.unpack("<bBB", reader.take(3))
    if line_range == 0 or opcode_base == 0:
        raise reader.fail("the header divides by zero")
    operand_counts = reader.take(opcode_base - 1)
    directories = []
    while directory := reader.text():
        directories.append(directory)
    files, stamps = [], []
    while name := reader.text():
        files.append((name, reader.unsigned()))
        stamps.append((reader.unsigned(), reader.unsigned()))
    rest = program_start - reader.position
    return LineUnit(
        start=start,
        program_start=program_start,
        end=end,
        instruction_bytes=instruction_bytes,
        line_base=line_base,
        line_range=line_range,
        operand_counts=operand_counts,
        directories=tuple(directories),
        files=tuple(files),
        stamps=tuple(stamps),
        names_base=int.from_bytes(reader.take(4), "little") if rest >= 4 else None,
    )
