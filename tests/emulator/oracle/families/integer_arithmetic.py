"""Integer ``add sub mul mad mul24 mad24 sad abs neg min max``.

Source: PTX ISA 9.0, section 9.7.1 (integer arithmetic). All wrap modulo 2^width; ``.sat`` exists for sums of 32 bits alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import INTEGERS, SIGNED, as_unsigned, as_wide, find_type
from tests.emulator.oracle.lanes import exactly
from tests.emulator.oracle.model import Family, LaneOperation, same_types

Function = Callable[..., Any]
S = ScalarType


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind one instruction of integers of 16, 32 or 64 bits."""
    kind, opcode, words = find_type(instruction), instruction.opcode, instruction.suffixes
    saturates = "sat" in words
    if kind not in INTEGERS or kind is None or "cc" in words:
        return None
    if saturates and kind is not S.S32 and not (kind is S.U32 and opcode in ("add", "sub")):
        return None
    if opcode.startswith(("mul", "mad")):
        return _bind_product(instruction, kind)
    if opcode in ("abs", "neg"):
        function: Function = np.abs if opcode == "abs" else np.negative
        return same_types(function, kind, 1) if kind in SIGNED else None
    if opcode == "sad":
        unsigned = as_unsigned(kind)
        distance = exactly(lambda a, b, c: abs(a - b) + c, unsigned)
        return LaneOperation(evaluate=distance, source_types=(kind, kind, unsigned), result_types=(unsigned,))
    if opcode in ("add", "sub"):
        function = np.add if opcode == "add" else np.subtract
        return same_types(exactly(function, kind, clamps=True) if saturates else function, kind, 2)
    extreme: Function = np.minimum if opcode == "min" else np.maximum
    if "relu" in words:
        return same_types(lambda a, b: np.maximum(extreme(a, b), kind.natural_dtype.type(0)), kind, 2)
    return same_types(extreme, kind, 2)


def _bind_product(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation | None:
    opcode, words = instruction.opcode, instruction.suffixes
    is_wide, is_high, adds = "wide" in words, "hi" in words, opcode.startswith("mad")
    if (is_wide and kind.bytes == 8) or ("24" in opcode and kind.bytes != 4):
        return None
    result = as_wide(kind) if is_wide else kind
    if "24" in opcode:
        eight = kind.natural_dtype.type(8)
        product = exactly(lambda a, b: a * b >> (16 if is_high else 0), kind)
        multiply: Function = lambda a, b: product(a << eight >> eight, b << eight >> eight)  # noqa: E731
    elif is_high:
        multiply = exactly(lambda a, b: a * b >> 8 * kind.bytes, kind)
    else:
        multiply = lambda a, b: np.multiply(a, b, dtype=result.natural_dtype)  # noqa: E731
    if not adds:
        return LaneOperation(evaluate=multiply, source_types=(kind, kind), result_types=(result,))
    clamps = "sat" in words and (is_high or "24" in opcode)
    add: Function = exactly(np.add, kind, clamps=True) if clamps else np.add
    return LaneOperation(
        evaluate=lambda a, b, c: add(multiply(a, b), c), source_types=(kind, kind, result), result_types=(result,)
    )


FAMILY = Family(opcodes=("add", "sub", "mul", "mad", "mul24", "mad24", "sad", "abs", "neg", "min", "max"), bind=bind)
