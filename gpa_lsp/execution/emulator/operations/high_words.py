"""Approximations in double precision that only the upper 32 bits count in: :func:`keep_high_word`."""

from collections.abc import Callable
from typing import Any

import numpy as np

_SIGN = np.uint64(1 << 63)
_MAGNITUDE = np.uint64(0x7FFF_FFFF_FFFF_FFFF)
_SMALLEST_NORMAL = np.uint64(1 << 52)
_HIGH_WORD = np.uint64(0xFFFF_FFFF_0000_0000)


def keep_high_word(function: Callable[..., Any]) -> Callable[..., Any]:
    """``.approx.ftz.f64``: of operand and result only the upper 32 bits count; subnormal numbers are zeros."""

    def evaluate(a: Any) -> Any:
        high = np.bitwise_and(_flush_double(a).view(np.uint64), _HIGH_WORD).view(np.float64)
        result = function(np.where(np.isnan(a), a, high))
        bits = np.bitwise_and(_flush_double(result).view(np.uint64), _HIGH_WORD)
        return (bits if bits.ndim else bits[()]).view(np.float64)

    return evaluate


def _flush_double(values: Any) -> Any:
    bits = values.view(np.uint64)
    subnormal = np.less(bits & _MAGNITUDE, _SMALLEST_NORMAL)
    kept = np.where(subnormal, bits & _SIGN, bits)
    return (kept if kept.ndim else kept[()]).view(np.float64)
