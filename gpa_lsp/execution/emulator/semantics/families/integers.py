"""Integer ``add sub mul mad mul24 mad24 sad abs neg div rem min max``, and ``addc subc madc`` and ``.cc`` with the carry flag.

Source: PTX ISA 9.0, sections 9.7.1 (integer arithmetic) and 9.7.2 (extended precision). All wrap modulo 2^width; ``.sat`` exists for sums of 32 bits
alone. The flag of a difference is its borrow.
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
    as_wide,
    find_type,
    name_bits,
    of_one,
)
from gpa_lsp.foundation.machine_code.types import s32, s64, u8

S = ScalarType
_CARRIED = frozenset({S.U32, S.S32, S.U64, S.S64})
_PRODUCTS = ("mad", "mad24")


def clamp(value, low, high):
    """A number, no less and no more than two others."""
    below = high if value > high else value
    return low if below < low else below


def add_saturated(a, b):
    """The sum of two s32 in their range."""
    return s32(clamp(s64(a) + s64(b), -0x80000000, 0x7FFFFFFF))


def carry_of(a, b, carry):
    """The carry of a + b + carry."""
    total = a + b
    return u8((total < a) | (total + carry < total))


def borrow_of(a, b, borrow):
    """The borrow of a - b - borrow."""
    return u8((a < b) | (a - b < borrow))


def divide_unsigned(a, b):
    """A quotient; all ones where the divisor is 0, which PTX leaves unspecified, as the code that NVIDIA's compiler makes of it does."""
    return a // (b if b != 0 else 1) if b != 0 else ~(b & 0)


def divide_signed(a, b):
    """A quotient, rounded toward zero; −1 where the divisor is 0, and the most negative number over −1 is itself."""
    found = a // (1 if (b == 0) | (b == -1) else b)
    return -1 if b == 0 else -a if b == -1 else found


def rest_unsigned(a, b):
    """A remainder; all ones where the divisor is 0."""
    return a % (b if b != 0 else 1) if b != 0 else ~(b & 0)


def rest_signed(a, b):
    """A remainder with the sign of the dividend; −1 where the divisor is 0."""
    found = a % (1 if (b == 0) | (b == -1) else b)
    return -1 if b == 0 else found


def find(instruction: PtxInstruction) -> Meaning | None:
    """One instruction of integers of 16, 32 or 64 bits."""
    kind = find_type(instruction)
    if kind is None or kind not in INTEGERS:
        return None
    if instruction.opcode in ("addc", "subc", "madc") or "cc" in instruction.suffixes:
        return _find_carried(instruction, kind)
    saturates = "sat" in instruction.suffixes
    if saturates and not (kind is S.S32 or (kind is S.U32 and instruction.opcode in ("add", "sub"))):
        return None
    return _FINDERS[instruction.opcode](instruction, kind)


