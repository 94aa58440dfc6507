"""Arithmetic in single and double precision with any of PTX's roundings: ``rn rz rm rp``.

Single precision is computed in double: products, quotients and roots of 24-bit numbers are never so close to one another's rounding boundaries
that a 53-bit result falls on the wrong side; sums are rounded to odd first. Double precision looks at the sign of the exact rest.
All functions take arrays of one length. Source: PTX ISA 9.0, section 9.7.3; IEEE 754-2019, section 4.3.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Function = Callable[..., Any]

HUGE, TINY = 2.0**990, 2.0**-900  # Between them error-free transformations hold


def round_to_single(values: Doubles, mode: str) -> Singles:
    """Round float64 to float32; the values are exact or rounded to odd."""
    result = values.astype(np.float32)
    if mode == "rn":
        return result
    back = result.astype(np.float64)
    bits = result.view(np.uint32)
    if mode == "rz":
        return np.subtract(bits, np.greater(np.abs(back), np.abs(values))).view(np.float32)
    down = mode == "rm"
    wrong = np.greater(back, values) if down else np.less(back, values)
    outward = np.signbit(result) == down
    moved = np.where(outward, bits + np.uint32(1), bits - np.uint32(1))
    return np.where(wrong, moved, bits).view(np.float32)


def _fix_zero(result: Any, terms: tuple[Any, Any], mode: str) -> Any:
    """An exact sum of zero is −0 when rounding down, unless both terms are +0."""
    if mode != "rm":
        return result
    zero = np.equal(result, 0) & ~(~np.signbit(terms[0]) & ~np.signbit(terms[1])) & np.equal(terms[0], -terms[1])
    result[zero] = -0.0
    return result


def add_single(mode: str) -> Function:
    """Build the sum of two float32."""

    def evaluate(a: Singles, b: Singles) -> Singles:
        wide = a.astype(np.float64), b.astype(np.float64)
        result = round_to_single(round_to_odd(*two_sum(*wide)), mode)
        return _fix_zero(result, wide, mode)  # type: ignore[no-any-return]

    return evaluate


def multiply_single(mode: str) -> Function:
    """Build the product of two float32."""
    return lambda a, b: round_to_single(np.multiply(a, b, dtype=np.float64), mode)


def divide_single(mode: str) -> Function:
    """Build the quotient of two float32."""
    return lambda a, b: round_to_single(np.divide(a, b, dtype=np.float64), mode)


def root_single(mode: str) -> Function:
    """Build the square root of a float32."""
    return lambda a: round_to_single(np.sqrt(a, dtype=np.float64), mode)


def fuse_single(mode: str) -> Function:
    """Build a · b + c of float32 with one rounding."""

    def evaluate(a: Singles, b: Singles, c: Singles) -> Singles:
        terms = np.multiply(a, b, dtype=np.float64), c.astype(np.float64)
        result = round_to_single(round_to_odd(*two_sum(*terms)), mode)
        return _fix_zero(result, terms, mode)  # type: ignore[no-any-return]

    return evaluate


def step(result: Doubles, rest: Doubles, mode: str) -> Doubles:
    """Move a nearest double to the neighbour that a rounding mode asks for.

    Args:
        result: float64[n], rounded to nearest, finite.
        mode: ``rz rm rp``.
    """
    if mode == "rm":
        down, up = np.less(rest, 0), np.zeros(len(rest), np.bool_)
    elif mode == "rp":
        down, up = np.zeros(len(rest), np.bool_), np.greater(rest, 0)
    else:
        negative = np.signbit(result)
        down, up = np.less(rest, 0) & ~negative, np.greater(rest, 0) & negative
    result = np.where(down, np.nextafter(result, -np.inf), result)
    return np.where(up, np.nextafter(result, np.inf), result)


def _is_extreme(values: Any, lowest: float = 0.0) -> npt.NDArray[np.bool_]:
    """Finite lanes too large, or too small without being zero, for the transformations."""
    magnitude: Doubles = np.abs(values)
    extreme: npt.NDArray[np.bool_] = (magnitude > HUGE) | ((magnitude < lowest) & (magnitude != 0))
    return extreme


def add_double(mode: str) -> Function:
    """Build the sum of two float64."""

    def evaluate(a: Doubles, b: Doubles) -> Doubles:
        total, rest = two_sum(a, b)
        result = _fix_zero(np.where(np.isfinite(total), step(total, rest, mode), total), (a, b), mode)
        extreme = _is_extreme(a) | _is_extreme(b)
        if extreme.any():
            correct_lanes(result, extreme, lambda x, y: x + y, (a, b), mode)
        return result  # type: ignore[no-any-return]

    return evaluate


def multiply_double(mode: str) -> Function:
    """Build the product of two float64."""

    def evaluate(a: Doubles, b: Doubles) -> Doubles:
        product, rest = two_product(a, b)
        result = np.where(np.isfinite(product), step(product, rest, mode), product)
        extreme = _is_extreme(a) | _is_extreme(b) | _is_extreme(product, TINY) | ((product == 0) & (a != 0) & (b != 0))
        if extreme.any():
            correct_lanes(result, extreme, lambda x, y: x * y, (a, b), mode)
        return result

    return evaluate


def divide_double(mode: str) -> Function:
    """Build the quotient of two float64."""

    def evaluate(a: Doubles, b: Doubles) -> Doubles:
        quotient = np.divide(a, b)
        product, rest = two_product(quotient, b)
        left = np.subtract(
            np.subtract(a, product), rest
        )  # exact but for its size: the remainder of a division fits a double
        left = np.where(np.signbit(b), -left, left)
        result = np.where(np.isfinite(quotient), step(quotient, left, mode), quotient)
        extreme = _is_extreme(a, TINY) | _is_extreme(b, TINY) | _is_extreme(quotient, TINY)
        extreme = (extreme | ((quotient == 0) & (a != 0))) & (b != 0)
        if extreme.any():
            correct_lanes(result, extreme, lambda x, y: x / y, (a, b), mode)
        return result

    return evaluate


def root_double(mode: str) -> Function:
    """Build the square root of a float64."""

    def evaluate(a: Doubles) -> Doubles:
        root = np.sqrt(a)
        square, rest = two_product(root, root)
        left = np.subtract(np.subtract(a, square), rest)
        result = np.where(np.isfinite(root), step(root, left, mode), root)
        for lane in np.nonzero(_is_extreme(a, TINY) & (a > 0) & np.isfinite(a))[0].tolist():
            # A root is far from overflow: scaled by an even power of two it is an ordinary one, and scaled back exactly.
            scale = -600 if a[lane] > 1 else 600
            scaled = evaluate(np.ldexp(a[lane : lane + 1], scale))
            result[lane] = np.ldexp(scaled, -scale // 2)[0]
        return result

    return evaluate


def fuse_exactly(a: Doubles, b: Doubles, c: Doubles, mode: str = "rn") -> Doubles:
    """a · b + c of float64 with one rounding, by error-free transformations; extreme lanes by rational numbers."""
    product, low = two_product(a, b)
    middle, low_rest = two_sum(c, low)
    high, high_rest = two_sum(product, middle)
    tail = round_to_odd(*two_sum(low_rest, high_rest))
    plain = np.add(product, c)
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, plain)  # although the product may overflow
    if mode == "rn":
        result = np.add(high, tail)
    else:
        total, rest = two_sum(high, tail)
        result = step(total, rest, mode)
    extreme = _is_extreme(a) | _is_extreme(b) | _is_extreme(c) | _is_extreme(product, TINY)
    extreme |= (product == 0) & (a != 0) & (b != 0)
    result = np.where(np.isfinite(plain) & (result != 0) & ~extreme, result, plain)
    result = _fix_zero(result, (product, c), mode)
    if extreme.any():
        correct_lanes(result, extreme, _fuse_fractions, (a, b, c), mode)
    return result  # type: ignore[no-any-return]


def _fuse_fractions(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return a * b + c


# Error-free transformations in double precision, and rounding to odd.
#
# A sum or product is given as its rounded value and the exact rest. A value *rounded to odd* (its last bit set
# whenever something was cut off) can be rounded again to a narrower format, in any direction, as if it were exact.
#
# Source: Knuth's two-sum; Dekker's product; S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums:
# proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008.

_SPLITTER = np.float64(2**27 + 1)


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b as (rounded, rest), exact where nothing overflows. float64 arrays or scalars."""
    total = np.add(a, b)
    b_part = np.subtract(total, a)
    a_part = np.subtract(total, b_part)
    return total, np.add(np.subtract(a, a_part), np.subtract(b, b_part))


