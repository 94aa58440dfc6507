"""Finds and runs the sequences of one function in a line section, without running those of the others.

Each sequence starts with an address operand that a relocation ties to a function symbol. In images dumped after loading (Nsight Compute
2020.3 to 2022.1) the operand is the run-time address already, and so is the value of the function's symbol; otherwise both are 0.
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import InputError
from gpa_lsp.binary.allowance import DAMAGED
from gpa_lsp.binary.elf import ElfImage
from gpa_lsp.binary.line_program import (
    END_SEQUENCE,
    SET_ADDRESS_HEAD,
    LineRows,
    run_sequence,
)
from gpa_lsp.binary.line_units import LineUnit, read_units
from gpa_lsp.binary.model import Function


def find_sequences(elf: ElfImage, section: int, function: Function) -> Iterator[tuple[LineUnit, LineRows]]:
    """Run the sequences of a function.

    Args:
        elf: the image.
        section: index of ``.debug_line`` or ``.nv_debug_line_sass``.
        function: whose rows are wanted.

    Yields:
        The unit and the rows of each sequence, in file order; addresses are offsets from the function section's start, within its size.

    Raises:
        InputError: the section is damaged, or places rows outside the function.
    """
    finder = _SequenceFinder(elf, section, function)
    # A sequence that reaches over the next operand contains it; running that one again would let overlapping sequences cost quadratic time.
    done = 0
    for operand in finder.own_operands():
        if operand < done:
            continue
        unit, start = finder.find_start(operand)
        rows = run_sequence(finder.data, unit, start, resolve=finder.resolve, path=elf.path, place=finder.place)
        done = rows.end
        finder.check(rows)
        yield unit, rows


class _SequenceFinder:
    def __init__(self, elf: ElfImage, section: int, function: Function) -> None:
        self.path: Path | None = elf.path
        self.place = elf.place(section)
        self.data = elf.section_bytes(section)
        self.function = function
        self.size = int(elf.sections[function.section_index]["size"])
        self._symbols = elf.read_symbols()
        self._relocations = self._own_relocations(elf.read_relocations(section))
        self._units: tuple[LineUnit, ...] = ()
        self._starts_of: dict[int, list[int]] = {}

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
        address += symbol_value if symbol_value < self.size else -symbol_value
        if not 0 <= address <= self.size:
            raise self._fail(f"the address operand at 0x{operand:x} is outside the function")
        return address

    def check(self, rows: LineRows) -> None:
        """Refuse rows outside the function."""
        highest = max(rows.addresses, default=0)
        if max(highest, rows.end_address or 0) > self.size:
            raise self._fail(f"a row is at 0x{max(highest, rows.end_address or 0):x}, outside the function")

    def find_start(self, operand: int) -> tuple[LineUnit, int]:
        """The unit and the first opcode of the sequence that an address operand is in."""
        if not self._units:
            self._units = read_units(self.data, path=self.path, place=self.place)
        number = bisect_right([unit.start for unit in self._units], operand) - 1
        if number < 0 or not self._units[number].program_start < operand < self._units[number].end:
            raise self._fail(f"the address operand at 0x{operand:x} is outside every program")
        unit = self._units[number]
        start = operand - len(SET_ADDRESS_HEAD)
        if self.data[start:operand] == SET_ADDRESS_HEAD and (
            start == unit.program_start or self.data[start - len(END_SEQUENCE) : start] == END_SEQUENCE
        ):
            return unit, start
        # Every sequence seen starts with its address; for one that does not, the unit's program has to be walked from its first opcode.
        starts = self._starts_of.setdefault(number, self._walk(unit))
        return unit, starts[bisect_right(starts, operand) - 1]

    def _walk(self, unit: LineUnit) -> list[int]:
        starts = [unit.program_start]
        while True:
            rows = run_sequence(self.data, unit, starts[-1], resolve=lambda *_: 0, path=self.path, place=self.place)
            if rows.end >= unit.end:
                return starts
            starts.append(rows.end)

    def _own_relocations(self, rows: npt.NDArray[np.void]) -> dict[int, tuple[int, int]]:
        """Offset of each operand of this function → (value of its symbol, addend)."""
        known = rows[rows["symbol"] < len(self._symbols)]
        targets = self._symbols[known["symbol"]]
        own = targets["section"] == self.function.section_index
        values = targets["value"][own].tolist()
        return {
            offset: (value, addend)
            for offset, value, addend in zip(
                known["offset"][own].tolist(), values, known["addend"][own].tolist(), strict=True
            )
        }

    def _fail(self, message: str) -> InputError:
        return InputError(f"{message} ({self.function.name})", path=self.path, place=self.place, remedy=DAMAGED)