def _find_sum(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    adds, bits = instruction.opcode == "add", name_bits(kind)
    sign = "+" if adds else "-"
    if "sat" not in instruction.suffixes:
        return of_one(as_unsigned(kind), 2, f"a({bits}) {sign} b({bits})")
    if kind is S.S32:
        return of_one(kind, 2, f"s32(clamp(s64(a(s32)) {sign} s64(b(s32)), -0x80000000, 0x7FFFFFFF))")
    return of_one(kind, 2, f"u32(clamp(s64(a(u32)) {sign} s64(b(u32)), 0, 0xFFFFFFFF))")


def _write_product(instruction: PtxInstruction, kind: ScalarType) -> tuple[ScalarType, str] | None:
    """The product's type, and it."""
    words, name = instruction.suffixes, kind.value
    if "24" in instruction.opcode:
        if kind.bytes != 4:
            return None
        wide = as_wide(kind).value
        a, b = f"(a({name}) << 8 >> 8)", f"(b({name}) << 8 >> 8)"
        return kind, f"{name}({wide}({a}) * {wide}({b}) >> 16)" if "hi" in words else f"{a} * {b}"
    if "wide" in words:
        wide = "" if kind.bytes == 8 else as_wide(kind).value
        return (as_wide(kind), f"{wide}(a({name})) * {wide}(b({name}))") if wide else None
    if "hi" in words:
        wide = f"{name[0]}{16 * kind.bytes}"
        return kind, f"{name}({wide}(a({name})) * {wide}(b({name})) >> {8 * kind.bytes})"
    return as_unsigned(kind), f"a({name_bits(kind)}) * b({name_bits(kind)})"


def _find_product(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    found = _write_product(instruction, kind)
    if found is None:
        return None
    result, product = found
    if instruction.opcode not in _PRODUCTS:
        return Meaning(sources=(kind, kind), results=(result,), values=(product,))
    saturates = "sat" in instruction.suffixes and ("hi" in instruction.suffixes or "24" in instruction.opcode)
    total = f"add_saturated({product}, c(s32))" if saturates else f"{product} + c({result.value})"
    return Meaning(sources=(kind, kind, result), results=(result,), values=(total,))


def _find_distance(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    name, bits = kind.value, name_bits(kind)
    distance = f"{bits}(a({name}) - b({name}) if a({name}) > b({name}) else b({name}) - a({name}))"
    result = as_unsigned(kind)
    return Meaning(sources=(kind, kind, result), results=(result,), values=(f"{distance} + c({bits})",))


def _find_sign(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    if kind not in SIGNED:
        return None
    bits = name_bits(kind)
    negated = f"-a({bits})"
    value = negated if instruction.opcode == "neg" else f"{negated} if a({kind.value}) < 0 else a({bits})"
    return of_one(as_unsigned(kind), 1, value)


def _find_extreme(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    name, sign = kind.value, "<" if instruction.opcode == "min" else ">"
    value = f"a({name}) if a({name}) {sign} b({name}) else b({name})"
    return of_one(kind, 2, f"raise_to_zero({value})" if "relu" in instruction.suffixes else value)


def raise_to_zero(value):
    """``.relu``: at least 0."""
    return 0 if value < 0 else value


def _find_quotient(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    name = "divide" if instruction.opcode == "div" else "rest"
    value = f"{name}_{'signed' if kind.is_signed else 'unsigned'}(a({kind.value}), b({kind.value}))"
    return Meaning(sources=(kind, kind), results=(kind,), values=(value,), divides=True)


def _find_carried(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    reads, writes = instruction.opcode.endswith("c"), "cc" in instruction.suffixes
    if kind not in _CARRIED:
        return None
    result, bits = as_unsigned(kind), name_bits(kind)
    opcode = instruction.opcode.removesuffix("c")
    a, b = f"a({bits})", f"b({bits})"
    sources: tuple[ScalarType, ...] = (result, result)
    steps: tuple[tuple[str, int, str], ...] = ()
    if opcode == "mad":
        found = _write_product(instruction, kind)
        if found is None or found[0].bytes != kind.bytes:
            return None
        steps, a, b, sources = (("x", 8 * kind.bytes, found[1]),), f"x({bits})", f"c({bits})", (kind, kind, result)
    sign, flag = ("-", "borrow_of") if opcode == "sub" else ("+", "carry_of")
    carried = f"{bits}(k(u8))" if reads else "0"
    return Meaning(
        sources=sources,
        results=(result,),
        steps=steps,
        values=(f"{a} {sign} {b} {sign} {carried}",),
        carry=f"{flag}({a}, {b}, {carried})" if writes else "",
    )


_FINDERS: dict[str, Callable[[PtxInstruction, ScalarType], Meaning | None]] = {
    "add": _find_sum, "sub": _find_sum, "mul": _find_product, "mad": _find_product, "mul24": _find_product, "mad24": _find_product,
    "sad": _find_distance, "abs": _find_sign, "neg": _find_sign, "div": _find_quotient, "rem": _find_quotient,
    "min": _find_extreme, "max": _find_extreme,
}  # fmt: skip

FAMILY = Family(opcodes=(*_FINDERS, "addc", "subc", "madc"), find=find)
