"""Integer arithmetic that numpy has no single function for: high products, saturated sums, division as C defines it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType

Function = Callable[..., Any]

_LOW_32 = np.uint64(0xFFFF_FFFF)
_32 = np.uint64(32)
_63 = np.int64(63)
_S32_LOW, _S32_HIGH = np.int64(-(2**31)), np.int64(2**31 - 1)


def multiply_high(kind: ScalarType) -> Function:
    """Build the function that gives the high half of a product of two values of the type (16, 32 or 64 bits)."""
    if kind.bytes == 8:
        return multiply_high_s64 if kind.is_signed else multiply_high_u64
    dtype = kind.natural_dtype
    wide = np.dtype(f"{dtype.kind}{dtype.itemsize * 2}")
    shift = wide.type(dtype.itemsize * 8)

    def evaluate(a: Any, b: Any) -> Any:
        return np.right_shift(np.multiply(a, b, dtype=wide), shift).astype(dtype)

    return evaluate


def multiply_high_u64(a: Any, b: Any) -> Any:
    """High 64 bits of the product of two uint64, by 32-bit halves."""
    a_low, a_high = a & _LOW_32, a >> _32
    b_low, b_high = b & _LOW_32, b >> _32
    low_high = np.multiply(a_low, b_high)
    middle = np.add(np.multiply(a_high, b_low), np.multiply(a_low, b_low) >> _32)
    low_high = np.add(low_high, middle & _LOW_32)
    return np.add(np.add(np.multiply(a_high, b_high), middle >> _32), low_high >> _32)


def multiply_high_s64(a: Any, b: Any) -> Any:
    """High 64 bits of the product of two int64: the unsigned one, less the other factor where one is negative."""
    high = multiply_high_u64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    return np.subtract(np.subtract(high, np.right_shift(a, _63) & b), np.right_shift(b, _63) & a)


def add_saturated(a: Any, b: Any) -> Any:
    """Sum of two int32, clamped to their range."""
    return np.clip(np.add(a, b, dtype=np.int64), _S32_LOW, _S32_HIGH).astype(np.int32)


def subtract_saturated(a: Any, b: Any) -> Any:
    """Difference of two int32, clamped to their range."""
    return np.clip(np.subtract(a, b, dtype=np.int64), _S32_LOW, _S32_HIGH).astype(np.int32)


def add_saturated_unsigned(a: Any, b: Any) -> Any:
    """Sum of two uint32, at most the largest."""
    return np.add(a, np.minimum(b, np.invert(a)))


def subtract_saturated_unsigned(a: Any, b: Any) -> Any:
    """Difference of two uint32, at least 0."""
    return np.subtract(a, np.minimum(a, b))


def divide_unsigned(a: Any, b: Any) -> Any:
    """Quotient of unsigned integers; all ones where the divisor is 0, which PTX leaves unspecified."""
    quotient = np.floor_divide(a, b)
    zero = np.equal(b, b.dtype.type(0))
    return _put(quotient, zero, ~b.dtype.type(0)) if zero.any() else quotient


def remainder_unsigned(a: Any, b: Any) -> Any:
    """Remainder of unsigned integers; all ones where the divisor is 0."""
    quotient = np.floor_divide(a, b)
    rest = np.subtract(a, np.multiply(quotient, b))
    zero = np.equal(b, b.dtype.type(0))
    return _put(rest, zero, ~b.dtype.type(0)) if zero.any() else rest


def divide_signed(a: Any, b: Any) -> Any:
    """Quotient of signed integers, rounded toward zero; −1 where the divisor is 0; the most negative number over −1 is itself."""
    quotient, rest = _floor_signed(a, b)
    away = np.logical_and(np.not_equal(rest, b.dtype.type(0)), np.less(np.bitwise_xor(a, b), b.dtype.type(0)))
    if away.any():
        quotient = np.add(quotient, away)
    zero = np.equal(b, b.dtype.type(0))
    return _put(quotient, zero, b.dtype.type(-1)) if zero.any() else quotient


def remainder_signed(a: Any, b: Any) -> Any:
    """Remainder with the sign of the dividend; −1 where the divisor is 0."""
    _, rest = _floor_signed(a, b)
    away = np.logical_and(np.not_equal(rest, b.dtype.type(0)), np.less(np.bitwise_xor(a, b), b.dtype.type(0)))
    if away.any():
        rest = _put(rest, away, np.subtract(rest, b))
    zero = np.equal(b, b.dtype.type(0))
    return _put(rest, zero, b.dtype.type(-1)) if zero.any() else rest


def _floor_signed(a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient rounded down, and what is left."""
    quotient = np.floor_divide(a, b)
    return quotient, np.subtract(a, np.multiply(quotient, b))


def _put(values: Any, where: Any, value: Any) -> Any:
    """Replace lanes by a value or by the lanes of an array; scalars stay scalars."""
    replaced = np.where(where, value, values)
    return replaced if replaced.ndim else replaced[()]
