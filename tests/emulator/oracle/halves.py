"""Formats narrower than single precision, and arithmetic on f16 and bf16, given as uint16 bits: :func:`build_half`.

All is computed in double precision, where rounding twice does no harm: 53 bits are more than twice 11 and two more. Source: PTX ISA 9.0,
section 9.7.4 (half precision floating point instructions).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.scalar_types import ScalarType
from tests.emulator.oracle.single import build_extreme, canonicalise, saturate

Function = Callable[..., Any]
S = ScalarType
_SIGN, _MAGNITUDE = np.uint16(0x8000), np.uint16(0x7FFF)
_16 = np.uint32(16)
_FUNCTIONS: dict[str, tuple[Function, int]] = {
    "add": (np.add, 2), "sub": (np.subtract, 2), "mul": (np.multiply, 2), "fma": (lambda a, b, c: a * b + c, 3), "ex2": (np.exp2, 1),
    "tanh": (np.tanh, 1),
}  # fmt: skip


def build_half(opcode: str, kind: ScalarType, words: tuple[str, ...]) -> tuple[Function, int] | None:
    """Build what an instruction does to arrays of halves.

    Args:
        words: the instruction's suffixes: ``ftz sat relu NaN abs`` (of ``xorsign.abs``).

    Returns:
        A function of uint16 arrays that gives the same, and how many it takes; None for another opcode.
    """
    settle: Function = build_flush(kind) if "ftz" in words else np.asarray
    if opcode in ("neg", "abs"):
        return lambda a: settle(a) ^ _SIGN if opcode == "neg" else settle(a) & _MAGNITUDE, 1
    is_extreme = opcode in ("min", "max")
    if is_extreme:
        keeps_nan, by_magnitude = "NaN" in words, "abs" in words
        extreme = build_extreme(S.F64, greatest=opcode == "max", keeps_nan=keeps_nan, by_magnitude=by_magnitude)
    elif opcode not in _FUNCTIONS:
        return None
    function, count = (extreme, 2) if is_extreme else _FUNCTIONS[opcode]

    def evaluate(*sources: Any) -> Any:
        values = function(*(widen(kind)(settle(one)).astype(np.float64) for one in sources))
        values = saturate(values) if "sat" in words else values
        return settle(narrow(kind)(clip_negative(values) if "relu" in words else values))

    return evaluate, count


def clip_negative(values: Any) -> Any:
    """``.relu``: negative numbers and −0 become +0; NaN stays."""
    return np.where(values <= 0, 0.0, values)


def build_flush(kind: ScalarType) -> Function:
    """Build the function that makes subnormal halves zeros of their sign."""
    exponent = np.uint16(0x7C00 if kind is S.F16 else 0x7F80)
    return lambda bits: np.where(np.bitwise_and(bits, exponent) == 0, bits & _SIGN, bits)


# Floating-point formats narrower than single precision: as float32 or float64, and back with any rounding.
#
# Halves stand in registers as ``uint16`` bits. Source: PTX ISA 9.0, sections 5.2.3 (alternate formats) and 9.7.9
# (cvt).


def widen(kind: ScalarType, *, flushes: bool = False) -> Function:
    """Build the function from uint16 bits of F16 or BF16 to float32; exact, NaNs of F16 canonical."""
    settle: Function = build_flush(kind) if flushes else np.asarray
    if kind is S.F16:
        return lambda bits: canonicalise(settle(bits).view(np.float16).astype(np.float32))
    return lambda bits: np.left_shift(settle(bits).astype(np.uint32), _16).view(np.float32)


def narrow(kind: ScalarType) -> Function:
    """Build the function from float32 or float64 to bits of F16 or BF16, rounded to nearest."""
    return lambda values: encode(round_to_format(values.astype(np.float64), kind.value, "rn"), kind.value)


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
    return np.where(nan, bits.dtype.type(layout.nan_bits or 0), bits)


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
