"""``cvt`` among integers, f32, f64, f16 and bf16 scalars.

The packed and eight-bit forms stand in :mod:`.conversion_packed`. Source: PTX ISA 9.0, section 9.7.9.22.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.converting import (
    INTEGER_ROUNDERS,
    chain,
    float_to_float,
    float_to_integer,
    integer_to_float,
    integer_to_integer,
    integer_to_odd,
)
from gpa_lsp.execution.emulator.operations.half_formats import encode, narrow, round_to_format, widen
from gpa_lsp.execution.emulator.operations.model import Family, LaneOperation
from gpa_lsp.execution.emulator.operations.modifiers import ROUNDINGS, over_lanes
from gpa_lsp.execution.emulator.operations.single import flush, saturate

Function = Callable[..., Any]
S = ScalarType
_HALVES = frozenset({S.F16, S.BF16})
_INTEGERS = frozenset({S.U8, S.S8, S.U16, S.S16, S.U32, S.S32, S.U64, S.S64})
_SCALARS = _INTEGERS | _HALVES | {S.F32, S.F64}


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a conversion of one scalar to one scalar."""
    if len(instruction.types) != 2 or len(instruction.sources) != 1:
        return None
    result, source = instruction.types
    if result not in _SCALARS or source not in _SCALARS or "pack" in instruction.suffixes:
        return None
    function = _find_function(instruction, source, result)
    if function is None:
        return None
    return LaneOperation(evaluate=function, source_types=(source,), result_types=(result,))


def _find_function(instruction: PtxInstruction, source: ScalarType, result: ScalarType) -> Function | None:
    words = instruction.suffixes
    flushes, saturates = "ftz" in words, "sat" in words
    mode = next(
        (word for word in words if word in ROUNDINGS or word in INTEGER_ROUNDERS or word in ("rna", "rs")), "rn"
    )
    if mode == "rs":
        return None
    if source in _INTEGERS and result in _INTEGERS:
        return integer_to_integer(source, result, saturates=saturates)
    if result in _INTEGERS:
        rounder = INTEGER_ROUNDERS.get(mode)
        if rounder is None:
            return None
        return _widened(source, flushes=flushes, then=float_to_integer(rounder, source, result))
    if result in _HALVES:
        return _to_half(words, source, result, mode)
    if source in _INTEGERS:
        convert = integer_to_float(source, result, mode)
        return chain([convert, saturate]) if saturates else convert
    if source in _HALVES:
        last = float_to_float(S.F32, result, mode, flushes=flushes, saturates=saturates)
        return _widened(source, flushes=False, then=last)
    return float_to_float(source, result, mode, flushes=flushes, saturates=saturates)


def _widened(source: ScalarType, *, flushes: bool, then: Function) -> Function:
    """Halves become float32 first; ``.ftz`` flushes float32 operands."""
    if source in _HALVES:
        return chain([widen(source), then])
    return chain([flush, then]) if flushes and source is S.F32 else then


def _to_half(words: tuple[str, ...], source: ScalarType, result: ScalarType, mode: str) -> Function:
    """To f16 or bf16, with ``.relu``, ``.sat``, ``.satfinite`` and any rounding."""
    plain = not {"relu", "sat", "satfinite"} & set(words)
    first: list[Function] = [flush] if "ftz" in words and source is S.F32 else []
    if source in _HALVES:
        first.append(widen(source))
    if plain and mode == "rn" and source in (S.F32, *_HALVES):
        own: list[Function] = [] if first else [np.positive]
        return chain([*first, *own, narrow(result)])
    if plain and mode in INTEGER_ROUNDERS:
        return chain([*first, INTEGER_ROUNDERS[mode], narrow(result)])
    if source in (S.U64, S.S64):
        first.append(integer_to_odd)
    name, saturates_finite = result.value, "satfinite" in words
    relu, saturates = "relu" in words, "sat" in words

    def evaluate(values: Any) -> Any:
        for function in first:
            values = function(values)
        values = values.astype(np.float64)
        if mode in INTEGER_ROUNDERS:
            values = INTEGER_ROUNDERS[mode](values)
        rounded = round_to_format(values, name, mode if mode in ROUNDINGS else "rn", saturates=saturates_finite)
        if relu:
            rounded = np.where(rounded <= 0, 0.0, rounded)
        return encode(saturate(rounded) if saturates else rounded, name)

    return over_lanes(evaluate)


FAMILY = Family(opcodes=("cvt",), bind=bind)
