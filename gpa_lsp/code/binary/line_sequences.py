"""Finds and runs the sequences of one function in a line section, without running those of the others.

Each sequence starts with an address operand that a relocation ties to a function symbol. In images dumped after loading (Nsight Compute
2020.3 to 2022.1) the operand is the run-time address already, and so is the value of the function's symbol; otherwise both are 0.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.byte_reader import DAMAGED
from gpa_lsp.code.binary.elf import ElfImage
from gpa_lsp.code.binary.line_program import (
    END_SEQUENCE,
    SET_ADDRESS_HEAD,
    LineRows,
    run_sequence,
)
from gpa_lsp.code.binary.line_units import LineUnit, read_units
from gpa_lsp.code.binary.model import Function
from gpa_lsp.foundation.errors import InputError


class LineSection:
    """A line section with what finding the sequences of any of its functions needs, which is read once.

    Args:
        elf: the image.
        section: index of ``.debug_line`` or ``.nv_debug_line_sass``.

    Attributes:
        elf: the image.
        place: the section, for errors.
        data: its bytes.
    """

    def __init__(self, elf: ElfImage, section: int) -> None:
        self.elf = elf
        self.place = elf.place(section)
        self.data = elf.section_bytes(section)
        self._operands = _group_operands(elf.read_relocations(section), elf.read_symbols())
        self._units: tuple[LineUnit, ...] = ()
        self._unit_starts: list[int] = []
        self._starts_of: dict[int, list[int]] = {}

    def find_operands(self, function: Function) -> Mapping[int, tuple[int, int]]:
        """Offset of each address operand of a function → (value of its symbol, addend)."""
        return self._operands.get(function.section_index, {})

    def find_unit(self, operand: int) -> tuple[int, LineUnit] | None:
        """The unit whose program an operand is in, with its number; None where it is in none."""
        if not self._units:
            self._units = read_units(self.data, path=self.elf.path, place=self.place)
            self._unit_starts = [unit.start for unit in self._units]
        number = bisect_right(self._unit_starts, operand) - 1
        if number < 0 or not self._units[number].program_start < operand < self._units[number].end:
            return None
        return number, self._units[number]

    def list_starts(self, number: int) -> list[int]:
        """Where the sequences of a unit start, by walking its program from its first opcode."""
        if number not in self._starts_of:
            self._starts_of[number] = self._walk(self._units[number])
        return self._starts_of[number]

    def _walk(self, unit: LineUnit) -> list[int]:
        starts = [unit.program_start]
        while True:
            rows = run_sequence(self.data, unit, starts[-1], resolve=lambda *_: 0, path=self.elf.path, place=self.place)
            if rows.end >= unit.end:
                return starts
            starts.append(rows.end)


def _group_operands(rows: npt.NDArray[np.void], symbols: npt.NDArray[np.void]) -> dict[int, dict[int, tuple[int, int]]]:
    """Section of a function → offset of each of its address operands → (value of its symbol, addend)."""
    known = rows[rows["symbol"] < len(symbols)]
    targets = symbols[known["symbol"]]
    found: dict[int, dict[int, tuple[int, int]]] = {}
    for section, offset, value, addend in zip(
        targets["section"].tolist(),
        known["offset"].tolist(),
        targets["value"].tolist(),
        known["addend"].tolist(),
        strict=True,
    ):
        found.setdefault(section, {})[offset] = value, addend
    return found


def find_sequences(lines: LineSection, function: Function) -> Iterator[tuple[LineUnit, LineRows]]:
    """Run the sequences of a function.

    Yields:
        The unit and the rows of each sequence, in file order; addresses are offsets from the function section's start, within its size.

    Raises:
        InputError: the section is damaged, or places rows outside the function.
    """
    finder = _SequenceFinder(lines, function)
    # A sequence that reaches over the next operand contains it; running that one again would let overlapping sequences cost quadratic time.
    done = 0
    for operand in finder.own_operands():
        if operand < done:
            continue
        unit, start = finder.find_start(operand)
        rows = run_sequence(lines.data, unit, start, resolve=finder.resolve, path=lines.elf.path, place=lines.place)
        done = rows.end
        finder.check(rows)
        yield unit, rows


class _SequenceFinder:
    def __init__(self, lines: LineSection, function: Function) -> None:
        self._lines = lines
        self._function = function
        self._size = int(lines.elf.sections[function.section_index]["size"])
        self._relocations = lines.find_operands(function)

    def own_operands(self) -> list[int]:
        """Offsets of the address operands that belong to the function, ascending."""
        return sorted(self._relocations)

    def resolve(self, operand: int, value: int) -> int:
        """The section offset that an address operand stands for."""
        if operand not in self._relocations:
            raise self._fail(f"the address operand at 0x{operand:x} belongs to another function")
        symbol_value, addend = self._relocations[operand]
        address = value + addend
        # Values of 0 are relative; a value inside the section is that of a local function; all others are run-time addresses.
        address += symbol_value if symbol_value < self._size else -symbol_value
        if not 0 <= address <= self._size:
            raise self._fail(f"the address operand at 0x{operand:x} is outside the function")
        return address

    def check(self, rows: LineRows) -> None:
        """Refuse rows outside the function."""
        highest = max(rows.addresses, default=0)
        if max(highest, rows.end_address or 0) > self._size:
            raise self._fail(f"a row is at 0x{max(highest, rows.end_address or 0):x}, outside the function")

    def find_start(self, operand: int) -> tuple[LineUnit, int]:
        """The unit and the first opcode of the sequence that an address operand is in."""
        lines = self._lines
        found = lines.find_unit(operand)
        if found is None:
            raise self._fail(f"the address operand at 0x{operand:x} is outside every program")
        number, unit = found
        start = operand - len(SET_ADDRESS_HEAD)
        if lines.data[start:operand] == SET_ADDRESS_HEAD and (
            start == unit.program_start or lines.data[start - len(END_SEQUENCE) : start] == END_SEQUENCE
        ):
            return unit, start
        # Every sequence seen starts with its address; for one that does not, the unit's program has to be walked from its first opcode.
        starts = lines.list_starts(number)
        return unit, starts[bisect_right(starts, operand) - 1]

    def _fail(self, message: str) -> InputError:
        lines = self._lines
        return InputError(f"{message} ({self._function.name})", path=lines.elf.path, place=lines.place, remedy=DAMAGED)
