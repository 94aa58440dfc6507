"""``ex2 lg2 sin cos tanh rsqrt`` of f32, ``rsqrt`` of f64, and ``sqrt.approx.ftz.f64``.

Computed by numpy in double precision, and rounded to nearest: results are closer to the true ones than the ISA demands,
so they differ from a GPU's in their last bits. Source: PTX ISA 9.0, sections 9.7.3.15 to 9.7.3.21, which allow errors of 2^-22 and more.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_type
from tests.emulator.oracle.model import Family, LaneOperation, same_types
from tests.emulator.oracle.single import finish, keep_high_word

Function = Callable[..., Any]
S = ScalarType


def _in_double(function: Function) -> Function:
    return lambda a: function(a.astype(np.float64)).astype(np.float32)


def invert_root(a: Any) -> Any:
    """1/√a of float64."""
    return np.divide(np.float64(1), np.sqrt(a))


# By opcode, of float32, before ``.ftz``
SINGLE: dict[str, Function] = {
    "ex2": _in_double(np.exp2),
    "lg2": _in_double(np.log2),
    "sin": _in_double(np.sin),
    "cos": _in_double(np.cos),
    "tanh": _in_double(np.tanh),
    "rsqrt": _in_double(invert_root),
}


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a function of one number."""
    kind = find_type(instruction)
    if kind is S.F32 and instruction.opcode in SINGLE:
        return same_types(finish(SINGLE[instruction.opcode], flushes="ftz" in instruction.suffixes), kind, 1)
    if kind is not S.F64 or "approx" not in instruction.suffixes:
        return None
    if instruction.opcode == "rsqrt":
        return same_types(keep_high_word(invert_root) if "ftz" in instruction.suffixes else invert_root, kind, 1)
    if instruction.opcode == "sqrt":
        return same_types(keep_high_word(np.sqrt), kind, 1)
    return None


FAMILY = Family(opcodes=(*SINGLE, "sqrt"), bind=bind)
