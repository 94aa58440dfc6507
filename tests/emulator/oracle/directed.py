"""Arithmetic in single and double precision with any of PTX's roundings, ``rn rz rm rp``: :func:`find_arithmetic`.

Single precision is computed in double: products, quotients and roots of 24-bit numbers are never so close to one another's rounding boundaries
that a 53-bit result falls on the wrong side; sums are rounded to odd first. Double precision is computed with fractions where numpy's own,
nearest result is not what is asked for. Source: PTX ISA 9.0, section 9.7.3; IEEE 754-2019, section 4.3; S. Boldo and G. Melquiond, "Emulation
of a FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.scalar_types import ScalarType

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Function = Callable[..., Any]
_COUNTS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "sqrt": 1}


def find_arithmetic(kind: ScalarType, opcode: str, mode: str) -> tuple[Function, int]:
    """Find a function of F32 or F64, before ``.ftz`` and ``.sat``, and how many operands it takes.

    Args:
        opcode: ``add sub mul div sqrt fma``.
        mode: of rounding, ``rn rz rm rp``.
    """
    if kind is ScalarType.F32:
        return lambda *sources: _compute_single(opcode, mode, *sources), _COUNTS[opcode]
    if mode == "rn" and opcode != "fma":
        return _NEAREST[opcode], _COUNTS[opcode]
    return lambda *sources: _compute_double(opcode, mode, *sources), _COUNTS[opcode]


def _add_to_odd(a: Doubles, b: Doubles) -> Doubles:
    """Round a + b to odd (the last bit set whenever something was cut off), so that it can be rounded again as if it were exact."""
    total = np.add(a, b)
    part = np.subtract(total, a)
    rest = np.add(np.subtract(a, np.subtract(total, part)), np.subtract(b, part))
    is_inexact = np.not_equal(rest, 0.0) & np.isfinite(total)
    bits = total.view(np.uint64)
    overshot = is_inexact & (np.signbit(rest) != np.signbit(total))
    found: Doubles = np.where(is_inexact, (bits - overshot) | np.uint64(1), bits).view(np.float64)
    return found


def _compute_single(opcode: str, mode: str, *sources: Singles) -> Singles:
    wide = [one.astype(np.float64) for one in sources]
    if opcode == "sub":
        wide[1] = -wide[1]
    if opcode == "fma":
        wide = [wide[0] * wide[1], wide[2]]
    is_sum = opcode in ("add", "sub", "fma")
    result = round_to_single(_add_to_odd(*wide) if is_sum else _NEAREST[opcode](*wide), mode)
    return _fix_zero(result, wide[0], wide[1], mode) if is_sum else result


def round_to_single(values: Doubles, mode: str) -> Singles:
    """Round float64 to float32; the values are exact or rounded to odd."""
    result = values.astype(np.float32)
    if mode == "rn":
        return result
    back = result.astype(np.float64)
    is_wrong = {"rz": np.abs(back) > np.abs(values), "rm": back > values, "rp": back < values}[mode]
    inward = np.float32(0) if mode == "rz" else np.float32(-np.inf if mode == "rm" else np.inf)
    return np.where(is_wrong, np.nextafter(result, inward), result)


def _fix_zero(result: Any, first: Any, second: Any, mode: str) -> Any:
    """An exact sum of zero is −0 when rounding down, unless both terms are +0."""
    if mode != "rm":
        return result
    is_positive = ~np.signbit(first) & ~np.signbit(second)
    return np.where((result == 0) & ~is_positive & (first == -second), result.dtype.type(-0.0), result)


def _fuse_roughly(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """The value of a · b + c where infinities or NaN decide it."""
    return np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)  # although the product may overflow


_NEAREST: dict[str, Function] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt, "fma": _fuse_roughly,
}  # fmt: skip
_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


def _compute_double(opcode: str, mode: str, *sources: Doubles) -> Doubles:
    if opcode == "sub":
        return _compute_double("add", mode, sources[0], -sources[1])
    result = np.array(_NEAREST[opcode](*sources))
    is_finite = np.isfinite(sources).all(axis=0) & ~np.isnan(result) & (opcode != "div" or sources[-1] != 0)
    for lane in np.flatnonzero(is_finite).tolist():
        numbers = [Fraction(float(one[lane])) for one in sources]
        if opcode == "sqrt":
            result[lane] = _step(result[lane], Fraction(float(result[lane])) ** 2 - numbers[0], mode)
        elif (exact := _EXACT[opcode](*numbers)) != 0:
            result[lane] = math.copysign(_round_fraction(exact, mode), 1 if exact > 0 else -1)
    if opcode in ("add", "fma"):
        first = sources[0] if opcode == "add" else sources[0] * sources[1]
        return _fix_zero(result, first, sources[-1], mode)  # type: ignore[no-any-return]
    return result


def _round_fraction(value: Fraction, mode: str) -> float:
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        nearest = math.inf if value > 0 else -math.inf
    return _step(
        nearest, Fraction(nearest) - value if math.isfinite(nearest) else Fraction(int(math.copysign(1, nearest))), mode
    )


def _step(nearest: float, excess: Fraction, mode: str) -> float:
    """Move a nearest double, above what it stands for by an excess, to the neighbour that a rounding mode asks for."""
    if mode == "rz":
        mode = "rp" if nearest < 0 or (nearest == 0 and excess > 0) else "rm"
    if mode == "rm" and excess > 0:
        return math.nextafter(nearest, -math.inf)
    return math.nextafter(nearest, math.inf) if mode == "rp" and excess < 0 else nearest
