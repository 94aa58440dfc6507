"""``popc clz bfind brev fns bfe bfi bmsk szext``, ``and or xor not cnot lop3 shl shr shf`` and ``prmt``.

Source: PTX ISA 9.0, sections 9.7.1.15 to 9.7.1.22 (bits), 9.7.8 (logic and shifts) and 9.7.9.7 (prmt). Amounts of shifts are unsigned numbers of 32
bits; those above the width shift everything out (``shl``, ``shr``, ``.clamp``) or count modulo 32 (``.wrap``).
"""

from collections.abc import Callable

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import (
    INTEGERS,
    SIGNED,
    Family,
    Meaning,
    as_unsigned,
    find_literal,
    find_type,
    find_word,
    name_bits,
    of_one,
)
from gpa_lsp.foundation.machine_code.types import leading_zeros, u32

S = ScalarType
_BITS = frozenset({S.B16, S.B32, S.B64})
_WIDE = frozenset({S.B32, S.U32, S.S32, S.B64, S.U64, S.S64})


def find_highest(value, bits):
    """The place of the highest bit that is set; 0xFFFFFFFF for none."""
    return u32(bits - 1 - leading_zeros(value))


def shift_left(value, amount, bits):
    """``value << amount``, 0 for amounts of its width or more."""
    return value << amount if amount < bits else 0


def find_field(word, position, length, bits):
    """A field of ones at a position."""
    ones = shift_left(word(1), length, bits) - 1
    return shift_left(ones, position, bits)


def lowest_byte(value, most):
    """The low eight bits, at most ``most``."""
    low = value & 255
    return low if low < most else most


def at_most(value, most):
    """The lesser of two numbers."""
    return value if value < most else most


def extract(value, position, length, bits):
    """A field of bits at a position, extended by the sign of the type; beyond the top its highest existing bit counts."""
    size = length if length < bits - position else bits - position
    return value << (bits - position - size) >> (bits - size) if size > 0 else 0


def find_nth(mask, start, offset):
    """``fns``: the place of the n-th bit that is set, from a start up (offset > 0) or down; 0 asks for the one at the start. 0xFFFFFFFF for none."""
    nothing = mask | 0xFFFFFFFF
    found, ups, downs = nothing, mask & 0, mask & 0
    wanted = u32(offset if offset > 0 else -offset)
    for place in range(32):
        here, other = u32(place), u32(31 - place)
        bit = (mask >> here) & u32(start <= here)
        ups += bit
        found = here if (bit != 0) & (offset > 0) & (ups == wanted) else found
        low = (mask >> other) & u32(start >= other)
        downs += low
        found = other if (low != 0) & (offset < 0) & (downs == wanted) else found
    found = start if (offset == 0) & ((mask >> (start & 31) & 1) != 0) else found
    return found if start < 32 else nothing


def choose_of_four(number, first, second, third, fourth):
    """One of four by the low two bits of a number."""
    low = number & 3
    return first if low == 0 else second if low == 1 else third if low == 2 else fourth


def find(instruction: PtxInstruction) -> Meaning | None:
    """One instruction of bits."""
    kind = find_type(instruction)
    if kind is None or (instruction.opcode in _COUNTED and kind not in _WIDE):
        return None
    return _FINDERS[instruction.opcode](instruction, kind)


