"""``and or xor not cnot lop3 shl shr shf``.

Source: PTX ISA 9.0, section 9.7.8 (logic and shift instructions). Shift amounts are unsigned 32-bit numbers; those above the width shift
everything out (``shl``, ``shr``, ``shf.clamp``) or count modulo 32 (``shf.wrap``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.model import Family, LaneOperation
from gpa_lsp.execution.emulator.operations.modifiers import INTEGERS, as_unsigned, find_literal, find_type, same_types
from gpa_lsp.execution.emulator.operations.truth_tables import build_lop3

Function = Callable[..., Any]
S = ScalarType
_BITS = frozenset({S.B16, S.B32, S.B64})


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a logic or shift instruction."""
    kind = find_type(instruction)
    if kind is None:
        return None
    if instruction.opcode in _LOGIC:
        return _bind_logic(instruction.opcode, kind)
    return _OTHERS[instruction.opcode](instruction, kind)


_LOGIC: dict[str, tuple[Function, int]] = {
    "and": (np.bitwise_and, 2),
    "or": (np.bitwise_or, 2),
    "xor": (np.bitwise_xor, 2),
    "not": (np.invert, 1),
}


def _bind_logic(opcode: str, kind: ScalarType) -> LaneOperation | None:
    if kind is not S.PRED and kind not in _BITS:
        return None
    function, count = _LOGIC[opcode]
    return same_types(function, as_unsigned(kind), count)


def _bind_cnot(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    if kind not in _BITS:
        return None
    dtype = kind.natural_dtype
    zero = dtype.type(0)
    return same_types(lambda a: np.equal(a, zero).astype(dtype), as_unsigned(kind), 1)


def _bind_lop3(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    """``lop3.b32 d, a, b, c, lut`` and ``lop3.or|and.b32 d|p, a, b, c, lut, q``."""
    table = find_literal(instruction, 3)
    if kind is not S.B32 or table is None:
        return None
    function = build_lop3(table & 0xFF)
    if len(instruction.sources) == 4:
        return LaneOperation(
            evaluate=lambda a, b, c, _table: function(a, b, c), source_types=(S.U32,) * 4, result_types=(S.U32,)
        )
    combine = np.logical_or if "or" in instruction.suffixes else np.logical_and
    zero = np.uint32(0)

    def evaluate(a: Any, b: Any, c: Any, _table: Any, q: Any) -> Any:
        result = function(a, b, c)
        return result, combine(np.not_equal(result, zero), q)

    return LaneOperation(evaluate=evaluate, source_types=(*(S.U32,) * 4, S.PRED), result_types=(S.U32, S.PRED))


def _bind_shift(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    left = instruction.opcode == "shl"
    if kind not in _BITS and (left or kind not in INTEGERS):
        return None
    width = kind.bytes * 8
    dtype = kind.natural_dtype
    shift: Function = np.left_shift if left else np.right_shift
    data = as_unsigned(kind) if not kind.is_signed else kind
    amount = find_literal(instruction, 1)
    if amount is not None:
        fixed = dtype.type(min(amount & 0xFFFF_FFFF, width))
        evaluate: Function = lambda a, _b: shift(a, fixed)  # noqa: E731
    elif width == 32:
        # numpy shifts everything out where the amount is not below the width, as an unsigned number: just what PTX wants.
        evaluate = shift if not kind.is_signed else lambda a, b: shift(a, b.view(np.int32))
    elif width == 64:
        evaluate = lambda a, b: shift(a, b.astype(dtype))  # noqa: E731
    else:
        limit = np.uint32(width)
        evaluate = lambda a, b: shift(a, np.minimum(b, limit).astype(dtype))  # noqa: E731
    return LaneOperation(evaluate=evaluate, source_types=(data, S.U32), result_types=(data,))


_31, _32, _64 = np.uint32(31), np.uint32(32), np.uint64(32)


def _bind_funnel(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    """``shf.l`` gives the high word of {b,a} << c, ``shf.r`` the low word of {b,a} >> c."""
    if kind is not S.B32:
        return None
    left, wraps = "l" in instruction.suffixes, "wrap" in instruction.suffixes
    amount = find_literal(instruction, 2)
    if amount is not None:
        amount = amount & 31 if wraps else min(amount & 0xFFFF_FFFF, 32)
        evaluate = _build_fixed_funnel(amount, left=left)
    else:
        evaluate = _build_funnel(left=left, wraps=wraps)
    return LaneOperation(evaluate=evaluate, source_types=(S.U32,) * 3, result_types=(S.U32,))


def _build_fixed_funnel(amount: int, *, left: bool) -> Function:
    up, down = (amount, 32 - amount) if left else (32 - amount, amount)
    if up == 0:
        return lambda a, b, _c: b
    if down == 0:
        return lambda a, b, _c: a
    shift_up, shift_down = np.uint32(up), np.uint32(down)
    return lambda a, b, _c: np.bitwise_or(np.left_shift(b, shift_up), np.right_shift(a, shift_down))


def _build_funnel(*, left: bool, wraps: bool) -> Function:
    def evaluate(a: Any, b: Any, c: Any) -> Any:
        amount = np.bitwise_and(c, _31) if wraps else np.minimum(c, _32)
        rest = np.subtract(_32, amount)
        if left:
            return np.bitwise_or(np.left_shift(b, amount), np.right_shift(a, rest))
        return np.bitwise_or(np.left_shift(b, rest), np.right_shift(a, amount))

    return evaluate


_OTHERS: dict[str, Callable[[PtxInstruction, ScalarType], LaneOperation | None]] = {
    "cnot": _bind_cnot,
    "lop3": _bind_lop3,
    "shl": _bind_shift,
    "shr": _bind_shift,
    "shf": _bind_funnel,
}

FAMILY = Family(opcodes=(*_LOGIC, *_OTHERS), bind=bind)
