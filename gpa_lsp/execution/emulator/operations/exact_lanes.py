"""Exact arithmetic lane by lane with rational numbers, for the few lanes whose exponents are too extreme for error-free transformations."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


def round_fraction(value: Fraction, mode: str) -> float:
    """Round a rational number to a double.

    Args:
        mode: ``rn rz rm rp``.
    """
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        nearest = math.inf if value > 0 else -math.inf
    if mode == "rn":
        return nearest
    if math.isinf(nearest):
        sign = 1 if value > 0 else -1
    else:
        rest = value - Fraction(nearest)
        if rest == 0:
            return nearest
        sign = -1 if rest > 0 else 1  # where the nearest lies, seen from the value
    if mode == "rz":
        mode = "rm" if value > 0 else "rp"
    if mode == "rm":
        return math.nextafter(nearest, -math.inf) if sign > 0 else nearest
    return math.nextafter(nearest, math.inf) if sign < 0 else nearest


def correct_lanes(
    result: Doubles, lanes: npt.NDArray[np.bool_], exact: Callable[..., Fraction], sources: tuple[Any, ...], mode: str
) -> Doubles:
    """Compute some lanes exactly and put them in place.

    Args:
        result: float64[n], changed in place.
        lanes: bool[n]; lanes with a source or a result that is not a finite number are left alone, and so are exact zeros.
        sources: float64[n] each.
        mode: ``rn rz rm rp``.
    """
    chosen = lanes.copy()
    for source in sources:
        chosen &= np.isfinite(source)
    chosen &= ~np.isnan(result)
    for lane in np.nonzero(chosen)[0].tolist():
        value = exact(*(Fraction(float(source[lane])) for source in sources))
        if value != 0:
            rounded = round_fraction(value, mode)
            result[lane] = math.copysign(rounded, value) if rounded == 0 else rounded
    return result
