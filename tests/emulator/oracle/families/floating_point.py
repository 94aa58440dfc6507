"""``add sub mul fma mad div rcp sqrt abs neg`` of f32 and f64.

Source: PTX ISA 9.0, section 9.7.3. Sums, products, fused multiply-adds and the ``.rn rz rm rp`` forms of quotients, reciprocals and roots are
rounded exactly. ``div.full``, ``div.approx``, ``rcp.approx`` and ``sqrt.approx`` are rounded to nearest, which is within the errors the ISA
allows (2 ulp, 2 ulp, 1 ulp and a relative 2^-23).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_rounding, find_type
from tests.emulator.oracle.directed import find_arithmetic
from tests.emulator.oracle.halves import widen
from tests.emulator.oracle.model import Family, LaneOperation, same_types
from tests.emulator.oracle.single import canonicalise, finish, flush, keep_high_word, saturate

Function = Callable[..., Any]
S = ScalarType


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind arithmetic of single or double precision, or single with one operand of half precision."""
    if instruction.opcode in ("add", "sub", "fma") and len(instruction.types) == 2:
        return _bind_mixed(instruction)
    kind = find_type(instruction)
    if kind not in (S.F32, S.F64) or kind is None:
        return None
    if instruction.opcode in ("abs", "neg"):
        return _bind_sign(instruction, kind)
    found = _find(instruction, kind)
    if found is None:
        return None
    function, count = found
    if kind is S.F64:
        return same_types(function, kind, count)
    finished = finish(function, flushes="ftz" in instruction.suffixes, saturates="sat" in instruction.suffixes)
    return same_types(finished, kind, count)


def _bind_sign(instruction: PtxInstruction, kind: ScalarType) -> LaneOperation:
    function: Function = np.abs if instruction.opcode == "abs" else np.negative
    if kind is S.F32 and "ftz" in instruction.suffixes:
        return same_types(lambda a: function(flush(a)), kind, 1)
    return same_types(function, kind, 1)


def _find(instruction: PtxInstruction, kind: ScalarType) -> tuple[Function, int] | None:
    """Exact arithmetic before ``.ftz`` and ``.sat``, and its operands."""
    opcode = "fma" if instruction.opcode == "mad" else instruction.opcode
    approximates = not {"approx", "full"}.isdisjoint(instruction.suffixes)
    if kind is S.F64 and approximates:
        return (keep_high_word(lambda a: np.divide(np.float64(1), a)), 1) if opcode == "rcp" else None
    if opcode == "div" and "approx" in instruction.suffixes:
        return _divide_roughly, 2
    mode = "rn" if approximates else find_rounding(instruction.suffixes)
    if opcode != "rcp":
        return find_arithmetic(kind, opcode, mode)
    divide, _ = find_arithmetic(kind, "div", mode)
    return lambda a: divide(np.ones_like(a), a), 1


_TOO_LARGE = np.float32(2.0**126)


def _divide_roughly(a: Any, b: Any) -> Any:
    """``div.approx``: a · (1/b), where 1/b of 2^126 < \\|b\\| < 2^128 is flushed to zero: the quotient is 0, or NaN of an infinite a."""
    quotient = np.divide(a, b)
    magnitude = np.abs(b)
    vanishing = np.logical_and(magnitude > _TOO_LARGE, np.isfinite(b))
    return np.where(vanishing, np.multiply(a, np.copysign(np.float32(0), b)), quotient)


def _bind_mixed(instruction: PtxInstruction) -> LaneOperation | None:
    """``add sub fma.f32.f16|bf16``: the first operand (of fma: the factors) in half precision, all else single."""
    kind, half = instruction.types
    if kind is not S.F32 or half not in (S.F16, S.BF16):
        return None
    function, _ = find_arithmetic(S.F32, instruction.opcode, find_rounding(instruction.suffixes))
    to_single = widen(half)
    last = saturate if "sat" in instruction.suffixes else canonicalise
    if instruction.opcode == "fma":
        return LaneOperation(
            evaluate=lambda a, b, c: last(function(to_single(a), to_single(b), c)),
            source_types=(half, half, kind),
            result_types=(kind,),
        )
    return LaneOperation(
        evaluate=lambda a, c: last(function(to_single(a), c)), source_types=(half, kind), result_types=(kind,)
    )


FAMILY = Family(opcodes=("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "abs", "neg"), bind=bind)
