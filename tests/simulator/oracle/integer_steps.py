"""Arithmetic on integers and predicates, for the warp's lanes or for the warp as a whole (``U…``): :data:`INTEGER_STEPS`."""

from collections.abc import Callable, Sequence

import numpy as np

from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.operand_values import (
    MachineInstruction,
    Roles,
    find_comparison_roles,
    find_roles,
)
from gpa_lsp.execution.simulator.execution.warp_state import Column, Lanes, WarpState
from tests.simulator.oracle.readers import (
    Builder,
    Reader,
    Step,
    read_carried,
    read_integer,
    read_pair,
    read_predicate,
    write_pair,
    write_predicate,
    write_register,
)

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def _write(instruction: MachineInstruction, read: Reader, target: str) -> Step:
    write = write_register(target)
    return lambda state, lanes: write(state, lanes, read(state, lanes))


def _signed(value: Column) -> Column:
    return value.view(np.int32)


def _wide(value: Column, is_signed: bool) -> Column:
    """uint64 of uint32, extended."""
    return value.view(np.int32).astype(np.int64).view(np.uint64) if is_signed else value.astype(np.uint64)


def _low(value: Column) -> Column:
    return (value & _LOW).astype(np.uint32)


def build_move(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """MOV, UMOV."""
    if instruction.has("64"):
        both, write = read_pair(instruction.operands[1], banks), write_pair(instruction.operands[0])
        return lambda state, lanes: write(state, lanes, both(state, lanes))
    return _write(instruction, read_integer(instruction.operands[1], banks), instruction.operands[0])


def build_add(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """IADD3, IADD, UIADD3, with carries in and out."""
    roles = find_roles(instruction.operands)
    if instruction.has("64"):
        return _build_wide_add(roles, banks)
    reads = [_read_summand(one, roles, banks) for one in roles.sources]
    carries = [read_predicate(one) for one in roles.predicates_read] if instruction.has("X") else []
    return _build_sum(lambda state, lanes: _sum(reads, state, lanes), carries, roles)


def _read_summand(operand: str, roles: Roles, banks: ConstantBanks) -> Reader:
    """uint64 of a summand: with its carry where predicates take or give one, else of any part of it."""
    if roles.predicates_read or any(not one.endswith("T") for one in roles.predicates_written):
        return read_carried(operand, banks)
    read = read_integer(operand, banks)
    return lambda state, lanes: read(state, lanes).astype(np.uint64)


def _sum(reads: Sequence[Reader], state: WarpState, lanes: Lanes) -> Column:
    total = reads[0](state, lanes)
    for read in reads[1:]:
        total = total + read(state, lanes)
    return total


def _build_sum(total: Reader, carries: Sequence[Reader], roles: Roles) -> Step:
    """Write a sum of 64 bits, its carries added and given out."""
    write = write_register(roles.target)
    outs = [write_predicate(one) for one in roles.predicates_written]

    def add(state: WarpState, lanes: Lanes) -> None:
        value = total(state, lanes)
        for carry in carries:
            value = value + carry(state, lanes).astype(np.uint64)
        over = value >> _32
        for place, out in enumerate(outs):
            out(state, lanes, over > place)
        write(state, lanes, _low(value))

    return add


def _build_wide_add(roles: Roles, banks: ConstantBanks) -> Step:
    reads = [read_pair(one, banks) for one in roles.sources]
    write = write_pair(roles.target)
    return lambda state, lanes: write(state, lanes, _sum(reads, state, lanes))


def build_multiply_add(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """IMAD in all its forms, UIMAD."""
    roles = find_roles(instruction.operands)
    is_signed, is_wide = not instruction.has("U32"), instruction.has("WIDE")
    one, other = (read_integer(text, banks) for text in roles.sources[:2])
    carries = [read_predicate(text) for text in roles.predicates_read] if instruction.has("X") else []
    if not is_wide and not instruction.has("HI"):
        summand = _read_summand(roles.sources[2], roles, banks)

        def total(state: WarpState, lanes: Lanes) -> Column:
            return (one(state, lanes) * other(state, lanes)).astype(np.uint64) + summand(state, lanes)

        return _build_sum(total, carries, roles)
    added = read_pair(roles.sources[2], banks)
    write = (write_pair if is_wide else write_register)(roles.target)
    outs = [write_predicate(text) for text in roles.predicates_written[:1]]

    def multiply(state: WarpState, lanes: Lanes) -> None:
        product = _multiply(one(state, lanes), other(state, lanes), is_signed)
        found = product + added(state, lanes)
        for carry in carries:
            found = found + carry(state, lanes).astype(np.uint64)
        for out in outs:
            out(state, lanes, found < product)
        write(state, lanes, found if is_wide else (found >> _32).astype(np.uint32))

    return multiply


def _multiply(one: Column, other: Column, is_signed: bool) -> Column:
    return _wide(one, is_signed) * _wide(other, is_signed)


def build_load_address(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """LEA: a shifted left, plus b; ``.HI`` the upper word of a 64-bit a."""
    roles = find_roles(instruction.operands)
    sources = list(roles.sources)
    shift = np.uint64(int(sources.pop(), 16) & 31)
    is_high, is_extended = instruction.has("HI"), instruction.has("SX32")
    carries = [read_predicate(text) for text in roles.predicates_read] if instruction.has("X") else []
    first, added = read_integer(sources[0], banks), read_carried(sources[1], banks)
    upper = read_integer(sources[2], banks) if len(sources) > 2 and not is_extended else None

    def total(state: WarpState, lanes: Lanes) -> Column:
        value = first(state, lanes).astype(np.uint64)
        if not is_high:
            return ((value << shift) & _LOW) + added(state, lanes)
        both = _wide(value.astype(np.uint32), True) if is_extended else value
        if upper is not None:
            both = both | (upper(state, lanes).astype(np.uint64) << _32)
        return ((both << shift) >> _32) + added(state, lanes)

    return _build_sum(total, carries, roles)


def build_logic(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """LOP3.LUT, ULOP3.LUT: any function of three bits."""
    roles = find_roles(instruction.operands)
    table = int(roles.sources[3], 16)
    reads = [read_integer(one, banks) for one in roles.sources[:3]]
    write = write_register(roles.target)
    outs = [write_predicate(one) for one in roles.predicates_written if not one.endswith("T")]
    joined = [read_predicate(one) for one in roles.predicates_read]
    is_and = instruction.has("PAND")
    combine = make_logic(table)

    def logic(state: WarpState, lanes: Lanes) -> None:
        value = combine(*(read(state, lanes) for read in reads))
        write(state, lanes, value)
        if outs:
            truth = value != 0
            for read in joined:
                truth = truth & read(state, lanes) if is_and else truth | read(state, lanes)
            outs[0](state, lanes, truth)

    return logic


def make_logic(table: int) -> Callable[[Column, Column, Column], Column]:
    """The function of a truth table, for words or truth values.

    >>> a, b, c = (np.array([bits], np.uint32) for bits in (0xF0, 0xCC, 0xAA))
    >>> all(int(make_logic(table)(a, b, c)[0]) & 0xFF == table for table in range(256))
    True
    """

    def combine(a: Column, b: Column, c: Column) -> Column:
        total: Column = (a & ~a) & (b & c)  # zeros of the largest shape
        for bits in range(8):
            if table >> bits & 1:
                total = total | ((a if bits & 4 else ~a) & (b if bits & 2 else ~b) & (c if bits & 1 else ~c))
        return total

    return combine


def build_predicate_logic(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """PLOP3.LUT: two functions of the same three predicates."""
    del banks
    operands = instruction.operands
    tables = [int(one, 16) for one in operands if one.startswith("0x")]
    predicates = [one for one in operands if not one.startswith("0x")]
    outs = [write_predicate(one) for one in predicates[:2]]
    reads = [read_predicate(one) for one in predicates[2:5]]
    functions = [make_logic(table) for table in tables]

    def logic(state: WarpState, lanes: Lanes) -> None:
        values = [read(state, lanes) for read in reads]
        found = [function(*values) for function in functions]
        for out, value in zip(outs, found, strict=False):
            out(state, lanes, value)

    return logic


_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
}
BOOLEANS: dict[str, Callable[[Column, Column], Column]] = {
    "AND": lambda a, b: a & b,
    "OR": lambda a, b: a | b,
    "XOR": lambda a, b: a ^ b,
}


def find_modifier(instruction: MachineInstruction, known: Sequence[str] | dict[str, object]) -> str:
    """The first modifier that is one of some."""
    return next(one for one in instruction.modifiers if one in known)


def build_comparison(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """ISETP, UISETP, with the lower words' result where it is ``.EX``."""
    roles = find_comparison_roles(instruction.operands)
    name = find_modifier(instruction, list(_COMPARISONS))
    is_wide = instruction.has("64") or instruction.has("S64") or instruction.has("U64")
    is_signed = not (instruction.has("U32") or instruction.has("U64"))
    read_one = read_pair if is_wide else read_integer
    signed = np.int64 if is_wide else np.int32
    one, other = (read_one(text, banks) for text in roles.sources[:2])
    compare, join = _COMPARISONS[name], BOOLEANS[find_modifier(instruction, list(BOOLEANS))]
    joined = read_predicate(roles.predicates_read[0])
    lower = read_predicate(roles.predicates_read[1]) if instruction.has("EX") else None
    outs = [(place, write_predicate(text)) for place, text in enumerate(roles.predicates_written) if text[-1] != "T"]
    strict = _COMPARISONS[{"LE": "LT", "GE": "GT"}.get(name, name)]

    def step(state: WarpState, lanes: Lanes) -> None:
        left, right = one(state, lanes), other(state, lanes)
        if is_signed:
            left, right = left.view(signed), right.view(signed)
        if lower is None:
            truth = compare(left, right)
        elif name == "NE":
            truth = (left != right) | lower(state, lanes)
        elif name == "EQ":
            truth = (left == right) & lower(state, lanes)
        else:
            truth = strict(left, right) | ((left == right) & lower(state, lanes))
        beside = joined(state, lanes)
        found = [join(~truth if place else truth, beside) for place, _ in outs]  # before what is read is written
        for (_, out), value in zip(outs, found, strict=True):
            out(state, lanes, value)

    return step


def build_shift(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """SHF, USHF: 64 bits shifted, and one word of them."""
    target, low_text, shift_text, high_text = instruction.operands
    low, shift, high = (read_integer(text, banks) for text in (low_text, shift_text, high_text))
    is_wide = instruction.has("U64") or instruction.has("S64")
    is_signed = instruction.has("S32") or instruction.has("S64")
    is_left, takes_high, wraps = instruction.has("L"), instruction.has("HI"), instruction.has("W")
    most = np.uint64(63 if is_wide else 31 if wraps else 32)
    write = write_register(target)

    def step(state: WarpState, lanes: Lanes) -> None:
        lower, upper = low(state, lanes).astype(np.uint64), high(state, lanes).astype(np.uint64)
        value = lower | upper << _32
        count = shift(state, lanes).astype(np.uint64)
        count = count & most if wraps else np.minimum(count, most)
        if is_left:
            shifted = value << count
        elif is_signed:
            shifted = (value.view(np.int64) >> count.view(np.int64)).view(np.uint64)
        else:
            shifted = value >> count
        write(state, lanes, (shifted >> _32).astype(np.uint32) if takes_high else _low(shifted))

    return step


def build_select(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """SEL, USEL."""
    roles = find_roles(instruction.operands)
    is_wide = instruction.has("64")
    one, other = (read_pair(text, banks) if is_wide else read_integer(text, banks) for text in roles.sources)
    chosen = read_predicate(roles.predicates_read[0])
    write = write_pair(roles.target) if is_wide else write_register(roles.target)
    return lambda state, lanes: write(
        state, lanes, np.where(chosen(state, lanes), one(state, lanes), other(state, lanes))
    )


def build_extreme(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """IMNMX, VIMNMX, VIADDMNMX: the smaller where the predicate holds, else the larger."""
    roles = find_roles(instruction.operands)
    reads = [read_integer(text, banks) for text in roles.sources]
    adds = instruction.opcode.endswith("VIADDMNMX")
    is_signed = not instruction.has("U32")
    chosen, write = read_predicate(roles.predicates_read[0]), write_register(roles.target)

    def step(state: WarpState, lanes: Lanes) -> None:
        values = [read(state, lanes) for read in reads]
        if adds:
            values = [values[0] + values[1], values[2]]
        one, other = (value.view(np.int32) if is_signed else value for value in values)
        found = np.where(chosen(state, lanes), np.minimum(one, other), np.maximum(one, other))
        write(state, lanes, found.view(np.uint32))

    return step


def build_permute(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """PRMT, UPRMT: four bytes chosen out of eight."""
    target, low_text, selector_text, high_text = instruction.operands
    low, selector, high = (read_integer(text, banks) for text in (low_text, selector_text, high_text))
    write = write_register(target)

    def step(state: WarpState, lanes: Lanes) -> None:
        value = low(state, lanes).astype(np.uint64) | high(state, lanes).astype(np.uint64) << _32
        chosen = selector(state, lanes)
        total: Column = np.zeros((1, 1), np.uint32)
        for place in range(4):
            pick = (chosen >> np.uint32(4 * place)) & np.uint32(15)
            byte = (value >> ((pick & np.uint32(7)).astype(np.uint64) * np.uint64(8))).astype(np.uint32) & np.uint32(
                255
            )
            sign = np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0))
            total = total | np.where(pick & np.uint32(8), sign, byte) << np.uint32(8 * place)
        write(state, lanes, total)

    return step


def build_extension(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """SGXT, USGXT: so many low bits, extended."""
    target, value_text, count_text = instruction.operands
    value, count, write = read_integer(value_text, banks), read_integer(count_text, banks), write_register(target)
    is_signed = not instruction.has("U32")

    def step(state: WarpState, lanes: Lanes) -> None:
        kept = np.minimum(count(state, lanes), np.uint32(32))
        gap = (np.uint32(32) - kept).astype(np.uint64)
        moved = _low(value(state, lanes).astype(np.uint64) << gap)
        if is_signed:
            found = (_signed(moved).astype(np.int64) >> gap.view(np.int64)).astype(np.int32).view(np.uint32)
        else:
            found = _low(moved.astype(np.uint64) >> gap)
        write(state, lanes, found)

    return step


def build_absolute(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """IABS, UIABS."""
    value, write = read_integer(instruction.operands[1], banks), write_register(instruction.operands[0])
    return lambda state, lanes: write(state, lanes, np.abs(_signed(value(state, lanes))).view(np.uint32))


def build_count(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """POPC, UPOPC."""
    value, write = read_integer(instruction.operands[-1], banks), write_register(instruction.operands[0])
    return lambda state, lanes: write(state, lanes, np.bitwise_count(value(state, lanes)).astype(np.uint32))


def build_leading_one(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """FLO, UFLO: place of the highest bit that is set, or how far it is from the top (``.SH``); all ones without any."""
    roles = find_roles(instruction.operands)
    value, write = read_integer(roles.sources[0], banks), write_register(roles.target)
    is_signed, counts_down = not instruction.has("U32"), instruction.has("SH")
    outs = [write_predicate(text) for text in roles.predicates_written if text[-1] != "T"]

    def step(state: WarpState, lanes: Lanes) -> None:
        bits = value(state, lanes)
        if is_signed:
            bits = np.where(_signed(bits) < 0, ~bits, bits)
        place = np.frexp(bits.astype(np.float64))[1].astype(np.int64) - 1
        found = np.where(bits == 0, -1, 31 - place if counts_down else place)
        for out in outs:
            out(state, lanes, bits == 0)
        write(state, lanes, found.astype(np.int32).view(np.uint32))

    return step


def build_reversal(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """BREV, UBREV."""
    value, write = read_integer(instruction.operands[1], banks), write_register(instruction.operands[0])

    def step(state: WarpState, lanes: Lanes) -> None:
        bits = value(state, lanes)
        for distance, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0xFFFF)):
            by, kept = np.uint32(distance), np.uint32(mask)
            bits = (bits & kept) << by | (bits >> by) & kept
        write(state, lanes, bits)

    return step


def build_mask(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """BMSK: so many ones from a place on."""
    place, count = (read_integer(text, banks) for text in instruction.operands[1:3])
    write = write_register(instruction.operands[0])

    def step(state: WarpState, lanes: Lanes) -> None:
        start, width = (np.minimum(read(state, lanes), 32).astype(np.uint64) for read in (place, count))
        write(state, lanes, _low(((np.uint64(1) << width) - np.uint64(1)) << start))

    return step


def build_predicates_to_register(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """P2R, UP2UR: predicates as bits, under a mask, into a register's byte."""
    operands = instruction.operands
    before, mask = read_integer(operands[2], banks), np.uint32(int(operands[3], 16))
    byte = next((int(one[1]) for one in instruction.modifiers if one in ("B0", "B1", "B2", "B3")), 0)
    shift, write, is_uniform = np.uint32(8 * byte), write_register(operands[0]), operands[1] == "UPR"

    def step(state: WarpState, lanes: Lanes) -> None:
        file = state.uniform_predicates if is_uniform else state.predicates
        bits: Column = np.zeros((1, 1), np.uint32)
        for number in range(7):
            bits = bits | file[number][lanes.warps].astype(np.uint32) << np.uint32(number)
        write(state, lanes, (before(state, lanes) & ~(mask << shift)) | (bits & mask) << shift)

    return step


# By opcode; those of the uniform data path are found without their ``U``
INTEGER_STEPS: dict[str, Builder] = {
    "MOV": build_move,
    "MOV32I": build_move,
    "IADD3": build_add,
    "IADD": build_add,
    "IMAD": build_multiply_add,
    "LEA": build_load_address,
    "LOP3": build_logic,
    "PLOP3": build_predicate_logic,
    "ISETP": build_comparison,
    "SHF": build_shift,
    "SEL": build_select,
    "IMNMX": build_extreme,
    "VIMNMX": build_extreme,
    "VIADDMNMX": build_extreme,
    "PRMT": build_permute,
    "SGXT": build_extension,
    "IABS": build_absolute,
    "POPC": build_count,
    "FLO": build_leading_one,
    "BREV": build_reversal,
    "BMSK": build_mask,
    "P2R": build_predicates_to_register,
    "P2UR": build_predicates_to_register,
    "VIADD": build_add,
}