def _find_count(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    name = {"popc": "popcount", "clz": "leading_zeros", "brev": "reverse_bits"}[instruction.opcode]
    result = as_unsigned(kind) if name == "reverse_bits" else S.U32
    value = f"{name}(a({name_bits(kind)}))"
    return Meaning(
        sources=(as_unsigned(kind),), results=(result,), values=(f"u32({value})" if result is S.U32 else value,)
    )


def _find_highest(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    bits, width = name_bits(kind), 8 * kind.bytes
    a = f"(a({bits}) ^ {bits}(a({kind.value}) >> {width - 1}))" if kind in SIGNED else f"a({bits})"
    value = f"find_highest({a}, {width})"
    if "shiftamt" in instruction.suffixes:
        value = f"u32(leading_zeros({a})) if {a} != 0 else 0xFFFFFFFF"
    return Meaning(sources=(as_unsigned(kind),), results=(S.U32,), values=(value,))


def _find_nth(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    if kind is not S.B32:
        return None
    return Meaning(sources=(S.U32, S.U32, S.S32), results=(S.U32,), values=("find_nth(a(u32), b(u32), c(s32))",))


def _find_extract(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    """``bfe``: length and position count by their low eight bits."""
    source, width = (kind if kind in SIGNED else as_unsigned(kind)), 8 * kind.bytes
    word = source.value
    most = width - 1 if kind in SIGNED else width  # from beyond the top come copies of the sign
    value = f"extract(a({word}), {word}(lowest_byte(b(u32), {most})), {word}(c(u32) & 255), {word}({width}))"
    return Meaning(sources=(source, S.U32, S.U32), results=(source,), values=(value,))


def _find_insert(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    """``bfi d, a, b, c, d``: the low bits of a put into b at a position, for a length."""
    source, bits, width = as_unsigned(kind), name_bits(kind), 8 * kind.bytes
    position, length = (f"{bits}(lowest_byte({one}(u32), {width}))" for one in "cd")
    return Meaning(
        sources=(source, source, S.U32, S.U32),
        results=(source,),
        steps=(
            ("x", width, f"find_field({bits}, {position}, {length}, {width})"),
            ("y", width, f"shift_left(a({bits}), {position}, {width})"),
        ),
        values=(f"b({bits}) ^ (b({bits}) ^ y({bits})) & x({bits})",),
    )


def _find_mask(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    """``bmsk.clamp|wrap.b32``: ones from a position on, for a length."""
    if kind is not S.B32:
        return None
    a, b = (f"({one}(u32) & 31)" if "wrap" in instruction.suffixes else f"at_most({one}(u32), 32)" for one in "ab")
    return of_one(S.U32, 2, f"find_field(u32, {a}, {b}, 32)")


def _find_extension(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    """``szext.clamp|wrap.u32|s32``: the low n bits, extended by zeros or by their highest."""
    if kind.bytes != 4:
        return None
    word = "s32" if kind in SIGNED else "u32"
    length = "b(u32) & 31" if "wrap" in instruction.suffixes else "at_most(b(u32), 32)"
    source = kind if kind in SIGNED else S.U32
    value = f"extract(a({word}), {word}(0), {word}({length}), {word}(32))"
    return Meaning(sources=(source, S.U32), results=(source,), values=(value,))


def _find_logic(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    if kind is not S.PRED and kind not in _BITS:
        return None
    bits, opcode = name_bits(kind), instruction.opcode
    if opcode == "not":
        return of_one(as_unsigned(kind), 1, "u8(a(u8) == 0)" if kind is S.PRED else f"~a({bits})")
    sign = {"and": "&", "or": "|", "xor": "^"}[opcode]
    return of_one(as_unsigned(kind), 2, f"a({bits}) {sign} b({bits})")


def _find_cnot(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    bits = name_bits(kind)
    return of_one(as_unsigned(kind), 1, f"{bits}(a({bits}) == 0)") if kind in _BITS else None


def _find_table(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    """``lop3.b32 d, a, b, c, table`` and ``lop3.or|and.b32 d|p, a, b, c, table, q``."""
    table = find_literal(instruction, 3)
    if kind is not S.B32 or table is None:
        return None
    value = f"combine_bits(a(u32), b(u32), c(u32), {table & 0xFF})"
    if len(instruction.sources) == 4:
        return of_one(S.U32, 4, value)
    sign = "|" if "or" in instruction.suffixes else "&"
    return Meaning(
        sources=(*(S.U32,) * 4, S.PRED),
        results=(S.U32, S.PRED),
        steps=(("x", 32, value),),
        values=("x(u32)", f"u8(x(u32) != 0) {sign} e(u8)"),
    )


def _find_shift(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    left = instruction.opcode == "shl"
    if kind not in _BITS and (left or kind not in INTEGERS):
        return None
    bits, width = name_bits(kind), 8 * kind.bytes
    data = kind if kind.is_signed else as_unsigned(kind)
    if kind.is_signed:
        value = f"a({kind.value}) >> at_most(b(u32), {width - 1})"
    else:
        value = f"a({bits}) {'<<' if left else '>>'} b(u32) if b(u32) < {width} else 0"
    return Meaning(sources=(data, S.U32), results=(data,), values=(value,))


def _find_funnel(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    """``shf.l`` gives the high word of {b,a} << c, ``shf.r`` the low word of {b,a} >> c."""
    if kind is not S.B32:
        return None
    left, wraps = int("l" in instruction.suffixes), int("wrap" in instruction.suffixes)
    return of_one(S.U32, 3, f"funnel(a(u32), b(u32), c(u32), {left}, {wraps})")


# Bytes that the modes of prmt pick, lowest first, by the low two bits of the selector
_MODES: dict[str, tuple[tuple[int, ...], ...]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def _find_permutation(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    if kind is not S.B32:
        return None
    mode = find_word(instruction, frozenset(_MODES))
    selector = "c(u32)"
    if mode is not None:
        rows = [sum(byte << 4 * place for place, byte in enumerate(row)) for row in _MODES[mode]]
        selector = f"choose_of_four(c(u32), {', '.join(f'u32({row})' for row in rows)})"
    return of_one(S.U32, 3, f"permute(a(u32), b(u32), {selector})")


_COUNTED = frozenset({"popc", "clz", "bfind", "brev", "fns", "bfe", "bfi", "bmsk", "szext"})
_FINDERS: dict[str, Callable[[PtxInstruction, ScalarType], Meaning | None]] = {
    "popc": _find_count, "clz": _find_count, "brev": _find_count, "bfind": _find_highest, "fns": _find_nth, "bfe": _find_extract,
    "bfi": _find_insert, "bmsk": _find_mask, "szext": _find_extension, "and": _find_logic, "or": _find_logic, "xor": _find_logic,
    "not": _find_logic, "cnot": _find_cnot, "lop3": _find_table, "shl": _find_shift, "shr": _find_shift, "shf": _find_funnel,
    "prmt": _find_permutation,
}  # fmt: skip

FAMILY = Family(opcodes=tuple(_FINDERS), find=find)
