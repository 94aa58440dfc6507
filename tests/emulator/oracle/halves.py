"""Formats narrower than single precision, and arithmetic on f16 and bf16, given as uint16 bits: :func:`build_half`.

Sums and products are computed in single precision, where rounding twice does no harm (24 bits are at least twice 11 and two more), fused
multiply-adds in double. Source: PTX ISA 9.0, section 9.7.4 (half precision floating point instructions).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.scalar_types import ScalarType
from tests.emulator.oracle.directed import round_to_single
from tests.emulator.oracle.single import build_extreme, canonicalise, flush, saturate

Function = Callable[..., Any]
S = ScalarType

_LOW_15, _LOW_16 = np.uint32(17), np.uint32(16)
_HIGH_BIT, _NOTHING = np.uint32(1 << 31), np.uint32(0)
_LEAST_NORMAL = np.float32(2.0**-126)
_SIGN, _MAGNITUDE = np.uint16(0x8000), np.uint16(0x7FFF)


def fuse(a: Any, b: Any, c: Any) -> Any:
    """a · b + c of float32 values that came from halves, in float64: rounding that to a half is rounding the exact result."""
    return np.add(np.multiply(a, b, dtype=np.float64), c)


def narrow_double(kind: ScalarType) -> Function:
    """Build the function from float64 to bits of F16 or BF16 with one rounding to nearest."""
    return _narrow_double_half if kind is S.F16 else _narrow_double_bfloat


def _narrow_double_half(values: Any) -> Any:
    bits = values.astype(np.float16).view(np.uint16)
    nan = np.isnan(values)
    if not nan.any():
        return bits
    replaced = np.where(nan, HALF_NAN, bits)
    return replaced if replaced.ndim else replaced[()]


def _narrow_double_bfloat(values: Any) -> Any:
    """f64 to bf16 by float32, which is wrong only where that falls on the middle between two bf16: those lanes are rounded to odd instead."""
    single = values.astype(np.float32)
    bits = single.view(np.uint32)
    if not np.equal(np.left_shift(bits, _LOW_15), _NOTHING).any():  # no middle, not even between subnormal numbers
        return narrow_bfloat(single)
    middle = np.equal(np.left_shift(bits, _LOW_16), _HIGH_BIT)
    middle = np.logical_or(middle, np.logical_and(np.abs(single) <= _LEAST_NORMAL, values != 0))
    if not np.ndim(single):
        return narrow_bfloat(round_single_to_odd(values) if middle else single)
    lanes = np.flatnonzero(middle)
    single[lanes] = round_single_to_odd(values[lanes])
    return narrow_bfloat(single)


def round_single_to_odd(values: Any) -> Any:
    """float64 cut to float32, with the last bit set where anything was cut off."""
    cut = round_to_single(np.reshape(values, -1), "rz").view(np.uint32)
    inexact = np.not_equal(cut.view(np.float32), np.reshape(values, -1)) & np.isfinite(np.reshape(values, -1))
    odd = np.bitwise_or(cut, inexact).view(np.float32)
    return odd if np.ndim(values) else odd[0]


_SIMPLE: dict[str, tuple[Function, int]] = {
    "add": (np.add, 2),
    "sub": (np.subtract, 2),
    "mul": (np.multiply, 2),
    "fma": (fuse, 3),
}

UNARY: dict[str, Function] = {"ex2": np.exp2, "tanh": np.tanh}  # Of float64


def build_half(opcode: str, kind: ScalarType, words: tuple[str, ...]) -> tuple[Function, int] | None:
    """Build what an instruction does to arrays of halves.

    Args:
        words: the instruction's suffixes: ``ftz sat relu NaN abs`` (of ``xorsign.abs``).

    Returns:
        A function of uint16 arrays or scalars that gives the same, and how many it takes; None for another opcode.
    """
    flushes = "ftz" in words
    flush = build_flush(kind) if flushes else None
    if opcode in ("neg", "abs"):
        return _build_sign(opcode, flush), 1
    to_single = widen(kind, flushes=flushes)
    if opcode in ("min", "max"):
        extreme = build_extreme(S.F32, greatest=opcode == "max", keeps_nan="NaN" in words, by_magnitude="abs" in words)
        return _build_chain(to_single, extreme, narrow(kind), None, words), 2
    if opcode in UNARY:
        function = UNARY[opcode]
        return _build_chain(to_single, lambda a: function(a.astype(np.float64)), narrow_double(kind), flush, words), 1
    found = _SIMPLE.get(opcode)
    if found is None:
        return None
    function, count = found
    to_half = narrow_double(kind) if opcode == "fma" else narrow(kind)
    return _build_chain(to_single, function, to_half, flush, words), count


def _build_chain(
    widen_one: Function, function: Function, to_half: Function, flush: Function | None, words: tuple[str, ...]
) -> Function:
    steps: list[Function] = []
    if "sat" in words:
        steps.append(saturate)
    if "relu" in words:
        steps.append(_clip_negative)
    steps.append(to_half)
    if flush is not None:
        steps.append(flush)

    def evaluate(*sources: Any) -> Any:
        values = function(*map(widen_one, sources))
        for step in steps:
            values = step(values)
        return values if values.ndim else values[()]

    return evaluate


def _clip_negative(values: Any) -> Any:
    """``.relu``: negative numbers and −0 become +0; NaN stays."""
    return np.where(values <= 0, values.dtype.type(0), values)


def _build_sign(opcode: str, flush: Function | None) -> Function:
    change: Function = np.bitwise_xor if opcode == "neg" else np.bitwise_and
    bits = _SIGN if opcode == "neg" else _MAGNITUDE
    if flush is None:
        return lambda a: change(a, bits)
    return lambda a: change(flush(a), bits)


def build_flush(kind: ScalarType) -> Function:
    """Build the function that makes subnormal halves zeros of their sign."""
    exponent = np.uint16(0x7C00 if kind is S.F16 else 0x7F80)

    def flush(bits: Any) -> Any:
        flushed = np.where(np.bitwise_and(bits, exponent) == 0, bits & _SIGN, bits)
        return flushed if flushed.ndim else flushed[()]

    return flush


# Floating-point formats narrower than single precision: as float32 or float64, and back with any rounding.
#
# Halves stand in registers as ``uint16`` bits. Source: PTX ISA 9.0, sections 5.2.3 (alternate formats) and 9.7.9
# (cvt).

HALF_NAN = np.uint16(0x7FFF)  # The canonical NaN of f16 and bf16
_16 = np.uint32(16)
_ROUND = np.uint32(0x7FFF)
_ONE = np.uint32(1)
_13 = np.int32(13)
_SIGN_AND_MAGNITUDE = np.int32(0x8FFF_E000 - (1 << 32))
_BIAS = np.float32(2.0**112)
_ABOVE_HALVES = np.float32(65536)
_ZERO = np.float32(0)


@cache
def _find_halves(*, flushes: bool) -> npt.NDArray[np.float32]:
    """float32[65536]: the value of every f16; NaNs canonical, subnormal numbers zero when asked for."""
    bits = np.arange(65536, dtype=np.uint16)
    with np.errstate(all="ignore"):
        values: npt.NDArray[np.float32] = canonicalise(bits.view(np.float16).astype(np.float32))
    if flushes:
        subnormal = ((bits & 0x7C00) == 0) & ((bits & 0x03FF) != 0)
        values[subnormal] = np.copysign(np.float32(0), values[subnormal])
    return values


def widen(kind: ScalarType, *, flushes: bool = False) -> Function:
    """Build the function from uint16 bits of F16 or BF16 to float32; exact."""
    if kind is S.F16 and not flushes:
        return widen_half
    if kind is S.F16:
        take = _find_halves(flushes=True).take
        return lambda bits: take(bits, mode="wrap")
    if flushes:
        return lambda bits: flush(widen_bfloat(bits))
    return widen_bfloat


def widen_half(bits: Any) -> Any:
    """Bits of f16 as float32; NaNs canonical.

    Exponent and fraction are moved to their places in a float32 and scaled by the difference of the biases, which takes care of subnormal
    numbers too. Infinities and NaNs come out as numbers that no half is, and are then looked up.
    """
    moved = np.bitwise_and(np.left_shift(bits.view(np.int16).astype(np.int32), _13), _SIGN_AND_MAGNITUDE)
    values = np.multiply(moved.view(np.float32), _BIAS)
    greatest = np.maximum.reduce(values, axis=None, initial=_ZERO)
    least = np.minimum.reduce(values, axis=None, initial=_ZERO)
    if greatest < _ABOVE_HALVES and least > -_ABOVE_HALVES:
        return values
    return _find_halves(flushes=False).take(bits, mode="wrap")


def widen_bfloat(bits: Any) -> Any:
    """Bits of bf16 as float32."""
    return np.left_shift(bits.astype(np.uint32), _16).view(np.float32)


def narrow(kind: ScalarType) -> Function:
    """Build the function from float32 to bits of F16 or BF16, rounded to nearest; it may change its argument's NaNs."""
    return narrow_half if kind is S.F16 else narrow_bfloat


