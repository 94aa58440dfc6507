"""Line-number programs: the byte codes of ``.debug_line`` → rows.

The program of a unit is a list of sequences, one per function. NVIDIA adds an extended opcode for inlined code: 0x90 gives the *context* of
the rows that follow, the 1-based number of the row in the same sequence that is the call site, 0 = not inlined, and the inlined function's
name as an offset in ``.debug_str``, counted from the number that stands behind the file names in the unit's header.

Source: DWARF 2, section 6.2 (versions 3 and 4 add one field and some opcodes); the extension was checked against ``nvdisasm -gi`` on
700,000 instructions of public benchmark kernels for sm_70 to sm_120.
"""

import struct
from array import array
from collections.abc import Callable
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
    # (folder, name), number 1 first; the folder of the compilation, which is not in the section, is empty
    files: tuple[tuple[str, str], ...]
    # (modification time, seconds since 1970; length in bytes) of each file when it was compiled; zeros where the compiler did not say
    stamps: tuple[tuple[int, int], ...]
    # offset in ``.debug_str`` from which names of inlined functions count; None in a header without it
    names_base: int | None


def read_units(section: bytes, *, path: Path | None = None, place: str = "section .debug_line") -> tuple[LineUnit, ...]:
    """Read the headers of all units, without running their programs."""
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
    folders = []
    while folder := reader.text():
        folders.append(folder)
    files, stamps = [], []
    while name := reader.text():
        number = reader.unsigned()
        files.append((folders[number - 1] if 0 < number <= len(folders) else "", name))
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
        files=tuple(files),
        stamps=tuple(stamps),
        names_base=int.from_bytes(reader.take(4), "little") if rest >= 4 else None,
    )


ADDRESS_BYTES = 8
SET_ADDRESS_HEAD = b"\x00\x09\x02"  # DW_LNE_set_address with an 8-byte operand, up to the operand
END_SEQUENCE = b"\x00\x01\x01"

_ADDRESS = struct.Struct("<Q")
_HIGHEST_LINE = (1 << 31) - 1
_HIGHEST_ADDRESS = (1 << 48) - 1  # Far above any section, far below where 64-bit arithmetic wraps around

# Standard opcodes.
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
# Extended opcodes.
_END, _SET_ADDRESS, _INLINE_CALL = 0x01, 0x02, 0x90


class LineRows(Struct, frozen=True, kw_only=True):
    """The rows of one sequence, in the order in which the program emits them."""

    addresses: "array[int]"  # as resolved by the reader's caller, usually section offsets; signed 64-bit
    files: "array[int]"  # file numbers
    lines: "array[int]"  # 1-based line numbers, 0 = none
    # number (1-based, in this sequence) of the row that is the call site of inlined code; 0 = not inlined
    contexts: "array[int]"
    # offset of the inlined function's name from :attr:`LineUnit.names_base`; meaningful where the context is not 0
    names: "array[int]"
    end_address: int | None  # where the last row stops to hold; None when the program stops without an end
    end: int  # offset in the section of the first byte behind the sequence


def run_sequence(
    section: bytes,
    unit: LineUnit,
    start: int,
    *,
    resolve: Callable[[int, int], int],
    path: Path | None = None,
    place: str = "section .debug_line",
) -> LineRows:
    """Run one sequence of a unit's program."""
    return _Machine(ByteReader(section, position=start, end=unit.end, path=path, place=place), unit, resolve).run()


class _Machine:
    """The registers of the state machine, between opcodes."""

    def __init__(self, reader: ByteReader, unit: LineUnit, resolve: Callable[[int, int], int]) -> None:
        self.reader = reader
        self.unit = unit
        self.resolve = resolve
        self.address = 0
        self.context = 0
        self.name = 0
        self.rows = tuple(array(code) for code in "qiiqq")

    def run(self) -> LineRows:
        """Emit rows until the sequence ends.

        The loop is the hot part of opening a function (ten thousands of opcodes), hence the locals.
        """
        reader, data, end = self.reader, self.reader.data, self.reader.end
        add_address, add_file, add_line, add_context, add_name = (rows.append for rows in self.rows)
        opcode_base = len(self.unit.operand_counts) + 1
        line_base, line_range, scale = self.unit.line_base, self.unit.line_range, self.unit.instruction_bytes
        file, line = 1, 1
        end_address: int | None = None
        while reader.position < end:
            opcode = data[reader.position]
            reader.position += 1
            if opcode >= opcode_base:
                self.address += (opcode - opcode_base) // line_range * scale
                line += line_base + (opcode - opcode_base) % line_range
            elif opcode == _ADVANCE_PC:
                self.address += reader.unsigned() * scale
                continue
            elif opcode == _ADVANCE_LINE:
                line += reader.signed()
                continue
            elif opcode == _SET_FILE:
                file = reader.unsigned()
                continue
            elif opcode == 0:
                if self._run_extended():
                    end_address = self.address
                    break
                continue
            elif opcode != _COPY:
                self._run_rare(opcode)
                continue
            if not (0 <= line <= _HIGHEST_LINE and file <= _HIGHEST_LINE and self.address <= _HIGHEST_ADDRESS):
                raise reader.fail(f"file {file}, line {line} at address 0x{self.address:x} cannot be")
            add_address(self.address)
            add_file(file)
            add_line(line)
            add_context(self.context)
            add_name(self.name)
        addresses, files, lines, contexts, names = self.rows
        return LineRows(
            addresses=addresses,
            files=files,
            lines=lines,
            contexts=contexts,
            names=names,
            end_address=end_address,
            end=reader.position,
        )

    def _run_rare(self, opcode: int) -> None:
        """Standard opcodes without an effect on rows, and two rare ways of moving the address."""
        if opcode == _CONST_ADD_PC:
            opcode_base = len(self.unit.operand_counts) + 1
            self.address += (255 - opcode_base) // self.unit.line_range * self.unit.instruction_bytes
        elif opcode == _FIXED_ADVANCE_PC:
            self.address += int.from_bytes(self.reader.take(2), "little")
        else:
            for _ in range(self.unit.operand_counts[opcode - 1]):
                self.reader.unsigned()

    def _run_extended(self) -> bool:
        """An extended opcode; True when it ends the sequence."""
        reader = self.reader
        length = reader.unsigned()
        if length == 0:
            raise reader.fail("an extended opcode without a code")
        stop = reader.position + length
        if stop > reader.end:
            raise reader.fail("an extended opcode reaches past the end of the program")
        opcode = reader.byte()
        if opcode == _SET_ADDRESS and length == ADDRESS_BYTES + 1:
            operand = reader.position
            self.address = self.resolve(operand, _ADDRESS.unpack(reader.take(ADDRESS_BYTES))[0])
        elif opcode == _INLINE_CALL:
            self.context = reader.unsigned()
            self.name = reader.unsigned()
            if max(self.context, self.name) > _HIGHEST_LINE:
                raise reader.fail("the context of an inlined call cannot be")
        reader.position = stop
        return opcode == _END
