"""Arithmetic on floating-point numbers and conversions: :data:`FLOAT_STEPS`.

Values decide branches and addresses only, so that a last bit may differ from the hardware's: products and sums are rounded once through a wider
type, special functions are those of numpy, and subnormal numbers are kept.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.operand_values import (
    MachineInstruction,
    UnreadOperandError,
    find_comparison_roles,
    find_half,
    find_roles,
    read_literal,
)
from gpa_lsp.execution.simulator.execution.warp_state import Column, Lanes, WarpState
from tests.simulator.oracle.integer_steps import BOOLEANS, find_modifier
from tests.simulator.oracle.readers import (
    Builder,
    Reader,
    Step,
    read_bits,
    read_double,
    read_integer,
    read_pair,
    read_predicate,
    read_single,
    write_pair,
    write_predicate,
    write_register,
)


def _as_bits(value: Column) -> Column:
    bits = value.astype(np.float32, copy=False).view(np.uint32)
    return np.where(np.isnan(value), np.uint32(0x7FFFFFFF), bits)


def _write_single(target: str) -> Callable[[WarpState, Lanes, Column], None]:
    write = write_register(target)
    return lambda state, lanes, value: write(state, lanes, _as_bits(value))


def _write_double(target: str) -> Callable[[WarpState, Lanes, Column], None]:
    write = write_pair(target)
    return lambda state, lanes, value: write(state, lanes, value.astype(np.float64, copy=False).view(np.uint64))


def _saturate(instruction: MachineInstruction, value: Column) -> Column:
    return np.clip(np.nan_to_num(value, nan=0.0), 0, 1) + 0.0 if instruction.has("SAT") else value


def build_single(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """FADD, FMUL, FFMA."""
    roles = find_roles(instruction.operands)
    reads = [read_single(one, banks) for one in roles.sources]
    write = _write_single(roles.target)
    if instruction.opcode == "FADD":
        compute: Callable[..., Column] = np.add
    elif instruction.opcode == "FMUL":
        compute = np.multiply
    else:
        compute = _fuse_single
    has_end = instruction.has("SAT")

    def step(state: WarpState, lanes: Lanes) -> None:
        value = compute(*(read(state, lanes) for read in reads))
        write(state, lanes, _saturate(instruction, value) if has_end else value)

    return step


def _fuse_single(one: Column, other: Column, added: Column) -> Column:
    return (one.astype(np.float64) * other + added).astype(np.float32)


def build_double(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """DADD, DMUL, DFMA."""
    roles = find_roles(instruction.operands)
    reads = [read_double(one, banks) for one in roles.sources if one != "RZ" or instruction.opcode != "DADD"]
    write = _write_double(roles.target)
    compute: Callable[..., Column]
    if instruction.opcode == "DADD":
        compute = lambda *values: sum(values[1:], values[0])  # noqa: E731
    elif instruction.opcode == "DMUL":
        compute = np.multiply
    else:
        compute = _fuse_double
    return lambda state, lanes: write(state, lanes, compute(*(read(state, lanes) for read in reads)))


def _fuse_double(one: Column, other: Column, added: Column) -> Column:
    found = one * other + added
    columns = np.broadcast_arrays(one, other, added, found)
    out = np.array(found)
    for place in np.argwhere(np.isfinite(found) & np.isfinite(one * other)):
        a, b, c, rough = (column[tuple(place)].item() for column in columns)
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        out[tuple(place)] = float(exact) if exact else rough
    return out


_ORDERED: dict[str, Callable[[Column, Column], Column]] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: (a < b) | (a > b),
    "MIN": lambda a, b: (a < b) | (b != b),  # noqa: PLR0124
    "MAX": lambda a, b: (a > b) | (b != b),  # noqa: PLR0124
    "NUM": lambda a, b: (a == a) & (b == b),  # noqa: PLR0124  (not a number differs from itself)
}
_COMPARISONS = _ORDERED | {
    "LTU": lambda a, b: ~(a >= b),
    "LEU": lambda a, b: ~(a > b),
    "GTU": lambda a, b: ~(a <= b),
    "GEU": lambda a, b: ~(a < b),
    "EQU": lambda a, b: ~((a < b) | (a > b)),
    "NEU": lambda a, b: a != b,
    "NAN": lambda a, b: (a != a) | (b != b),  # noqa: PLR0124
}


def build_comparison(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """FSETP, DSETP."""
    roles = find_comparison_roles(instruction.operands)
    read = read_double if instruction.opcode == "DSETP" else read_single
    one, other = (read(text, banks) for text in roles.sources)
    compare = _COMPARISONS[find_modifier(instruction, list(_COMPARISONS))]
    join = BOOLEANS[find_modifier(instruction, list(BOOLEANS))]
    joined = read_predicate(roles.predicates_read[0])
    outs = [(place, write_predicate(text)) for place, text in enumerate(roles.predicates_written) if text[-1] != "T"]
    is_choice = instruction.has("MIN") or instruction.has("MAX")

    def step(state: WarpState, lanes: Lanes) -> None:
        left, right = one(state, lanes), other(state, lanes)
        truth = compare(left, right)
        # Beside a choice of one of two it says whether it is a number, else the opposite.
        second = (left != left) | (right != right) if is_choice else ~truth  # noqa: PLR0124
        beside = joined(state, lanes)
        found = [join(second if place else truth, beside) for place, _ in outs]  # before what is read is written
        for (_, out), value in zip(outs, found, strict=True):
            out(state, lanes, value)

    return step


def build_extreme(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """FMNMX, DMNMX."""
    roles = find_roles(instruction.operands)
    is_double = instruction.opcode == "DMNMX"
    read = read_double if is_double else read_single
    one, other = (read(text, banks) for text in roles.sources)
    chosen = read_predicate(roles.predicates_read[0])
    write = (_write_double if is_double else _write_single)(roles.target)

    def step(state: WarpState, lanes: Lanes) -> None:
        left, right = (_quiet(read(state, lanes)) for read in (one, other))
        write(state, lanes, np.where(chosen(state, lanes), np.fmin(left, right), np.fmax(left, right)))

    return step


def _quiet(values: Column) -> Column:
    """Signalling NaNs made quiet, of which C's minimum makes NaN."""
    quiet: Column = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    return quiet


