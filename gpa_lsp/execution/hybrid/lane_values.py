"""Integers in the registers of all threads of some warps, as far as they follow from the launch: :class:`LaneValues`.

Values that come from memory, and floating-point ones, are not known: the paper decides branches and bounds on them without looking (Section
III-B1, case 3).
"""

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import (
    Address,
    Immediate,
    Operand,
    PtxFunction,
    PtxInstruction,
    Register,
    SpecialRegister,
    Symbol,
    list_writes,
)
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.execution.emulator.compiled.core_functions import LaneOperation, prepare_meanings
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.model import Meaning

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


class Value(Struct, frozen=True, eq=False):
    """An integer, an address or a predicate (0 or 1) of each thread."""

    numbers: Integers  # int64[threads]; the value of a type below 64 bits, or the bits of a longer one
    is_known: Marks  # bool[threads]


class LaneValues:
    """Registers of the threads of some warps, executed forward.

    Args:
        function: the kernel.
        parameters: its parameters' bytes.
        special: name and component of a special register → int64[threads].
        addresses: name of a variable → its address.
        threads: number of threads, of whole warps.
    """

    def __init__(
        self,
        function: PtxFunction,
        parameters: bytes,
        special: Mapping[tuple[str, str], Integers],
        addresses: Mapping[str, int],
        threads: int,
    ) -> None:
        self._function = function
        self._parameters = parameters
        self._offsets = {one.name: one.offset_bytes for one in function.parameters}
        self._special = special
        self._addresses = addresses
        self._nothing = Value(np.zeros(threads, dtype=np.int64), np.zeros(threads, dtype=bool))
        self._everywhere = np.ones(threads, dtype=bool)
        self._meanings = {
            one.index: meaning for one in function.instructions if (meaning := _find_followed(one)) is not None
        }
        prepare_meanings(self._meanings.values())
        self._operations: dict[int, LaneOperation] = {}
        self.registers: dict[int, Value] = {}

    def copy(self) -> "LaneValues":
        """One that goes on by itself."""
        other = copy(self)
        other.registers = dict(self.registers)
        return other

    def execute(self, instruction: PtxInstruction, active: Marks) -> None:
        """Execute an instruction in the active threads."""
        slots = list_writes(instruction)
        if not slots:
            return
        writes = active
        guard = None if instruction.guard is None else self.read_guard(instruction)
        if guard is not None:
            writes = active & ((guard.numbers != 0) | ~guard.is_known)
        value = (self._compute(instruction) if len(slots) == 1 else None) or self._nothing
        if guard is not None:
            value = Value(value.numbers, value.is_known & guard.is_known)
        for slot in slots:
            old = self.registers.get(slot)
            if old is None or bool(writes.all()):
                self.registers[slot] = Value(value.numbers, value.is_known & writes)
            else:
                self.registers[slot] = Value(
                    np.where(writes, value.numbers, old.numbers), np.where(writes, value.is_known, old.is_known)
                )

    def forget(self, instruction: PtxInstruction) -> None:
        """Mark the results of an instruction as unknown."""
        for slot in list_writes(instruction):
            self.registers[slot] = self._nothing

    def forget_lanes(self, slots: Iterable[int], lanes: Marks) -> None:
        """Mark registers as unknown in some threads."""
        for slot in slots:
            old = self.registers.get(slot)
            if old is not None:
                self.registers[slot] = Value(old.numbers, old.is_known & ~lanes)

    def read_guard(self, instruction: PtxInstruction) -> Value | None:
        """Value of an instruction's guard, 1 where it holds; None for one without."""
        guard = instruction.guard
        if guard is None:
            return None
        value = self.registers.get(guard.slot, self._nothing)
        return Value(1 - value.numbers, value.is_known) if guard.is_negated else value

    def find_address(self, operand: Address) -> Value:
        """The address of an access."""
        base = self._nothing if operand.base is None else self._read(operand.base)
        return Value(base.numbers + operand.offset_bytes, base.is_known)

    def _compute(self, instruction: PtxInstruction) -> Value | None:
        """The result of an instruction with one; None where it is not followed."""
        if instruction.opcode == "ld":
            return self._load_parameter(instruction)
        if any(one.is_float for one in instruction.types):
            return None
        sources = [self._read(one) for one in instruction.sources]
        if instruction.opcode == "cvta":
            return sources[0]
        if instruction.opcode == "selp" and len(sources) == 3:
            return self._select(sources)
        meaning = self._meanings.get(instruction.index)
        if meaning is None or not sources or len(meaning.sources) != len(sources):
            return None
        operation = self._operations.get(instruction.index)
        if operation is None:
            operation = self._operations[instruction.index] = LaneOperation(meaning)
        warps = (len(self._everywhere) // WARP_LANES, WARP_LANES)
        read = [_read_as(one.numbers, kind).reshape(warps) for one, kind in zip(sources, meaning.sources, strict=True)]
        found = operation.evaluate(self._everywhere.reshape(warps), *read)
        numbers = found[0] if meaning.carry else found
        known = np.logical_and.reduce([one.is_known for one in sources])
        return Value(numbers.reshape(-1).astype(np.int64), known)

    def _load_parameter(self, instruction: PtxInstruction) -> Value | None:
        operand = instruction.sources[0] if instruction.sources else None
        if not isinstance(operand, Address) or not isinstance(operand.base, Symbol) or not instruction.types:
            return None
        offset = self._offsets.get(operand.base.name)
        kind = instruction.types[-1]
        if offset is None or kind.is_float or kind.bytes > 8:
            return None
        offset += operand.base.offset_bytes + operand.offset_bytes
        content = self._parameters[offset : offset + kind.bytes]
        if len(content) != kind.bytes:
            return None
        return self._spread(int.from_bytes(content, "little", signed=kind.is_signed))

    def _select(self, sources: list[Value]) -> Value:
        first, second, chooser = sources
        takes = chooser.numbers != 0
        return Value(
            np.where(takes, first.numbers, second.numbers),
            np.where(takes, first.is_known, second.is_known) & chooser.is_known,
        )

    def _read(self, operand: Operand | None) -> Value:
        if isinstance(operand, Register):
            value = self.registers.get(operand.slot, self._nothing)
            return Value(1 - value.numbers, value.is_known) if operand.is_negated else value
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return self._spread(operand.value)
        if isinstance(operand, SpecialRegister):
            numbers = self._special.get((operand.name, operand.component))
            return self._nothing if numbers is None else Value(numbers, self._everywhere)
        if isinstance(operand, Symbol) and operand.name in self._addresses:
            return self._spread(self._addresses[operand.name] + operand.offset_bytes)
        return self._nothing

    def _spread(self, number: int) -> Value:
        bits = np.array(number & 0xFFFF_FFFF_FFFF_FFFF, np.uint64).view(np.int64)
        return Value(np.full(len(self._everywhere), bits), self._everywhere)


def _find_followed(instruction: PtxInstruction) -> Meaning | None:
    """Meaning of an integer instruction with one result; None for others, and for those that read other lanes or the carry flag."""
    if instruction.opcode in ("cvta", "selp") or any(one.is_float for one in instruction.types):
        return None
    found = find_meaning(instruction)
    is_followed = found is not None and len(found.results) == 1 and not found.exchanges and "k(" not in found.values[0]
    return found if is_followed else None


def _read_as(numbers: Integers, kind: ScalarType) -> npt.NDArray[Any]:
    """Values of registers in the type of an operation."""
    return numbers != 0 if kind is ScalarType.PRED else numbers.astype(kind.natural_dtype)
