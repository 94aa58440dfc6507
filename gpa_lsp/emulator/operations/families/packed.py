"""Packed arithmetic: ``add sub mul fma.f32x2``, ``add min max.u16x2|s16x2``, ``dp4a`` and ``dp2a``.

Source: PTX ISA 9.0, sections 9.7.1.1, 9.7.1.13, 9.7.1.14, 9.7.1.23, 9.7.1.24 and 9.7.3.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.emulator.operations import directed
from gpa_lsp.emulator.operations.fused import fuse_single
from gpa_lsp.emulator.operations.model import Family, LaneOperation
from gpa_lsp.emulator.operations.modifiers import find_rounding, find_type, over_lanes, same_types
from gpa_lsp.emulator.operations.parts import by_parts
from gpa_lsp.emulator.operations.single import finish
from gpa_lsp.emulator.ptx.model import PtxInstruction
from gpa_lsp.emulator.ptx.scalar_types import ScalarType

Function = Callable[..., Any]
S = ScalarType


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind arithmetic on the parts of registers."""
    if instruction.opcode in ("dp4a", "dp2a"):
        return _bind_dot(instruction)
    kind = find_type(instruction)
    if kind is S.F32X2:
        return _bind_singles(instruction)
    if kind in (S.U16X2, S.S16X2) and kind is not None:
        return _bind_integers(instruction, kind)
    return None


_NEAREST: dict[str, tuple[Function, int]] = {
    "add": (np.add, 2),
    "sub": (np.subtract, 2),
    "mul": (np.multiply, 2),
    "fma": (fuse_single, 3),
}
_DIRECTED: dict[str, Callable[[str], Function]] = {
    "add": directed.add_single,
    "mul": directed.multiply_single,
    "fma": directed.fuse_single,
}


def _bind_singles(instruction: PtxInstruction) -> LaneOperation | None:
    if instruction.opcode not in _NEAREST:
        return None
    function, count = _NEAREST[instruction.opcode]
    mode = find_rounding(instruction)
    if mode != "rn":
        if instruction.opcode == "sub":
            add = directed.add_single(mode)
            function = lambda a, b: add(a, np.negative(b))  # noqa: E731
        else:
            function = _DIRECTED[instruction.opcode](mode)
    finished = finish(function, flushes="ftz" in instruction.suffixes)
    return same_types(by_parts(finished, np.float32), S.F32X2, count)


def _bind_integers(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    signed = kind is S.S16X2
    part = np.dtype(np.int16 if signed else np.uint16)
    functions: dict[str, Function] = {"add": np.add, "min": np.minimum, "max": np.maximum}
    function = functions.get(instruction.opcode)
    if function is None:
        return None
    if "relu" in instruction.suffixes:
        raw, zero = function, part.type(0)
        function = lambda a, b: np.maximum(raw(a, b), zero)  # noqa: E731
    return same_types(by_parts(function, part), kind, 2)


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

    return LaneOperation(evaluate=over_lanes(evaluate), source_types=(S.U32,) * 3, result_types=(S.U32,))


FAMILY = Family(opcodes=("add", "sub", "mul", "fma", "min", "max", "dp4a", "dp2a"), bind=bind)
