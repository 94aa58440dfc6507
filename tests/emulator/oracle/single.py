"""Rules of floating-point arithmetic: canonical NaN, flushing subnormal numbers, saturation, minimum and maximum.

Source: PTX ISA 9.0, section 9.7.3: NaN results of f32 are 0x7FFFFFFF; ``.ftz`` flushes subnormal inputs and results to zeros of the same sign;
``.sat`` clamps to [0, 1] and makes NaN +0.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType

Function = Callable[..., Any]

_SIGN = np.uint32(0x8000_0000)
_EXPONENT = np.uint32(0x7F80_0000)
_NAN = np.uint32(0x7FFF_FFFF).view(np.float32)


def canonicalise(values: Any) -> Any:
    """Give every NaN of float32[n] the bits 0x7FFFFFFF."""
    return np.where(np.isnan(values), _NAN, values)


def flush(values: Any) -> Any:
    """Make subnormal float32 zeros of the same sign."""
    bits = np.asarray(values).view(np.uint32)
    return np.where(bits & _EXPONENT == 0, bits & _SIGN, bits).view(np.float32)


def saturate(values: Any) -> Any:
    """Clamp to [0, 1]; NaN becomes +0, and so does −0. Any floating dtype."""
    kind = values.dtype.type
    return np.add(np.minimum(np.fmax(values, kind(0)), kind(1)), kind(0))


def finish(raw: Function, *, flushes: bool = False, saturates: bool = False) -> Function:
    """Wrap exact arithmetic on float32 into what an instruction with these modifiers gives.

    Args:
        flushes: ``.ftz``.
        saturates: ``.sat``.
    """
    first: Function = flush if flushes else np.asarray
    last = saturate if saturates else canonicalise
    return lambda *sources: last(first(raw(*map(first, sources))))


def build_extreme(kind: ScalarType, *, greatest: bool, keeps_nan: bool, by_magnitude: bool) -> Function:
    """Build ``min`` or ``max`` of F32 or F64.

    Args:
        greatest: ``max``.
        keeps_nan: ``.NaN``: the result is NaN where any operand is.
        by_magnitude: ``.xorsign.abs``.
    """
    unsigned = np.dtype(f"u{kind.bytes}")
    number: Function
    merge: Function
    if greatest:
        number, merge = np.maximum if keeps_nan else np.fmax, np.bitwise_and
    else:
        number, merge = np.minimum if keeps_nan else np.fmin, np.bitwise_or

    def choose(a: Any, b: Any) -> Any:
        result = number(a, b)
        # Equal numbers differ at most in the sign of zero: −0 < +0.
        bits = np.where(np.equal(a, b), merge(a.view(unsigned), b.view(unsigned)), result.view(unsigned))
        return bits.view(result.dtype)

    if not by_magnitude:
        return choose

    def choose_magnitude(a: Any, b: Any) -> Any:
        chosen = number(np.abs(a), np.abs(b))
        sign = np.logical_xor(np.signbit(a), np.signbit(b))
        return np.copysign(chosen, np.subtract(chosen.dtype.type(0.5), sign.astype(chosen.dtype)))

    return choose_magnitude


_DOUBLE_SIGN = np.uint64(1 << 63)
_MAGNITUDE = np.uint64(0x7FFF_FFFF_FFFF_FFFF)
_SMALLEST_NORMAL = np.uint64(1 << 52)
_HIGH_WORD = np.uint64(0xFFFF_FFFF_0000_0000)


def keep_high_word(function: Callable[..., Any]) -> Callable[..., Any]:
    """``.approx.ftz.f64``: of operand and result only the upper 32 bits count; subnormal numbers are zeros."""

    def evaluate(a: Any) -> Any:
        high = np.bitwise_and(_flush_double(a).view(np.uint64), _HIGH_WORD).view(np.float64)
        result = function(np.where(np.isnan(a), a, high))
        return np.bitwise_and(_flush_double(result).view(np.uint64), _HIGH_WORD).view(np.float64)

    return evaluate


def _flush_double(values: Any) -> Any:
    bits = values.view(np.uint64)
    subnormal = np.less(bits & _MAGNITUDE, _SMALLEST_NORMAL)
    return np.where(subnormal, bits & _DOUBLE_SIGN, bits).view(np.float64)
