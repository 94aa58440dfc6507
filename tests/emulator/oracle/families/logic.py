"""Logic and shifts: ``and or xor not cnot lop3 shl shr shf``.

Source: PTX ISA 9.0, section 9.7.8 (logic and shift instructions). Shift amounts are unsigned 32-bit numbers; those above the width shift
everything out (``shl``, ``shr``, ``shf.clamp``) or count modulo 32 (``shf.wrap``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import INTEGERS, as_unsigned, find_literal, find_type
from tests.emulator.oracle.model import Family, LaneOperation, same_types

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
    function = build_lop3(table)
    if len(instruction.sources) == 4:
        return same_types(lambda a, b, c, _table: function(a, b, c), S.U32, 4)
    combine = np.logical_or if "or" in instruction.suffixes else np.logical_and

    def evaluate(a: Any, b: Any, c: Any, _table: Any, q: Any) -> Any:
        result = function(a, b, c)
        return result, combine(result != 0, q)

    return LaneOperation(evaluate=evaluate, source_types=(*(S.U32,) * 4, S.PRED), result_types=(S.U32, S.PRED))


def build_lop3(table: int) -> Function:
    """Build the function of a ``lop3`` truth table: bit ``4a + 2b + c`` of it for each bit."""

    def evaluate(*inputs: Any) -> Any:
        a, b, c = (np.unpackbits(np.ascontiguousarray(one).view(np.uint8)) for one in inputs)
        return np.packbits(table >> (4 * a + 2 * b + c) & 1).view(np.uint32)

    return evaluate


def _bind_shift(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    left = instruction.opcode == "shl"
    if kind not in _BITS and (left or kind not in INTEGERS):
        return None
    shift: Function = np.left_shift if left else np.right_shift
    data = as_unsigned(kind) if not kind.is_signed else kind
    most = np.uint32(kind.bytes * 8)  # numpy shifts everything out then
    return LaneOperation(
        evaluate=lambda a, b: shift(a, np.minimum(b, most).astype(a.dtype)),
        source_types=(data, S.U32),
        result_types=(data,),
    )


def _bind_funnel(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    """``shf.l`` gives the high word of {b,a} << c, ``shf.r`` the low word of {b,a} >> c."""
    if kind is not S.B32:
        return None
    left, wraps = "l" in instruction.suffixes, "wrap" in instruction.suffixes

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        amount = (c & np.uint32(31) if wraps else np.minimum(c, np.uint32(32))).astype(np.uint64)
        return (both << amount >> np.uint64(32) if left else both >> amount).astype(np.uint32)

    return same_types(evaluate, S.U32, 3)


_OTHERS: dict[str, Callable[[PtxInstruction, ScalarType], LaneOperation | None]] = {
    "cnot": _bind_cnot,
    "lop3": _bind_lop3,
    "shl": _bind_shift,
    "shr": _bind_shift,
    "shf": _bind_funnel,
}

FAMILY = Family(opcodes=(*_LOGIC, *_OTHERS), bind=bind)