def narrow_half(values: Any) -> Any:
    """float32 (the caller's own array) to bits of f16."""
    return canonicalise(values).astype(np.float16).view(np.uint16)


def narrow_bfloat(values: Any) -> Any:
    """float32 to bits of bf16."""
    bits = values.view(np.uint32)
    rounded = np.add(bits, np.add(np.bitwise_and(np.right_shift(bits, _16), _ONE), _ROUND))
    result = np.right_shift(rounded, _16).astype(np.uint16)
    nan = np.isnan(values)
    if nan.any():
        result = np.where(nan, HALF_NAN, result)
        return result if result.ndim else result[()]
    return result


class Format(Struct, frozen=True, kw_only=True):
    """A binary floating-point format narrower than single precision."""

    precision: int  # bits of the significand, the hidden one included
    lowest_exponent: int  # of normal numbers
    largest: float  # the largest finite number
    has_infinity: bool  # False: what is too large becomes NaN (or the largest number where it saturates)
    nan_bits: int | None  # the canonical NaN; None when there is none


FORMATS: dict[str, Format] = {
    "f16": Format(precision=11, lowest_exponent=-14, largest=65504.0, has_infinity=True, nan_bits=0x7FFF),
    "bf16": Format(precision=8, lowest_exponent=-126, largest=255 * 2.0**120, has_infinity=True, nan_bits=0x7FFF),
    "tf32": Format(
        precision=11, lowest_exponent=-126, largest=2047 * 2.0**117, has_infinity=True, nan_bits=0x7FFF_FFFF
    ),
    "e4m3": Format(precision=4, lowest_exponent=-6, largest=448.0, has_infinity=False, nan_bits=0x7F),
    "e5m2": Format(precision=3, lowest_exponent=-14, largest=57344.0, has_infinity=True, nan_bits=0x7F),
    "e2m3": Format(precision=4, lowest_exponent=0, largest=7.5, has_infinity=False, nan_bits=None),
    "e3m2": Format(precision=3, lowest_exponent=-2, largest=28.0, has_infinity=False, nan_bits=None),
    "e2m1": Format(precision=2, lowest_exponent=0, largest=6.0, has_infinity=False, nan_bits=None),
}

