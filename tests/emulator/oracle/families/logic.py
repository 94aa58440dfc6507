"""Logic and shifts: ``and or xor not cnot lop3 shl shr shf``.

Source: PTX ISA 9.0, section 9.7.8 (logic and shift instructions). Shift amounts are unsigned 32-bit numbers; those above the width shift
everything out (``shl``, ``shr``, ``shf.clamp``) or count modulo 32 (``shf.wrap``).
"""

from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.modifiers import INTEGERS, as_unsigned, find_literal, find_type
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


# Functions of two inputs by truth table (bit ``2*y + z``): their cost in calls, and they themselves
_PAIRS: dict[int, tuple[int, Callable[[Any, Any], Any]]] = {
    0x0: (0, lambda y, z: np.bitwise_xor(y, y)),
    0x1: (2, lambda y, z: np.invert(np.bitwise_or(y, z))),
    0x2: (2, lambda y, z: np.bitwise_and(np.invert(y), z)),
    0x3: (1, lambda y, z: np.invert(y)),
    0x4: (2, lambda y, z: np.bitwise_and(y, np.invert(z))),
    0x5: (1, lambda y, z: np.invert(z)),
    0x6: (1, np.bitwise_xor),
    0x7: (2, lambda y, z: np.invert(np.bitwise_and(y, z))),
    0x8: (1, np.bitwise_and),
    0x9: (2, lambda y, z: np.invert(np.bitwise_xor(y, z))),
    0xA: (0, lambda y, z: z),
    0xB: (2, lambda y, z: np.bitwise_or(np.invert(y), z)),
    0xC: (0, lambda y, z: y),
    0xD: (2, lambda y, z: np.bitwise_or(y, np.invert(z))),
    0xE: (1, np.bitwise_or),
    0xF: (0, lambda y, z: np.invert(np.bitwise_xor(y, y))),
}


@cache
def build_lop3(table: int) -> Function:
    """Build the function of a ``lop3`` truth table.

    One input x is taken out: f = f0 ^ (x & (f0 ^ f1)), where f0 and f1 are f at x = 0 and x = 1, functions of two inputs. The input that
    gives the cheapest form is chosen.
    """
    best: tuple[int, Function] | None = None
    for order in permutations(range(3)):
        cost, function = _take_out(table, order)
        if best is None or cost < best[0]:
            best = cost, function
    assert best is not None
    return best[1]


def _take_out(table: int, order: tuple[int, ...]) -> tuple[int, Function]:
    """Cost and function with the input ``order[0]`` taken out; the other two follow."""
    x, y, z = order
    low = _restrict(table, order, value=0)
    high = _restrict(table, order, value=1)
    low_cost, low_function = _PAIRS[low]
    if low == high:
        return low_cost, lambda *inputs: low_function(inputs[y], inputs[z])
    if low == 0:
        high_cost, high_function = _PAIRS[high]
        if high == 0xF:
            return 0, lambda *inputs: inputs[x]
        return high_cost + 1, lambda *inputs: np.bitwise_and(inputs[x], high_function(inputs[y], inputs[z]))
    if high == 0xF:
        return low_cost + 1, lambda *inputs: np.bitwise_or(inputs[x], low_function(inputs[y], inputs[z]))
    if low ^ high == 0xF:
        return low_cost + 1, lambda *inputs: np.bitwise_xor(inputs[x], low_function(inputs[y], inputs[z]))
    flip_cost, flip = _PAIRS[low ^ high]

    def evaluate(*inputs: Any) -> Any:
        part = np.bitwise_and(inputs[x], flip(inputs[y], inputs[z]))
        return np.bitwise_xor(low_function(inputs[y], inputs[z]), part)

    return low_cost + flip_cost + 2, evaluate


def _restrict(table: int, order: tuple[int, ...], *, value: int) -> int:
    """Truth table of the other two inputs when the first in order has a value."""
    x, y, z = order
    result = 0
    for first in (0, 1):
        for second in (0, 1):
            bits = [0, 0, 0]
            bits[x], bits[y], bits[z] = value, first, second
            if table >> (4 * bits[0] + 2 * bits[1] + bits[2]) & 1:
                result |= 1 << (2 * first + second)
    return result


_OTHERS: dict[str, Callable[[PtxInstruction, ScalarType], LaneOperation | None]] = {
    "cnot": _bind_cnot,
    "lop3": _bind_lop3,
    "shl": _bind_shift,
    "shr": _bind_shift,
    "shf": _bind_funnel,
}

FAMILY = Family(opcodes=(*_LOGIC, *_OTHERS), bind=bind)

_A, _B, _C = 0xF0, 0xCC, 0xAA  # Truth tables of the inputs themselves, as the PTX ISA numbers them
