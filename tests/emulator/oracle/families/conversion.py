"""``cvt`` among integers, f32, f64, f16 and bf16 scalars.

The packed and eight-bit forms stand in :mod:`.conversion_packed`. Source: PTX ISA 9.0, section 9.7.9.22.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_limits
from tests.emulator.oracle.directed import find_arithmetic, round_to_single
from tests.emulator.oracle.halves import clip_negative, encode, round_to_format, widen
from tests.emulator.oracle.model import Family, LaneOperation
from tests.emulator.oracle.single import canonicalise, flush, saturate

# Conversions between integers and floating point: the functions behind ``cvt``.
#
# All functions take and give arrays of lanes or scalars unless they say otherwise.

Function = Callable[..., Any]
S = ScalarType
_HALVES = frozenset({S.F16, S.BF16})
_INTEGERS = frozenset({S.U8, S.S8, S.U16, S.S16, S.U32, S.S32, S.U64, S.S64})
ROUNDINGS = ("rn", "rz", "rm", "rp")
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
    """Conversion to f16 or bf16, with ``.relu``, ``.sat``, ``.satfinite`` and any rounding."""
    first: list[Function] = [flush] if "ftz" in words and source is S.F32 else []
    if source in _HALVES:
        first.append(widen(source))
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
        rounded = clip_negative(rounded) if relu else rounded
        return encode(saturate(rounded) if saturates else rounded, name)

    return evaluate


INTEGER_ROUNDERS: dict[str, Function] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def float_to_integer(rounder: Function, source: ScalarType, result: ScalarType) -> Function:
    """Build the conversion of float32 or float64 to an integer.

    What is out of range is clamped. NaN gives 0, but where the source is f64 or the result has 64 bits: there it gives the integer with only
    the highest bit set.

    Source: PTX ISA 9.0, section 9.7.9.22 (cvt), notes on float-to-integer conversion.
    """
    dtype = result.natural_dtype
    least_integer, greatest_integer = find_limits(result)
    high_bit = source is S.F64 or result.bytes == 8
    special = (
        np.array(1 << (8 * dtype.itemsize - 1), f"u{dtype.itemsize}").view(dtype)[()] if high_bit else dtype.type(0)
    )
    # Bounds that the source format holds exactly: the lowest integer, and the power of two above the highest.
    lowest, above = float(least_integer), float(greatest_integer + 1)
    via = np.dtype(np.int64) if dtype.itemsize < 8 else dtype

    def evaluate(values: Any) -> Any:
        rounded = rounder(values)
        inside = np.logical_and(rounded >= lowest, rounded < above)
        converted = np.where(inside, rounded, 0.0).astype(via).astype(dtype)
        converted = np.where(rounded < lowest, dtype.type(least_integer), converted)
        converted = np.where(rounded >= above, dtype.type(greatest_integer), converted)
        return np.where(np.isnan(rounded), special, converted)

    return evaluate


def integer_to_integer(source: ScalarType, result: ScalarType, *, saturates: bool) -> Function:
    """Build the conversion between integers: by the source's sign to any width, cut off or clamped."""
    dtype = result.natural_dtype
    if not saturates:
        return lambda values: values.astype(dtype)
    ours, theirs = find_limits(source), find_limits(result)
    lowest = source.natural_dtype.type(max(ours[0], theirs[0]))
    highest = source.natural_dtype.type(min(ours[1], theirs[1]))
    return lambda values: np.minimum(np.maximum(values, lowest), highest).astype(dtype)


def integer_to_float(source: ScalarType, result: ScalarType, mode: str) -> Function:
    """Build the conversion of an integer to float32 or float64 with one rounding."""
    dtype = result.natural_dtype
    if mode == "rn" or source.bytes <= 2 or (result is S.F64 and source.bytes <= 4):
        return lambda values: values.astype(dtype)
    if result is S.F32 and source.bytes == 4:
        return lambda values: round_to_single(values.astype(np.float64), mode)
    if result is S.F32:
        return lambda values: round_to_single(integer_to_odd(values), mode)
    add, _ = find_arithmetic(S.F64, "add", mode)

    def add_words(values: Any) -> Any:
        """A 64-bit integer is the sum of two exact float64; 0 is +0 whatever the rounding."""
        high = values >> values.dtype.type(32) << values.dtype.type(32)
        return np.where(values == 0, 0.0, add(high.astype(np.float64), (values - high).astype(np.float64)))

    return add_words


def integer_to_odd(values: Any) -> Any:
    """64-bit integers as float64 rounded to odd (at 53 bits or a few less)."""
    kind = values.dtype.type
    large = np.logical_or(values >= kind(2**53), values <= kind(-(2**53)) if values.dtype.kind == "i" else False)
    low = np.bitwise_and(values, kind(0x7FF))
    odd = np.bitwise_or(np.subtract(values, low), np.where(low != 0, kind(0x800), kind(0)))
    return np.where(large, odd, values).astype(np.float64)


def float_to_float(source: ScalarType, result: ScalarType, mode: str, *, flushes: bool, saturates: bool) -> Function:
    """Build the conversion between float32 and float64.

    Args:
        result: F32 or F64; the same as the source only for ``.sat`` or rounding to integral values.
        mode: ``rn rz rm rp``, or ``rni rzi rmi rpi`` for an integral value.
    """
    steps: list[Function] = []
    if flushes and source is S.F32:
        steps.append(flush)
    if mode in INTEGER_ROUNDERS:
        steps.append(INTEGER_ROUNDERS[mode])
    elif source is S.F32 and result is S.F64:
        steps.append(lambda values: values.astype(np.float64))
    elif source is S.F64 and result is S.F32:
        steps.append(lambda values: round_to_single(values, mode))
    if flushes and result is S.F32 and source is S.F64:
        steps.append(flush)
    if saturates:
        steps.append(saturate)
    elif result is S.F32:
        steps.append(canonicalise)
    return chain(steps)


def chain(steps: list[Function]) -> Function:
    """One function after the other."""

    def evaluate(values: Any) -> Any:
        for function in steps:
            values = function(values)
        return values

    return evaluate


FAMILY = Family(opcodes=("cvt",), bind=bind)
