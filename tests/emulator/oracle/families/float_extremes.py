"""``min`` and ``max`` of f32 and f64, with two or three operands.

Source: PTX ISA 9.0, sections 9.7.3.11 and 9.7.3.12: a NaN loses against a number, or wins with ``.NaN``; −0 < +0; ``.xorsign.abs`` compares
magnitudes and gives the result the product's sign.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_type
from tests.emulator.oracle.model import Family, LaneOperation, same_types
from tests.emulator.oracle.single import build_extreme, canonicalise, flush

Function = Callable[..., Any]
S = ScalarType


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind the least or greatest of two or three numbers."""
    kind = find_type(instruction)
    if kind is None or kind not in (S.F32, S.F64):
        return None
    words = instruction.suffixes
    function = build_extreme(
        kind, greatest=instruction.opcode == "max", keeps_nan="NaN" in words, by_magnitude="abs" in words
    )
    count = len(instruction.sources)
    if count == 3 and "abs" not in words:
        two = function
        function = lambda a, b, c: two(two(a, b), c)  # noqa: E731
    elif count == 3:
        function = _three_by_magnitude(kind, instruction)
    if kind is S.F32:
        function = _finish(function, flushes="ftz" in words)
    return same_types(function, kind, 3 if count == 3 else 2)


def _finish(function: Function, *, flushes: bool) -> Function:
    if flushes:
        return lambda *sources: canonicalise(function(*map(flush, sources)))
    return lambda *sources: canonicalise(function(*sources))


def _three_by_magnitude(kind: ScalarType, instruction: PtxInstruction) -> Function:
    """The extreme of three magnitudes; the sign is the exclusive or of all three signs."""
    two = build_extreme(
        kind, greatest=instruction.opcode == "max", keeps_nan="NaN" in instruction.suffixes, by_magnitude=False
    )

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        chosen = two(two(np.abs(a), np.abs(b)), np.abs(c))
        sign = np.logical_xor(np.logical_xor(np.signbit(a), np.signbit(b)), np.signbit(c))
        return np.copysign(chosen, np.subtract(chosen.dtype.type(0.5), sign.astype(chosen.dtype)))

    return evaluate


FAMILY = Family(opcodes=("min", "max"), bind=bind)
