"""``setp set selp slct``.

Source: PTX ISA 9.0, sections 9.7.6 and 9.7.7 (comparison and selection; half-precision comparison).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Pair, PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import as_unsigned
from tests.emulator.oracle.comparing import find_combination, find_comparison
from tests.emulator.oracle.model import Family, LaneOperation
from tests.emulator.oracle.single import flush


def select(a: Any, b: Any, p: Any) -> Any:
    """``selp``: a where p, else b."""
    return np.where(p, a, b)


Function = Callable[..., Any]
S = ScalarType
_PAIRS = frozenset({S.F16X2, S.BF16X2})
_SELECTED = frozenset({S.B16, S.B32, S.B64, S.U16, S.U32, S.U64, S.S16, S.S32, S.S64, S.F32, S.F64})


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a comparison or a selection; those of half precision pairs stand in the family of halves."""
    return _BINDERS[instruction.opcode](instruction)


def _bind_setp(instruction: PtxInstruction) -> LaneOperation | None:
    if len(instruction.types) != 1 or instruction.types[0] in _PAIRS:
        return None
    comparison = find_comparison(instruction, instruction.types[0])
    if comparison is None:
        return None
    compare, source = comparison
    combine = find_combination(instruction)
    two = len(instruction.destinations) == 1 and isinstance(instruction.destinations[0], Pair)
    sources = (source, source) if combine is None else (source, source, S.PRED)
    return LaneOperation(
        evaluate=_build_setp(compare, combine, two=two),
        source_types=sources,
        result_types=(S.PRED, S.PRED) if two else (S.PRED,),
    )


def _build_setp(compare: Function, combine: Function | None, *, two: bool) -> Function:
    """The predicate, and with ``two`` that of the opposite comparison as well."""

    def evaluate(a: Any, b: Any, *c: Any) -> Any:
        holds = compare(a, b)
        both = [holds, np.logical_not(holds)] if two else [holds]
        found = both if combine is None else [combine(one, *c) for one in both]
        return tuple(found) if two else found[0]

    return evaluate


# What ``set`` gives where the comparison holds: all ones, or the bits of 1.0
_TRUE: dict[ScalarType, int] = {
    S.U16: 0xFFFF,
    S.S16: 0xFFFF,
    S.U32: 0xFFFF_FFFF,
    S.S32: 0xFFFF_FFFF,
    S.F16: 0x3C00,
    S.BF16: 0x3F80,
}


def _bind_set(instruction: PtxInstruction) -> LaneOperation | None:
    """``set.cmp{.bool}.dtype.stype``: all ones, or 1.0, where it holds."""
    if len(instruction.types) != 2:
        return None
    result, compared = instruction.types
    if compared in _PAIRS or not (result is S.F32 or result in _TRUE):
        return None
    comparison = find_comparison(instruction, compared)
    if comparison is None:
        return None
    compare, source = comparison
    combine = find_combination(instruction)
    kind = S.F32 if result is S.F32 else as_unsigned(result)
    true = kind.natural_dtype.type(_TRUE.get(result, 1))
    setp = _build_setp(compare, combine, two=False)
    return LaneOperation(
        evaluate=lambda *given: np.multiply(setp(*given), true),
        source_types=(source, source) if combine is None else (source, source, S.PRED),
        result_types=(kind,),
    )


def _bind_selp(instruction: PtxInstruction) -> LaneOperation | None:
    if len(instruction.types) != 1 or instruction.types[0] not in _SELECTED:
        return None
    kind = instruction.types[0]
    if kind not in (S.F32, S.F64):
        kind = as_unsigned(kind)
    return LaneOperation(evaluate=select, source_types=(kind, kind, S.PRED), result_types=(kind,))


def _bind_slct(instruction: PtxInstruction) -> LaneOperation | None:
    """``slct{.ftz}.dtype.s32|f32 d, a, b, c``: a where c ≥ 0 (−0 included), else b; NaN selects b."""
    if len(instruction.types) != 2 or instruction.types[0] not in _SELECTED:
        return None
    kind, by = instruction.types
    if by not in (S.S32, S.F32):
        return None
    if kind not in (S.F32, S.F64):
        kind = as_unsigned(kind)
    zero = by.natural_dtype.type(0)
    flushes = by is S.F32 and "ftz" in instruction.suffixes

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        return select(a, b, np.greater_equal(flush(c) if flushes else c, zero))

    return LaneOperation(evaluate=evaluate, source_types=(kind, kind, by), result_types=(kind,))


_BINDERS: dict[str, Callable[[PtxInstruction], LaneOperation | None]] = {
    "setp": _bind_setp,
    "set": _bind_set,
    "selp": _bind_selp,
    "slct": _bind_slct,
}

FAMILY = Family(opcodes=tuple(_BINDERS), bind=bind)
