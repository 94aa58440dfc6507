"""Exactly rounded arithmetic, slow and plain: what the references compute fused and directed operations with."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

_MANTISSA_BITS = {np.dtype(np.float16): 11, np.dtype(np.float32): 24, np.dtype(np.float64): 53}
_LEAST_EXPONENT = {np.dtype(np.float16): -24, np.dtype(np.float32): -149, np.dtype(np.float64): -1074}


def round_fraction(exact: Fraction, dtype: "np.dtype[np.generic]", mode: str) -> float:
    """The float of a dtype next to an exact number, in range; mode is rn, rz, ru or rd. Zero is +0."""
    if exact == 0:
        return 0.0
    sign = -1 if exact < 0 else 1
    size = abs(exact)
    exponent = _find_exponent(size) - (_MANTISSA_BITS[dtype] - 1)
    unit = Fraction(2) ** max(exponent, _LEAST_EXPONENT[dtype])
    steps = size / unit
    whole = steps.numerator // steps.denominator
    rest = steps - whole
    upward = {"rz": False, "ru": sign > 0, "rd": sign < 0}.get(mode)
    if upward is None:
        upward = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    elif rest == 0:
        upward = False
    return float(sign * (whole + (1 if upward else 0)) * unit)


def round_each(
    compute: Callable[..., Fraction], dtype: "np.dtype[np.generic]", mode: str, *arrays: npt.NDArray[np.generic]
) -> npt.NDArray[np.generic]:
    """An exact computation on Fractions, element by element, rounded once."""
    rows = zip(*(map(Fraction, array.tolist()) for array in arrays), strict=True)
    return np.array([round_fraction(compute(*row), dtype, mode) for row in rows], dtype=dtype)


def fuse(a: Floats, b: Floats, c: Floats) -> Floats:
    """``fma`` of single precision, rounded once: in double the product is exact and the sum is rounded to odd."""
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c, dtype=np.float64)
    return _add_to_odd(product, addend).astype(np.float32)


def fuse_half(
    a: npt.NDArray[np.float16], b: npt.NDArray[np.float16], c: npt.NDArray[np.float16]
) -> npt.NDArray[np.float16]:
    """``fma`` of half precision, rounded once."""
    product = np.multiply(a, b, dtype=np.float64)
    return _add_to_odd(product, np.asarray(c, dtype=np.float64)).astype(np.float16)


def fuse_double(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """``fma`` of double precision, rounded once."""
    result = round_each(lambda x, y, z: x * y + z, np.dtype(np.float64), "rn", a, b, c)
    return result.astype(np.float64)


def round_bfloat16(values: Doubles, mode: str = "rn") -> npt.NDArray[np.uint16]:
    """Bits of the bfloat16 next to each finite double."""
    result = []
    for value in values.tolist():
        exact = Fraction(value)
        single = np.float32(_round_short(exact, mode))
        result.append(int(single.view(np.uint32)) >> 16)
    return np.array(result, dtype=np.uint16)


def _round_short(exact: Fraction, mode: str) -> float:
    if exact == 0:
        return 0.0
    sign = -1 if exact < 0 else 1
    size = abs(exact)
    unit = Fraction(2) ** max(_find_exponent(size) - 7, -133)
    steps = size / unit
    whole = round(steps) if mode == "rn" else math.floor(steps)
    return float(sign * whole * unit)


def _find_exponent(size: Fraction) -> int:
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= size else exponent - 1


def _add_to_odd(left: Doubles, right: Doubles) -> Doubles:
    # Two-sum gives what the addition lost; where it lost something, an even last bit is moved towards it, so that rounding again is right.
    total = left + right
    back = total - left
    lost = (left - (total - back)) + (right - back)
    bits = total.view(np.int64) if total.ndim else np.asarray(total).view(np.int64)
    away = (lost > 0) == (total > 0)
    moved = bits + np.where(away, 1, -1)
    odd = np.where((lost != 0) & (bits % 2 == 0) & np.isfinite(total), moved, bits)
    return odd.view(np.float64)