_ROUNDERS: dict[str, Function] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": lambda scaled: np.copysign(np.floor(np.abs(scaled) + 0.5), scaled),
}


def round_to_format(values: Any, name: str, mode: str, *, saturates: bool = False) -> Any:
    """Round float64 to the numbers of a narrow format.

    Args:
        values: float64[n], exact or rounded to odd.
        mode: ``rn rz rm rp`` or ``rna`` (ties away from zero).

    Returns:
        float64[n]; NaN where the value was NaN or is too large for a format without infinity.
    """
    layout = FORMATS[name]
    _, exponent = np.frexp(values)
    unit = np.maximum(exponent - 1, layout.lowest_exponent) - (layout.precision - 1)
    rounded = np.ldexp(_ROUNDERS[mode](np.ldexp(values, -unit)), unit)
    large = np.abs(rounded) > layout.largest
    if not large.any():
        return rounded
    if saturates:
        instead: Any = np.copysign(layout.largest, rounded)
    elif not layout.has_infinity:
        instead = np.nan
    else:
        inward = {"rz": np.ones_like(large), "rm": rounded > 0, "rp": rounded < 0}.get(mode, np.zeros_like(large))
        instead = np.where(
            inward & np.isfinite(values), np.copysign(layout.largest, rounded), np.copysign(np.inf, rounded)
        )
    return np.where(large, instead, rounded)


