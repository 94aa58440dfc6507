"""``setp set selp slct``, of halves and their pairs as well.

Comparisons without ``u`` are false where an operand is NaN, those with it are true. Source: PTX ISA 9.0, sections 9.7.6 and 9.7.7.
"""

from collections.abc import Callable

from gpa_lsp.code.ptx.model import Pair, PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import (
    ELEMENTS,
    PAIRS,
    Family,
    Meaning,
    as_unsigned,
    find_combination,
    name_bits,
    write_comparison,
    write_half,
)

S = ScalarType
_SELECTED = frozenset({S.B16, S.B32, S.B64, S.U16, S.U32, S.U64, S.S16, S.S32, S.S64, S.F32, S.F64})
# What ``set`` gives where the comparison holds: all ones, or the bits of 1.0
_TRUE = {
    S.U16: 0xFFFF,
    S.S16: 0xFFFF,
    S.U32: 0xFFFF_FFFF,
    S.S32: 0xFFFF_FFFF,
    S.F16: 0x3C00,
    S.BF16: 0x3F80,
    S.F32: 0x3F80_0000,
}
_TRUE_OF_PAIRS = {S.F16X2: 0x3C00, S.BF16X2: 0x3F80, S.U32: 0xFFFF, S.S32: 0xFFFF, S.U16X2: 0xFFFF, S.S16X2: 0xFFFF}


def find(instruction: PtxInstruction) -> Meaning | None:
    """A comparison or a selection."""
    return _FINDERS[instruction.opcode](instruction)


def _find_comparisons(instruction: PtxInstruction, kind: ScalarType) -> list[str] | None:
    """Expressions of whether the comparison holds, and of that of pairs' upper halves; None for unsupported ones."""
    flushes = "ftz" in instruction.suffixes
    operands: list[tuple[str, str] | None] = [None]
    if kind in (S.F32, S.F64):
        names = [f"flush({one}(f32))" if flushes and kind is S.F32 else f"{one}({kind.value})" for one in "ab"]
        operands = [(names[0], names[1])]
    elif kind in ELEMENTS:
        shifts = (0, 16) if kind in PAIRS else (None,)
        halves = [[write_half(one, ELEMENTS[kind], shift=shift, flushes=flushes) for one in "ab"] for shift in shifts]
        operands = [(low, high) for low, high in halves]
    elif kind.is_float:
        return None
    found = [write_comparison(instruction, kind, one) for one in operands]
    return None if None in found else [f"u8({one})" for one in found]


def _join(instruction: PtxInstruction, holds: str) -> str:
    sign = find_combination(instruction)
    return holds if sign is None else f"{holds} {sign} c(u8)"


def _list_sources(instruction: PtxInstruction, kind: ScalarType) -> tuple[ScalarType, ...]:
    source = kind if kind in (S.F32, S.F64) or kind in ELEMENTS else as_unsigned(kind)
    return (source, source) if find_combination(instruction) is None else (source, source, S.PRED)


def _find_setp(instruction: PtxInstruction) -> Meaning | None:
    if len(instruction.types) != 1:
        return None
    kind = instruction.types[0]
    found = _find_comparisons(instruction, kind)
    two = len(instruction.destinations) == 1 and isinstance(instruction.destinations[0], Pair)
    if found is None or (kind in PAIRS and not two):
        return None
    if two and kind not in PAIRS:
        found.append(f"u8({found[0]} == 0)")  # the opposite
    values = tuple(_join(instruction, one) for one in found)
    return Meaning(sources=_list_sources(instruction, kind), results=(S.PRED,) * len(values), values=values)


def _find_set(instruction: PtxInstruction) -> Meaning | None:
    """``set.cmp{.bool}.dtype.stype``: all ones, or 1.0, where it holds."""
    if len(instruction.types) != 2:
        return None
    result, kind = instruction.types
    true = (_TRUE_OF_PAIRS if kind in PAIRS else _TRUE).get(result)
    found = _find_comparisons(instruction, kind)
    if true is None or found is None:
        return None
    bits = name_bits(result)
    parts = [f"{bits}({_join(instruction, one)}) * {true << 16 * place}" for place, one in enumerate(found)]
    given = result if result is S.F32 else as_unsigned(result)
    return Meaning(sources=_list_sources(instruction, kind), results=(given,), values=(" | ".join(parts),))


def _find_selp(instruction: PtxInstruction) -> Meaning | None:
    return _write_choice(instruction, "c(u8) != 0", S.PRED) if len(instruction.types) == 1 else None


def _write_choice(instruction: PtxInstruction, test: str, by: ScalarType) -> Meaning | None:
    kind = instruction.types[0]
    if kind not in _SELECTED:
        return None
    bits, kept = name_bits(kind), kind if kind in (S.F32, S.F64) else as_unsigned(kind)
    return Meaning(sources=(kept, kept, by), results=(kept,), values=(f"a({bits}) if {test} else b({bits})",))


def _find_slct(instruction: PtxInstruction) -> Meaning | None:
    """``slct{.ftz}.dtype.s32|f32 d, a, b, c``: a where c ≥ 0 (−0 included), else b; NaN selects b."""
    if len(instruction.types) != 2 or instruction.types[1] not in (S.S32, S.F32):
        return None
    by = instruction.types[1]
    compared = "flush(c(f32)) >= 0.0" if "ftz" in instruction.suffixes else "c(f32) >= 0.0"
    return _write_choice(instruction, compared if by is S.F32 else "c(s32) >= 0", by)


_FINDERS: dict[str, Callable[[PtxInstruction], Meaning | None]] = {
    "setp": _find_setp, "set": _find_set, "selp": _find_selp, "slct": _find_slct,
}  # fmt: skip

FAMILY = Family(opcodes=tuple(_FINDERS), find=find)
