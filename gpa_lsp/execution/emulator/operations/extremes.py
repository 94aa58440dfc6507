"""The least and greatest of two floating-point numbers as PTX defines them: :func:`build_extreme`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType

Function = Callable[..., Any]


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
        equal = np.equal(a, b)
        if not equal.any():
            return result
        # Equal numbers differ at most in the sign of zero: −0 < +0.
        bits = np.where(equal, merge(a.view(unsigned), b.view(unsigned)), result.view(unsigned))
        return (bits if bits.ndim else bits[()]).view(result.dtype)

    if not by_magnitude:
        return choose

    def choose_magnitude(a: Any, b: Any) -> Any:
        chosen = number(np.abs(a), np.abs(b))
        sign = np.logical_xor(np.signbit(a), np.signbit(b))
        return np.copysign(chosen, np.subtract(chosen.dtype.type(0.5), sign.astype(chosen.dtype)))

    return choose_magnitude
