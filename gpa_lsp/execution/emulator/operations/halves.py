"""Arithmetic on f16 and bf16, given as uint16 bits: :func:`build_half`.

Sums and products are computed in single precision, where rounding twice does no harm (24 bits are at least twice 11 and two more), fused
multiply-adds in double. Source: PTX ISA 9.0, section 9.7.4 (half precision floating point instructions).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.directed import round_to_single
from gpa_lsp.execution.emulator.operations.extremes import build_extreme
from gpa_lsp.execution.emulator.operations.half_formats import HALF_NAN, narrow, narrow_bfloat, widen
from gpa_lsp.execution.emulator.operations.single import saturate

Function = Callable[..., Any]
S = ScalarType

_LOW_15, _LOW_16 = np.uint32(17), np.uint32(16)
_HIGH_BIT, _NOTHING = np.uint32(1 << 31), np.uint32(0)
_LEAST_NORMAL = np.float32(2.0**-126)
_SIGN, _MAGNITUDE = np.uint16(0x8000), np.uint16(0x7FFF)


def fuse(a: Any, b: Any, c: Any) -> Any:
    """a · b + c of float32 values that came from halves, in float64: rounding that to a half is rounding the exact result."""
    return np.add(np.multiply(a, b, dtype=np.float64), c)


def narrow_double(kind: ScalarType) -> Function:
    """Build the function from float64 to bits of F16 or BF16 with one rounding to nearest."""
    return _narrow_double_half if kind is S.F16 else _narrow_double_bfloat


def _narrow_double_half(values: Any) -> Any:
    bits = values.astype(np.float16).view(np.uint16)
    nan = np.isnan(values)
    if not nan.any():
        return bits
    replaced = np.where(nan, HALF_NAN, bits)
    return replaced if replaced.ndim else replaced[()]


def _narrow_double_bfloat(values: Any) -> Any:
    """By float32, which is wrong only where that falls on the middle between two bf16: those lanes are rounded to odd instead."""
    single = values.astype(np.float32)
    bits = single.view(np.uint32)
    if not np.equal(np.left_shift(bits, _LOW_15), _NOTHING).any():  # no middle, not even between subnormal numbers
        return narrow_bfloat(single)
    middle = np.equal(np.left_shift(bits, _LOW_16), _HIGH_BIT)
    middle = np.logical_or(middle, np.logical_and(np.abs(single) <= _LEAST_NORMAL, values != 0))
    if not np.ndim(single):
        return narrow_bfloat(round_single_to_odd(values) if middle else single)
    lanes = np.flatnonzero(middle)
    single[lanes] = round_single_to_odd(values[lanes])
    return narrow_bfloat(single)


def round_single_to_odd(values: Any) -> Any:
    """float64 cut to float32, with the last bit set where anything was cut off."""
    cut = round_to_single(np.reshape(values, -1), "rz").view(np.uint32)
    inexact = np.not_equal(cut.view(np.float32), np.reshape(values, -1)) & np.isfinite(np.reshape(values, -1))
    odd = np.bitwise_or(cut, inexact).view(np.float32)
    return odd if np.ndim(values) else odd[0]


_SIMPLE: dict[str, tuple[Function, int]] = {
    "add": (np.add, 2),
    "sub": (np.subtract, 2),
    "mul": (np.multiply, 2),
    "fma": (fuse, 3),
}

UNARY: dict[str, Function] = {"ex2": np.exp2, "tanh": np.tanh}  # Of float64


def build_half(opcode: str, kind: ScalarType, words: tuple[str, ...]) -> tuple[Function, int] | None:
    """Build what an instruction does to arrays of halves.

    Args:
        words: the instruction's suffixes: ``ftz sat relu NaN abs`` (of ``xorsign.abs``).

    Returns:
        A function of uint16 arrays or scalars that gives the same, and how many it takes; None for another opcode.
    """
    flushes = "ftz" in words
    flush = build_flush(kind) if flushes else None
    if opcode in ("neg", "abs"):
        return _build_sign(opcode, flush), 1
    to_single = widen(kind, flushes=flushes)
    if opcode in ("min", "max"):
        extreme = build_extreme(S.F32, greatest=opcode == "max", keeps_nan="NaN" in words, by_magnitude="abs" in words)
        return _build_chain(to_single, extreme, narrow(kind), None, words), 2
    if opcode in UNARY:
        function = UNARY[opcode]
        return _build_chain(to_single, lambda a: function(a.astype(np.float64)), narrow_double(kind), flush, words), 1
    found = _SIMPLE.get(opcode)
    if found is None:
        return None
    function, count = found
    to_half = narrow_double(kind) if opcode == "fma" else narrow(kind)
    return _build_chain(to_single, function, to_half, flush, words), count


def _build_chain(
    widen_one: Function, function: Function, to_half: Function, flush: Function | None, words: tuple[str, ...]
) -> Function:
    steps: list[Function] = []
    if "sat" in words:
        steps.append(saturate)
    if "relu" in words:
        steps.append(_clip_negative)
    steps.append(to_half)
    if flush is not None:
        steps.append(flush)

    def evaluate(*sources: Any) -> Any:
        values = function(*map(widen_one, sources))
        for step in steps:
            values = step(values)
        return values if values.ndim else values[()]

    return evaluate


def _clip_negative(values: Any) -> Any:
    """``.relu``: negative numbers and −0 become +0; NaN stays."""
    return np.where(values <= 0, values.dtype.type(0), values)


def _build_sign(opcode: str, flush: Function | None) -> Function:
    change: Function = np.bitwise_xor if opcode == "neg" else np.bitwise_and
    bits = _SIGN if opcode == "neg" else _MAGNITUDE
    if flush is None:
        return lambda a: change(a, bits)
    return lambda a: change(flush(a), bits)


def build_flush(kind: ScalarType) -> Function:
    """Build the function that makes subnormal halves zeros of their sign."""
    exponent = np.uint16(0x7C00 if kind is S.F16 else 0x7F80)

    def flush(bits: Any) -> Any:
        flushed = np.where(np.bitwise_and(bits, exponent) == 0, bits & _SIGN, bits)
        return flushed if flushed.ndim else flushed[()]

    return flush
