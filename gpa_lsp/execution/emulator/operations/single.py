"""What holds of all arithmetic in single precision: canonical NaN, flushing subnormal numbers, saturation.

Source: PTX ISA 9.0, section 9.7.3: NaN results of f32 are 0x7FFFFFFF; ``.ftz`` flushes subnormal inputs and results to zeros of the same sign;
``.sat`` clamps to [0, 1] and makes NaN +0.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]

_SIGN = np.uint32(0x8000_0000)
_ONE_BIT = np.uint32(1)
_ABOVE_SUBNORMAL = np.uint32(0x00FF_FFFE)
_NAN = np.uint32(0x7FFF_FFFF).view(np.float32)
_ZERO, _ONE = np.float32(0), np.float32(1)
_LOWEST = np.float32(-np.inf)
_greatest = np.maximum.reduce
_smallest = np.minimum.reduce
_ALL_BITS = np.uint32(0xFFFF_FFFF)


def canonicalise(values: Any) -> Any:
    """Give every NaN the bits 0x7FFFFFFF.

    Args:
        values: float32[n] or a scalar; an array is changed in place, so it must be the caller's own.
    """
    greatest = _greatest(values, axis=None, initial=_LOWEST)
    if greatest == greatest:  # noqa: PLR0124  only NaN differs from itself, and the greatest of anything with a NaN is NaN
        return values
    if type(values) is not np.ndarray:
        return _NAN
    values[np.isnan(values)] = _NAN
    return values


def flush(values: Any) -> Any:
    """Make subnormal float32 zeros of the same sign; other arrays come back as they are."""
    bits = values.view(np.uint32)
    magnitude = np.subtract(np.left_shift(bits, _ONE_BIT), _ONE_BIT)  # zeros become the largest number
    if _smallest(magnitude, axis=None, initial=_ALL_BITS) >= _ABOVE_SUBNORMAL:
        return values
    flushed = np.where(magnitude < _ABOVE_SUBNORMAL, bits & _SIGN, bits)
    return (flushed if flushed.ndim else flushed[()]).view(np.float32)


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
    if not flushes and not saturates:
        return lambda *sources: canonicalise(raw(*sources))
    last = saturate if saturates else canonicalise
    if not flushes:
        return lambda *sources: last(raw(*sources))
    return lambda *sources: last(flush(raw(*map(flush, sources))))
