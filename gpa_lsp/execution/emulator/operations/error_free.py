"""Error-free transformations in double precision, and rounding to odd.

A sum or product is given as its rounded value and the exact rest. A value *rounded to odd* (its last bit set whenever something was cut off)
can be rounded again to a narrower format, in any direction, as if it were exact.

Source: Knuth's two-sum; Dekker's product; S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
rounding to odd", IEEE Transactions on Computers 57(4), 2008.
"""

from typing import Any

import numpy as np

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