def build_select(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """FSEL."""
    roles = find_roles(instruction.operands)
    one, other = (read_single(text, banks) for text in roles.sources)
    chosen, write = read_predicate(roles.predicates_read[0]), write_register(roles.target)

    def step(state: WarpState, lanes: Lanes) -> None:
        left, right = one(state, lanes).view(np.uint32), other(state, lanes).view(np.uint32)
        write(state, lanes, np.where(chosen(state, lanes), left, right))

    return step


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": lambda x: np.sin(x * (2 * np.pi)),
    "COS": lambda x: np.cos(x * (2 * np.pi)),
    "TANH": np.tanh,
}


def build_function(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """MUFU: reciprocals, roots, exponents, sines; the upper words of doubles (``64H``)."""
    name = instruction.modifiers[0]
    if name.endswith("64H"):
        return _build_high_function(instruction, name, banks)
    function = _FUNCTIONS[name]
    read, write = read_single(instruction.operands[1], banks), _write_single(instruction.operands[0])
    return lambda state, lanes: write(state, lanes, function(read(state, lanes).astype(np.float64)).astype(np.float32))


def _build_high_function(instruction: MachineInstruction, name: str, banks: ConstantBanks) -> Step:
    function = _FUNCTIONS[name.removesuffix("64H")]
    text = instruction.operands[1]
    write = write_register(instruction.operands[0])
    try:
        read = read_integer(text, banks)
    except UnreadOperandError:  # a literal, of which the upper word is taken
        whole = read_double(text, banks)
        read = lambda state, lanes: (whole(state, lanes).view(np.uint64) >> np.uint64(32)).astype(np.uint32)  # noqa: E731

    def step(state: WarpState, lanes: Lanes) -> None:
        value = (read(state, lanes).astype(np.uint64) << np.uint64(32)).view(np.float64)
        found = np.asarray(function(value), np.float64).view(np.uint64)
        write(state, lanes, (found >> np.uint64(32)).astype(np.uint32))

    return step


def build_division_check(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """FCHK: whether a quotient needs the slow path: exponents near the ends, or too far from each other.

    Approximation: the hardware's bounds are not published; these are where the fast path's intermediate results would leave the range.
    """
    out = write_predicate(instruction.operands[0])
    one, other = (read_integer(text.strip("|-"), banks) for text in instruction.operands[1:3])

    def step(state: WarpState, lanes: Lanes) -> None:
        above, below = (
            ((read(state, lanes) >> np.uint32(23)) & np.uint32(255)).astype(np.int64) for read in (one, other)
        )
        distance = above - below
        is_odd = (below == 0) | (below >= 253) | (above == 255) | (above <= 24)
        out(state, lanes, is_odd | (distance >= 126) | (distance <= -126))

    return step


_ROUNDINGS: dict[str, Callable[[Any], Any]] = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}
_INTEGERS: dict[str, Any] = {
    "U8": np.uint8, "S8": np.int8, "U16": np.uint16, "S16": np.int16, "U32": np.uint32, "S32": np.int32, "U64": np.uint64, "S64": np.int64,
}  # fmt: skip


def _find_rounding(instruction: MachineInstruction) -> Callable[[Any], Any]:
    return next((_ROUNDINGS[one] for one in instruction.modifiers if one in _ROUNDINGS), np.rint)


def _read_float(instruction: MachineInstruction, operand: str, banks: ConstantBanks) -> Reader:
    """float64 of the source of a conversion: its type is the last one that is named."""
    named = [one for one in instruction.modifiers if one in ("F16", "F32", "F64", "BF16")]
    if named and named[-1] == "F64":
        return read_double(operand, banks)
    if named and named[-1] == "F16":
        return read_half(operand, banks, 0)
    single = read_single(operand, banks)
    return lambda state, lanes: single(state, lanes).astype(np.float64)


def build_float_to_integer(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """F2I: rounded, and clamped to the integer's range; 0 for what is not a number."""
    target, text = instruction.operands[:2]
    kind = np.dtype(next((_INTEGERS[one] for one in instruction.modifiers if one in _INTEGERS), np.int32))
    read, rounding = _read_float(instruction, text, banks), _find_rounding(instruction)
    limits = np.iinfo(kind)
    is_wide = kind.itemsize == 8
    write = write_pair(target) if is_wide else write_register(target)

    def step(state: WarpState, lanes: Lanes) -> None:
        given = read(state, lanes)
        value = np.nan_to_num(rounding(given), nan=0.0, posinf=np.inf, neginf=-np.inf)
        is_over = value >= float(limits.max)
        inside = np.clip(np.where(is_over, 0, value), float(limits.min), None)
        found = np.where(is_over, limits.max, inside.astype(kind)).astype(kind)
        if is_wide:
            found = np.where(np.isnan(given), np.uint64(1 << 63).view(kind), found)
        write(state, lanes, found.view(np.uint64) if is_wide else found.astype(np.int64).astype(np.uint32))

    return step


def build_integer_to_float(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """I2F, I2FP: from the integer that is named last to the float that is named, rounded up or down where it is said."""
    target, text = instruction.operands[:2]
    kind = np.dtype(next((_INTEGERS[one] for one in instruction.modifiers if one in _INTEGERS), np.int32))
    is_double = instruction.has("F64")
    read = read_pair(text, banks) if kind.itemsize == 8 else read_integer(text, banks)
    write = (_write_double if is_double else _write_single)(target)
    up, down, zero = instruction.has("RP"), instruction.has("RM"), instruction.has("RZ")

    def step(state: WarpState, lanes: Lanes) -> None:
        integer = read(state, lanes).astype(kind)
        if is_double:
            write(state, lanes, integer.astype(np.float64))
            return
        value = integer.astype(np.float32)
        exact = integer.astype(np.longdouble)
        if up:
            value = np.where(value < exact, np.nextafter(value, np.float32(np.inf)), value)
        elif down or zero:
            is_over = (value > exact) if down else (np.abs(value) > np.abs(exact))
            toward = np.float32(-np.inf) if down else np.float32(0)
            value = np.where(is_over, np.nextafter(value, toward), value)
        write(state, lanes, value)

    return step


def build_float_to_float(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """F2F, FRND: between precisions, or to whole numbers."""
    target, text = instruction.operands[:2]
    kinds = [one for one in instruction.modifiers if one in ("F16", "F32", "F64")]
    to = kinds[0] if kinds else "F32"
    read = _read_float(instruction, text, banks)
    is_whole = instruction.opcode == "FRND" or any(one in _ROUNDINGS for one in instruction.modifiers)
    rounding = _find_rounding(instruction)
    if to == "F64":
        write = _write_double(target)
    elif to == "F32":
        write = _write_single(target)
    else:
        words = write_register(target)
        write = lambda state, lanes, value: words(  # noqa: E731
            state, lanes, _half_bits(value)
        )

    def step(state: WarpState, lanes: Lanes) -> None:
        value = read(state, lanes)
        write(state, lanes, rounding(value) if is_whole else value)

    return step


def build_pack(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """F2FP: two floats to two halves, the first one above."""
    roles = find_roles(instruction.operands)
    high, low = (read_single(text, banks) for text in roles.sources[:2])
    write = write_register(roles.target)
    return lambda state, lanes: write(state, lanes, pack_halves(low(state, lanes), high(state, lanes)))


def _half_bits(value: Column) -> Column:
    bits = value.astype(np.float16).view(np.uint16).astype(np.uint32)
    return np.where(np.isnan(value), np.uint32(0x7FFF), bits)


def pack_halves(low: Column, high: Column) -> Column:
    """uint32 of two numbers, rounded."""
    words = [_half_bits(value) for value in (low, high)]
    return words[0] | words[1] << np.uint32(16)


def read_half(operand: str, banks: ConstantBanks, half: int) -> Reader:
    """float64 of the lower or upper half of a register, or of the part that stands for it."""
    found = find_half(operand, half)
    bits, shift = read_bits(found.word, banks), np.uint32(found.shift)

    def read(state: WarpState, lanes: Lanes) -> Column:
        word = (bits(state, lanes) >> shift & np.uint32(0xFFFF)).astype(np.uint16)
        value = word.view(np.float16).astype(np.float64)
        value = np.abs(value) if found.is_absolute else value
        return -value if found.flips else value

    return read


def build_halves(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """HADD2, HMUL2, HFMA2: on both halves, or from the lower half to a float (``.F32``)."""
    roles = find_roles(instruction.operands)
    sides = [_read_sides(roles.sources, banks, half) for half in (0, 1)]
    name = instruction.opcode.removesuffix("32I")
    write = write_register(roles.target)
    to_single = instruction.has("F32")

    def compute(side: list[Reader], state: WarpState, lanes: Lanes) -> Column:
        values = [read(state, lanes) for read in side]
        if name == "HADD2":
            found = values[0] + values[1]
        else:
            found = values[0] * values[1]
            found = found + values[2] if name == "HFMA2" else found
        return _saturate(instruction, found)

    def step(state: WarpState, lanes: Lanes) -> None:
        low = compute(sides[0], state, lanes)
        if to_single:
            write(state, lanes, _as_bits(low))
        else:
            write(state, lanes, pack_halves(low, compute(sides[1], state, lanes)))

    return step


def _read_sides(sources: tuple[str, ...], banks: ConstantBanks, half: int) -> list[Reader]:
    """The sources of one half; literals come in pairs, the upper half's first."""
    reads: list[Reader] = []
    place = 0
    while place < len(sources):
        literal = read_literal(sources[place])
        if literal is None:
            reads.append(read_half(sources[place], banks, half))
            place += 1
            continue
        following = read_literal(sources[place + 1]) if place + 1 < len(sources) else None
        chosen = literal if half or following is None else following
        reads.append(_constant(chosen))
        place += 1 if following is None else 2
    return reads


def _constant(value: float) -> Reader:
    array = np.full((1, 1), value, np.float64)
    return lambda state, lanes: array


FLOAT_STEPS: dict[str, Builder] = {
    "FADD": build_single,
    "FMUL": build_single,
    "FFMA": build_single,
    "DADD": build_double,
    "DMUL": build_double,
    "DFMA": build_double,
    "FSETP": build_comparison,
    "DSETP": build_comparison,
    "FMNMX": build_extreme,
    "DMNMX": build_extreme,
    "FSEL": build_select,
    "MUFU": build_function,
    "FCHK": build_division_check,
    "F2I": build_float_to_integer,
    "I2F": build_integer_to_float,
    "I2FP": build_integer_to_float,
    "F2F": build_float_to_float,
    "FRND": build_float_to_float,
    "F2FP": build_pack,
    "HADD2": build_halves,
    "HMUL2": build_halves,
    "HFMA2": build_halves,
}
