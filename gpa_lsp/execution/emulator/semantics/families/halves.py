"""``add sub mul fma neg abs min max ex2 tanh`` of f16, bf16 and their pairs.

Sums and products are computed in single precision, where rounding twice does no harm (24 bits are at least twice 11 and two more), fused
multiply-adds and functions in double. Source: PTX ISA 9.0, section 9.7.4.
"""

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import (
    ELEMENTS,
    PAIRS,
    Family,
    Meaning,
    find_type,
    limit,
    of_one,
    write_extreme,
    write_half,
)

S = ScalarType
_SIMPLE = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}"}
_IN_DOUBLE = {"fma": "f64({0}) * f64({1}) + f64({2})", "ex2": "each(exp2, f64({0}))", "tanh": "each(tanh, f64({0}))"}
_COUNTS = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "ex2": 1, "tanh": 1, "neg": 1, "abs": 1, "min": 2, "max": 2}


def find(instruction: PtxInstruction) -> Meaning | None:
    """Arithmetic in half precision."""
    kind = find_type(instruction)
    if kind is None or kind not in ELEMENTS or not {"rz", "rm", "rp", "oob"}.isdisjoint(instruction.suffixes):
        return None
    count = _COUNTS[instruction.opcode]
    if instruction.opcode in ("min", "max") and len(instruction.sources) == 3:
        count = 3
    if kind in PAIRS:
        low, high = (_write_one(instruction, ELEMENTS[kind], shift, count) for shift in (0, 16))
        return of_one(kind, count, f"u32({low}) | u32({high}) << 16")
    return of_one(kind, count, f"u16({_write_one(instruction, kind, None, count)})")


def _write_one(instruction: PtxInstruction, kind: ScalarType, shift: int | None, count: int) -> str:
    """The bits of one element."""
    opcode, words = instruction.opcode, instruction.suffixes
    flushes = "ftz" in words
    if opcode in ("neg", "abs"):
        bits = "u32(a(u16))" if shift is None else f"(a(u32) >> {shift} & 0xFFFF)"
        bits = f"flush_bits({bits}, {kind.name})" if flushes else bits
        return f"{bits} & 0x7FFF" if opcode == "abs" else f"{bits} ^ 0x8000"
    operands = [write_half(one, kind, shift=shift, flushes=flushes) for one in "abc"[:count]]
    if opcode in ("min", "max"):
        return f"narrow_single({write_extreme(instruction, operands)}, {kind.name}, NEAREST, 0)"
    value = (_SIMPLE.get(opcode) or _IN_DOUBLE[opcode]).format(*operands)
    value = limit(words, value)
    narrow = "narrow_single" if opcode in _SIMPLE else "narrow_double"
    value = f"u32({narrow}({value}, {kind.name}, NEAREST, 0))"
    return f"flush_bits({value}, {kind.name})" if flushes else value


FAMILY = Family(opcodes=tuple(_COUNTS), find=find)
