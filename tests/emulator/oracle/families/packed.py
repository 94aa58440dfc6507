"""Packed arithmetic: ``add sub mul fma.f32x2``, ``add sub min max.u16x2|s16x2|u8x4|s8x4``, ``dp4a`` and ``dp2a``.

Source: PTX ISA 9.0, sections 9.7.1.1, 9.7.1.13, 9.7.1.14, 9.7.1.23, 9.7.1.24 and 9.7.3.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_rounding, find_type
from tests.emulator.oracle.directed import find_arithmetic
from tests.emulator.oracle.lanes import by_parts
from tests.emulator.oracle.model import Family, LaneOperation, same_types
from tests.emulator.oracle.single import finish

Function = Callable[..., Any]
S = ScalarType


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind arithmetic on the parts of registers."""
    if instruction.opcode in ("dp4a", "dp2a"):
        return _bind_dot(instruction)
    kind = find_type(instruction)
    if kind is S.F32X2:
        return _bind_singles(instruction)
    parts = [_INTEGER_PARTS[word] for word in instruction.suffixes if word in _INTEGER_PARTS]
    if len(parts) != 1 or instruction.opcode not in _INTEGER_FUNCTIONS:
        return None
    return _bind_integers(instruction, parts[0])


def _bind_singles(instruction: PtxInstruction) -> LaneOperation | None:
    if instruction.opcode not in ("add", "sub", "mul", "fma"):
        return None
    function, count = find_arithmetic(S.F32, instruction.opcode, find_rounding(instruction.suffixes))
    finished = finish(function, flushes="ftz" in instruction.suffixes)
    return same_types(by_parts(finished, np.float32), S.F32X2, count)


_INTEGER_PARTS: dict[str, "np.dtype[Any]"] = {
    "u16x2": np.dtype(np.uint16),
    "s16x2": np.dtype(np.int16),
    "u8x4": np.dtype(np.uint8),
    "s8x4": np.dtype(np.int8),
}
_INTEGER_FUNCTIONS: dict[str, Function] = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}


def _bind_integers(instruction: PtxInstruction, part: "np.dtype[Any]") -> LaneOperation | None:
    """``add sub{.sat}`` and ``min max{.relu}`` of two 16-bit or four 8-bit integers."""
    function = _INTEGER_FUNCTIONS[instruction.opcode]
    if "relu" in instruction.suffixes:
        raw, zero = function, part.type(0)
        function = lambda a, b: np.maximum(raw(a, b), zero)  # noqa: E731
    if "sat" in instruction.suffixes:
        function = _saturate(function, part)
    return same_types(by_parts(function, part), S.U32, 2)


def _saturate(function: Function, part: "np.dtype[Any]") -> Function:
    """Clamp results to the range of a part."""
    least, greatest = np.iinfo(part).min, np.iinfo(part).max

    def evaluate(a: Any, b: Any) -> Any:
        return np.clip(function(a.astype(np.int32), b.astype(np.int32)), least, greatest).astype(part)

    return evaluate


def _bind_dot(instruction: PtxInstruction) -> LaneOperation | None:
    """Four products of bytes, or two of 16-bit numbers and bytes, and a sum; modulo 2^32."""
    if len(instruction.types) != 2 or not set(instruction.types) <= {S.U32, S.S32}:
        return None
    a_signed, b_signed = (kind is S.S32 for kind in instruction.types)
    bytes_of_b: np.dtype[Any] = np.dtype(np.int8 if b_signed else np.uint8)
    parts_of_a: np.dtype[Any]
    if instruction.opcode == "dp4a":
        parts_of_a, first, count = np.dtype(np.int8 if a_signed else np.uint8), 0, 4
    else:
        parts_of_a, first, count = np.dtype(np.int16 if a_signed else np.uint16), 0, 2
        first = 2 if "hi" in instruction.suffixes else 0

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        left = np.ascontiguousarray(a).view(parts_of_a).reshape(-1, 4 // parts_of_a.itemsize)
        right = np.ascontiguousarray(b).view(bytes_of_b).reshape(-1, 4)
        total = c
        for place in range(count):
            product = np.multiply(left[:, place], right[:, first + place], dtype=np.int32)
            total = np.add(total, product.view(np.uint32))
        return total

    return LaneOperation(evaluate=evaluate, source_types=(S.U32,) * 3, result_types=(S.U32,))


FAMILY = Family(opcodes=("add", "sub", "mul", "fma", "min", "max", "dp4a", "dp2a"), bind=bind)
