"""Integer ``add sub mul mad mul24 mad24 sad abs neg min max``.

Source: PTX ISA 9.0, section 9.7.1 (integer arithmetic). All wrap modulo 2^width; ``.sat`` exists for sums of 32 bits alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.modifiers import INTEGERS, SIGNED, as_unsigned, as_wide, find_type
from tests.emulator.oracle.integers import (
    add_saturated,
    add_saturated_unsigned,
    multiply_high,
    subtract_saturated,
    subtract_saturated_unsigned,
)
from tests.emulator.oracle.model import Family, LaneOperation, same_types

Function = Callable[..., Any]


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind one instruction of integers of 16, 32 or 64 bits."""
    kind = find_type(instruction)
    if kind not in INTEGERS or kind is None or "cc" in instruction.suffixes:
        return None
    if "sat" in instruction.suffixes and not _can_saturate(instruction.opcode, kind):
        return None
    return _BINDERS[instruction.opcode](instruction, kind)


def _can_saturate(opcode: str, kind: ScalarType) -> bool:
    return kind is ScalarType.S32 or (kind is ScalarType.U32 and opcode in ("add", "sub"))


def _bind_sum(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    adds = instruction.opcode == "add"
    if "sat" in instruction.suffixes:
        if kind is ScalarType.U32:
            return same_types(add_saturated_unsigned if adds else subtract_saturated_unsigned, kind, 2)
        return same_types(add_saturated if adds else subtract_saturated, kind, 2)
    return same_types(np.add if adds else np.subtract, as_unsigned(kind), 2)


def _bind_mul(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    if "wide" in instruction.suffixes:
        if kind.bytes == 8:
            return None
        wide = as_wide(kind)
        return LaneOperation(evaluate=_multiply_wide(kind), source_types=(kind, kind), result_types=(wide,))
    if "hi" in instruction.suffixes:
        return same_types(multiply_high(kind), kind, 2)
    return same_types(np.multiply, as_unsigned(kind), 2)


def _multiply_wide(kind: ScalarType) -> Function:
    dtype = as_wide(kind).natural_dtype

    def evaluate(a: Any, b: Any) -> Any:
        return np.multiply(a, b, dtype=dtype)

    return evaluate


def _bind_mad(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    if "wide" in instruction.suffixes:
        if kind.bytes == 8:
            return None
        wide = as_wide(kind)
        function = _then_add(_multiply_wide(kind))
        return LaneOperation(evaluate=function, source_types=(kind, kind, wide), result_types=(wide,))
    if "hi" in instruction.suffixes:
        high = multiply_high(kind)
        if "sat" in instruction.suffixes:
            return same_types(lambda a, b, c: add_saturated(high(a, b), c), kind, 3)
        return same_types(_then_add(high), kind, 3)
    return same_types(_then_add(np.multiply), as_unsigned(kind), 3)


def _then_add(multiply: Function) -> Function:
    """A product, and a sum into the same array."""

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        product = multiply(a, b)
        if type(product) is np.ndarray:
            return np.add(product, c, out=product)
        return np.add(product, c)

    return evaluate


def _multiply_24(kind: ScalarType, *, high: bool) -> Function:
    """The low or high 32 bits of the 48-bit product of 24-bit numbers."""
    unused = kind.natural_dtype.type(8)
    shift = as_wide(kind).natural_dtype.type(16)
    wide = _multiply_wide(kind)
    dtype = kind.natural_dtype

    def evaluate(a: Any, b: Any) -> Any:
        a = np.right_shift(np.left_shift(a, unused), unused)
        b = np.right_shift(np.left_shift(b, unused), unused)
        if high:
            return np.right_shift(wide(a, b), shift).astype(dtype)
        return np.multiply(a, b)

    return evaluate


def _bind_24(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    if kind.bytes != 4:
        return None
    multiply = _multiply_24(kind, high="hi" in instruction.suffixes)
    if instruction.opcode == "mul24":
        return same_types(multiply, kind, 2)
    if "sat" in instruction.suffixes:
        return same_types(lambda a, b, c: add_saturated(multiply(a, b), c), kind, 3)
    return same_types(_then_add(multiply), kind, 3)


def _bind_sad(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    unsigned = as_unsigned(kind).natural_dtype

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        distance = np.subtract(np.maximum(a, b), np.minimum(a, b)).view(unsigned)
        return np.add(distance, c)

    result = as_unsigned(kind)
    return LaneOperation(evaluate=evaluate, source_types=(kind, kind, result), result_types=(result,))


def _bind_one(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    if kind not in SIGNED:
        return None
    if instruction.opcode == "neg":
        return same_types(np.negative, as_unsigned(kind), 1)
    return same_types(np.abs, kind, 1)


def _bind_extreme(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    function: Function = np.minimum if instruction.opcode == "min" else np.maximum
    if "relu" in instruction.suffixes:
        zero = kind.natural_dtype.type(0)
        return same_types(lambda a, b: np.maximum(function(a, b), zero), kind, 2)
    return same_types(function, kind, 2)


_BINDERS: dict[str, Callable[[PtxInstruction, ScalarType], LaneOperation | None]] = {
    "add": _bind_sum,
    "sub": _bind_sum,
    "mul": _bind_mul,
    "mad": _bind_mad,
    "mul24": _bind_24,
    "mad24": _bind_24,
    "sad": _bind_sad,
    "abs": _bind_one,
    "neg": _bind_one,
    "min": _bind_extreme,
    "max": _bind_extreme,
}

FAMILY = Family(opcodes=tuple(_BINDERS), bind=bind)
