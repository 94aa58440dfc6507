"""Arithmetic in single and double precision with any of PTX's roundings: ``rn rz rm rp``.

Single precision is computed in double: products, quotients and roots of 24-bit numbers are never so close to one another's rounding boundaries
that a 53-bit result falls on the wrong side; sums are rounded to odd first. Double precision looks at the sign of the exact rest.
All functions take arrays of one length. Source: PTX ISA 9.0, section 9.7.3; IEEE 754-2019, section 4.3.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.operations.error_free import round_to_odd, two_product, two_sum
from gpa_lsp.execution.emulator.operations.exact_lanes import correct_lanes

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
