"""What registers hold in all threads of some warps: integers, as far as they follow from the launch: :class:`LaneValues`.

Values that come from memory, and floating-point ones, are not known: the paper decides branches and bounds on them without looking (Section
III-B1, case 3).
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy

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

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


class Value(Struct, frozen=True, eq=False):
    """An integer, an address or a predicate (0 or 1) of each thread."""

    numbers: Integers  # int64[threads]; the value of a type below 64 bits, or the bits of a longer one
    is_known: Marks  # bool[threads]


_COMPARISONS: Mapping[str, Callable[[Integers, Integers], Marks]] = {
    "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_COPIES = frozenset({"mov", "cvta", "cvt"})
_ONE_SOURCE: Mapping[str, Callable[[Integers], Integers]] = {
    "not": np.bitwise_not, "neg": np.negative, "abs": np.abs,
}  # fmt: skip


def _divide(first: Integers, second: Integers) -> Integers:
    """Towards zero; by zero gives zero."""
    divisor = np.where(second == 0, 1, second)
    quotient = np.abs(first) // np.abs(divisor) * np.where((first < 0) == (divisor < 0), 1, -1)
    result: Integers = np.where(second == 0, 0, quotient)
    return result


def _limit_shift(amount: Integers) -> Integers:
    limited: Integers = np.clip(amount & 0xFFFFFFFF, 0, 63)
    return limited


def _extract_field(sources: list[Integers], kind: ScalarType) -> Integers:
    """``bfe``: so many bits from a position on; signed ones are extended by their highest."""
    start, length = sources[1] & 0xFF, np.minimum(sources[2] & 0xFF, 62)
    field_bits: Integers = sources[0] >> np.minimum(start, 63) & (np.int64(1) << length) - 1
    if not kind.is_signed:
        return field_bits
    highest = np.where(length > 0, np.int64(1) << np.maximum(length - 1, 0), 0)
    result: Integers = field_bits - ((field_bits & highest) << 1)
    return result


def _look_up_logic(sources: list[Integers], _: ScalarType) -> Integers:
    """``lop3``: any logic of three sources, by the table of its eight results."""
    result = np.zeros_like(sources[0])
    table = int(sources[3][0])
    for number in range(8):
        if table >> number & 1:
            chosen = [one if number >> 2 - place & 1 else ~one for place, one in enumerate(sources[:3])]
            result |= chosen[0] & chosen[1] & chosen[2]
    return result


def _insert_field(sources: list[Integers], _: ScalarType) -> Integers:
    """``bfi``: so many bits of the first source, put into the second at a position."""
    start, length = np.minimum(sources[2] & 0xFF, 63), np.minimum(sources[3] & 0xFF, 62)
    mask = (np.int64(1) << length) - 1 << start
    result: Integers = sources[1] & ~mask | sources[0] << start & mask
    return result


_MORE_SOURCES: Mapping[str, tuple[int, Callable[[list[Integers], ScalarType], Integers]]] = {
    "bfe": (3, _extract_field), "bfi": (4, _insert_field), "lop3": (4, _look_up_logic),
}  # fmt: skip
_TWO_SOURCES: Mapping[str, Callable[[Integers, Integers], Integers]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "mad": np.multiply, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "div": _divide,
    "rem": lambda first, second: np.where(second == 0, 0, first - _divide(first, second) * second),
    "shl": lambda first, second: np.where(second & 0xFFFFFFFF > 63, 0, first << _limit_shift(second)),
    "shr": lambda first, second: first >> _limit_shift(second),
}  # fmt: skip


class LaneValues:
    """Registers of the threads of some warps, executed forward.

    Args:
        function: the kernel.
        parameters: its parameters' bytes.
        special: name and component of a special register → int64[threads].
        addresses: name of a variable → where it lies.
        threads: how many.
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
        self.registers: dict[int, Value] = {}

    def copy(self) -> "LaneValues":
        """One that goes on by itself."""
        other = copy(self)
        other.registers = dict(self.registers)
        return other

    def execute(self, instruction: PtxInstruction, active: Marks) -> None:
        """Write what the active threads' registers hold behind an instruction."""
        slots = list_writes(instruction)
        if not slots:
            return
        writes = active
        guard = None if instruction.guard is None else self.read_guard(instruction)
        if guard is not None:
            writes = active & ((guard.numbers != 0) | ~guard.is_known)
        found = self._compute(instruction) if len(slots) == 1 else None
        found = found or self._nothing
        if guard is not None:
            found = Value(found.numbers, found.is_known & guard.is_known)
        is_pair = len(slots) > 1
        for slot in slots:
            value = self._nothing if is_pair else found
            old = self.registers.get(slot)
            if old is None or bool(writes.all()):
                self.registers[slot] = Value(value.numbers, value.is_known & writes)
            else:
                self.registers[slot] = Value(
                    np.where(writes, value.numbers, old.numbers), np.where(writes, value.is_known, old.is_known)
                )

    def forget(self, instruction: PtxInstruction) -> None:
        """Nobody knows any more what an instruction's results hold."""
        for slot in list_writes(instruction):
            self.registers[slot] = self._nothing

    def forget_lanes(self, slots: Iterable[int], lanes: Marks) -> None:
        """Nobody knows any more what registers hold in some threads."""
        for slot in slots:
            old = self.registers.get(slot)
            if old is not None:
                self.registers[slot] = Value(old.numbers, old.is_known & ~lanes)

    def read_guard(self, instruction: PtxInstruction) -> Value | None:
        """Where an instruction's guard holds, 1 or 0; None for one without."""
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
        kind = instruction.types[-1] if instruction.types else None
        if instruction.opcode == "setp":
            return self._compare(instruction, sources)
        if kind is None or not sources:
            return None
        known = np.logical_and.reduce([one.is_known for one in sources])
        operands = [_read_as(one.numbers, kind) for one in sources]
        if "wide" in instruction.suffixes and len(sources) > 2:
            operands[2] = sources[2].numbers  # what a wide product is added to is as wide as it
        numbers = _calculate(instruction, operands)
        if numbers is None and instruction.opcode == "selp":
            return self._select(sources)
        if numbers is None:
            return None
        return Value(_read_as(numbers, _find_result_type(instruction)), known)

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
        number = int.from_bytes(content, "little")
        return self._spread(_wrap(number, kind))

    def _compare(self, instruction: PtxInstruction, sources: list[Value]) -> Value | None:
        compare = _COMPARISONS.get(instruction.suffixes[0]) if instruction.suffixes else None
        kind = next((one for one in instruction.types if one is not ScalarType.PRED), None)
        if compare is None or kind is None or len(sources) < 2:
            return None
        left, right = (_to_ordered(one.numbers, kind) for one in sources[:2])
        result = compare(left, right)
        known = sources[0].is_known & sources[1].is_known
        if len(sources) > 2:
            third = sources[2]
            combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.get(instruction.suffixes[1])
            if combine is None:
                return None
            result, known = combine(result, third.numbers != 0), known & third.is_known
        return Value(result.astype(np.int64), known)

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
            return self._spread(_wrap(operand.value, ScalarType.S64))
        if isinstance(operand, SpecialRegister):
            numbers = self._special.get((operand.name, operand.component))
            return self._nothing if numbers is None else Value(numbers, self._everywhere)
        if isinstance(operand, Symbol) and operand.name in self._addresses:
            return self._spread(self._addresses[operand.name] + operand.offset_bytes)
        return self._nothing

    def _spread(self, number: int) -> Value:
        return Value(np.full(len(self._everywhere), number, dtype=np.int64), self._everywhere)