def _split(a: Any) -> tuple[Any, Any]:
    """High and low 26 bits."""
    scaled = np.multiply(a, _SPLITTER)
    high = np.subtract(scaled, np.subtract(scaled, a))
    return high, np.subtract(a, high)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a · b as (rounded, rest), exact for factors below 2^990 and products of at least 2^-950 (or factors of zero)."""
    product = np.multiply(a, b)
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    rest = np.subtract(np.multiply(a_high, b_high), product)
    rest = np.add(rest, np.multiply(a_high, b_low))
    rest = np.add(rest, np.multiply(a_low, b_high))
    return product, np.add(rest, np.multiply(a_low, b_low))


def round_to_odd(total: Any, rest: Any) -> Any:
    """Round total + rest (rest below half a unit of total's last place) to odd. float64."""
    inexact = np.not_equal(rest, 0.0)
    bits = total.view(np.uint64)
    overshot = np.logical_and(inexact, np.signbit(rest) != np.signbit(total))
    bits = np.subtract(bits, overshot.astype(np.uint64))
    odd = np.bitwise_or(bits, inexact.astype(np.uint64))
    kept = np.where(np.logical_and(inexact, np.isfinite(total)), odd, total.view(np.uint64))
    return (kept if kept.ndim else kept[()]).view(np.float64)


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
