"""``mov``: copies, packing and unpacking of vectors.

Moves of special registers, symbols and 128 bits are the engine's. Source: PTX ISA 9.0, section 9.7.9.
"""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Operand, PtxInstruction, SpecialRegister, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import as_unsigned, find_type
from tests.emulator.oracle.model import Family, LaneOperation, same_types

S = ScalarType
_VECTORS = ("v2", "v4")


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a move between registers."""
    kind = find_type(instruction)
    if kind is None or kind is S.B128 or len(instruction.sources) != 1 or len(instruction.destinations) != 1:
        return None
    source, destination = instruction.sources[0], instruction.destinations[0]
    if any(word in _VECTORS for word in instruction.suffixes):
        return _bind_elements(kind, source, destination)
    if isinstance(source, Vector) and any(isinstance(one, SpecialRegister) for one in source.elements):
        return None  # such as %tid, which is no number
    if isinstance(source, Vector):
        return _bind_pack(kind, len(source.elements))
    if isinstance(destination, Vector):
        return _bind_unpack(kind, len(destination.elements))
    kept = kind if kind in (S.F32, S.F64, S.PRED) else as_unsigned(kind)
    return same_types(_keep, kept, 1)


def _bind_elements(kind: ScalarType, source: Operand, destination: Operand) -> LaneOperation | None:
    """``mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid``: each element by itself."""
    if not isinstance(source, Vector) or not isinstance(destination, Vector):
        return None
    count = len(source.elements)
    if count != len(destination.elements):
        return None
    kinds = (kind if kind in (S.F32, S.F64) else as_unsigned(kind),) * count
    return LaneOperation(evaluate=lambda *elements: elements, source_types=kinds, result_types=kinds)


def _keep(a: Any) -> Any:
    return a


def _find_parts(kind: ScalarType, count: int) -> tuple[ScalarType, ScalarType] | None:
    """The whole and its parts as unsigned integers."""
    if count not in (2, 4) or kind.bytes % count or kind.bytes // count == 0:
        return None
    whole = as_unsigned(kind)
    parts = {1: S.U8, 2: S.U16, 4: S.U32}.get(kind.bytes // count)
    return None if parts is None else (whole, parts)


def _bind_pack(kind: ScalarType, count: int) -> LaneOperation | None:
    found = _find_parts(kind, count)
    if found is None:
        return None
    whole, part = found
    dtype = whole.natural_dtype
    shifts = [dtype.type(8 * part.bytes * index) for index in range(count)]

    def evaluate(*parts: Any) -> Any:
        result = parts[0].astype(dtype)
        for value, shift in zip(parts[1:], shifts[1:], strict=True):
            result = np.bitwise_or(result, np.left_shift(value.astype(dtype), shift))
        return result

    return LaneOperation(evaluate=evaluate, source_types=(part,) * count, result_types=(whole,))


def _bind_unpack(kind: ScalarType, count: int) -> LaneOperation | None:
    found = _find_parts(kind, count)
    if found is None:
        return None
    whole, part = found
    dtype = part.natural_dtype
    shifts = [whole.natural_dtype.type(8 * part.bytes * index) for index in range(count)]

    def evaluate(value: Any) -> Any:
        return tuple(np.right_shift(value, shift).astype(dtype) for shift in shifts)

    return LaneOperation(evaluate=evaluate, source_types=(whole,), result_types=(part,) * count)


FAMILY = Family(opcodes=("mov",), bind=bind)