def _calculate(instruction: PtxInstruction, sources: list[Integers]) -> Integers | None:
    """The exact result of integer arithmetic, before it is cut to its type; None where it is not followed."""
    opcode, kind = instruction.opcode, instruction.types[-1]
    if opcode in _COPIES:
        return sources[0]
    if opcode in _ONE_SOURCE:
        return _ONE_SOURCE[opcode](sources[0])
    if opcode in _MORE_SOURCES and len(sources) == _MORE_SOURCES[opcode][0]:
        return _MORE_SOURCES[opcode][1](sources, kind)
    if opcode not in _TWO_SOURCES or len(sources) < 2:
        return None
    first, second = sources[:2]
    if "sat" in instruction.suffixes:
        return None
    if kind.bytes == 8 and not kind.is_signed and opcode in _UNSIGNED:
        return _calculate_unsigned(opcode, first.view(np.uint64), second.view(np.uint64)).view(np.int64)
    with np.errstate(all="ignore"):
        result = _TWO_SOURCES[opcode](first, second)
        if "hi" in instruction.suffixes:
            result = result >> 8 * kind.bytes
        if "hi" in instruction.suffixes and kind.bytes > 4:
            return None  # beyond 64 bits
        return result + sources[2] if opcode == "mad" else result


# Where 64 unsigned bits give another result than signed ones
_UNSIGNED = frozenset({"min", "max", "div", "rem", "shr"})


def _calculate_unsigned(
    opcode: str, first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    if opcode in ("min", "max"):
        return np.minimum(first, second) if opcode == "min" else np.maximum(first, second)
    if opcode == "shr":
        shifted = first >> np.minimum(second, np.uint64(63))
        return np.where(second > np.uint64(63), np.uint64(0), shifted)
    divisor = np.where(second == 0, np.uint64(1), second)
    result = first // divisor if opcode == "div" else first % divisor
    return np.where(second == 0, np.uint64(0), result)


def _find_result_type(instruction: PtxInstruction) -> ScalarType:
    """Of ``cvt`` the first type that is named, of wide products the next longer one."""
    if instruction.opcode == "cvt":
        return instruction.types[0]
    kind = instruction.types[-1]
    if "wide" in instruction.suffixes:
        return {
            ScalarType.S16: ScalarType.S32,
            ScalarType.U16: ScalarType.U32,
            ScalarType.S32: ScalarType.S64,
            ScalarType.U32: ScalarType.U64,
        }.get(kind, kind)
    return kind


def _read_as(numbers: Integers, kind: ScalarType) -> Integers:
    """The value that bits have as a type; those of 64 bits stay as they are."""
    if kind is ScalarType.PRED:
        return numbers & 1
    bits = 8 * kind.bytes
    if bits >= 64:
        return numbers
    low = numbers & ((1 << bits) - 1)
    return low - ((low >> bits - 1) << bits) if kind.is_signed else low


def _to_ordered(numbers: Integers, kind: ScalarType) -> Integers:
    """Numbers that compare as the type does: unsigned ones of 64 bits are moved down by half their range."""
    own = _read_as(numbers, kind)
    if kind.bytes == 8 and not kind.is_signed:
        return own ^ np.int64(-(1 << 63))
    return own


def _wrap(number: int, kind: ScalarType) -> int:
    bits = 8 * kind.bytes
    low = number & ((1 << bits) - 1)
    is_negative = low >> bits - 1 and (kind.is_signed or bits == 64)
    return low - (1 << bits) if is_negative else low