def encode(values: Any, name: str) -> Any:
    """Bits of float64 values that are numbers of the format; NaN gets its canonical bits (0 where there is no NaN).

    Returns:
        uint16[n] for the halves, uint32[n] for tf32, uint8[n] for the others.
    """
    layout = FORMATS[name]
    nan = np.isnan(values)
    if name == "f16":
        bits: Any = values.astype(np.float16).view(np.uint16)
    elif name in ("bf16", "tf32"):
        bits = values.astype(np.float32).view(np.uint32)
        bits = (bits >> _16).astype(np.uint16) if name == "bf16" else bits
    else:
        bits = _encode_small(values, name)
    return np.where(nan, bits.dtype.type(layout.nan_bits or 0), bits) if nan.any() else bits


def _encode_small(values: Any, name: str) -> Any:
    """Encode values of at most eight bits by a search among all magnitudes."""
    magnitudes = decode_table(name)
    half = len(magnitudes) // 2
    known = magnitudes[:half]
    finite = int(np.count_nonzero(~np.isnan(known)))
    found = np.searchsorted(known[:finite], np.nan_to_num(np.abs(values), nan=0.0, posinf=np.inf))
    return (np.minimum(found, finite - 1) + np.signbit(values) * half).astype(np.uint8)


@cache
def decode_table(name: str) -> npt.NDArray[np.float64]:
    """The value of every bit pattern of a format of at most eight bits: float64, positive ones first."""
    layout = FORMATS[name]
    width = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}[name]
    magnitude = np.arange(1 << (width - 1))
    stored = layout.precision - 1
    exponent, fraction = magnitude >> stored, magnitude & ((1 << stored) - 1)
    scale = np.maximum(exponent, 1) - 1 + layout.lowest_exponent - stored
    values = np.ldexp(fraction + (exponent > 0) * float(1 << stored), scale)
    if layout.has_infinity:
        top = exponent == exponent.max()
        values[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    elif layout.nan_bits is not None:
        values[layout.nan_bits] = np.nan
    return np.concatenate([values, -values])


def encode_scale(values: Any, *, rounds_up: bool, saturates: bool) -> Any:
    """float32 magnitudes as ``ue8m0``: uint8 exponents of powers of two, 2^-127 … 2^127, and 255 for NaN and what is too large.

    Args:
        values: float32[n]; their signs do not count, and 0 becomes the smallest power.
        rounds_up: to the next power at or above (``.rp``), else at or below (``.rz``).
    """
    fraction, exponent = np.frexp(np.abs(values))
    power = exponent - 1 + (rounds_up & (fraction != 0.5))
    large = np.isinf(values) | (power > 127)
    bits = np.where(values == 0, 0, np.clip(power, -127, 127) + 127)
    bits = np.where(large, 254 if saturates else 255, bits)
    return np.where(np.isnan(values), 255, bits).astype(np.uint8)


def decode_scale_table() -> npt.NDArray[np.float64]:
    """The value of every ``ue8m0``: float64[256]."""
    values = np.ldexp(1.0, np.arange(256) - 127)
    values[255] = np.nan
    return values
