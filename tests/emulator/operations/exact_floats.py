"""Binary floating point in Python integers and fractions: the independent truth of rounding."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Layout:
    bits: int
    stored: int  # bits of the fraction
    name: str

    @property
    def lowest_exponent(self) -> int:
        return 2 - (1 << (self.bits - self.stored - 2))

    @property
    def infinity(self) -> int:
        return ((1 << (self.bits - 1 - self.stored)) - 1) << self.stored

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)


F64 = Layout(64, 52, "f64")
F32 = Layout(32, 23, "f32")
F16 = Layout(16, 10, "f16")
BF16 = Layout(16, 7, "bf16")


def is_nan(bits: int, layout: Layout) -> bool:
    return bits & ~layout.sign > layout.infinity


def is_finite(bits: int, layout: Layout) -> bool:
    return bits & ~layout.sign < layout.infinity


def decode(bits: int, layout: Layout) -> Fraction:
    """A finite number."""
    assert is_finite(bits, layout)
    magnitude = bits & ~layout.sign
    exponent, fraction = magnitude >> layout.stored, magnitude & ((1 << layout.stored) - 1)
    if exponent:
        fraction += 1 << layout.stored
    scale = max(exponent, 1) - 1 + layout.lowest_exponent - layout.stored
    value = Fraction(fraction) * Fraction(2) ** scale
    return -value if bits & layout.sign else value


def encode(value: Fraction, layout: Layout, mode: str = "rn", *, negative_zero: bool = False) -> int:
    """Round; ``mode`` rn rz rm rp rna. An exact zero gets the sign asked for."""
    if value == 0:
        return layout.sign if negative_zero else 0
    negative, magnitude = value < 0, abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, layout.lowest_exponent)
    units = magnitude / Fraction(2) ** (exponent - layout.stored)
    whole = units.numerator // units.denominator
    rest = units - whole
    half = Fraction(1, 2)
    up = {
        "rn": rest > half or (rest == half and whole % 2 == 1),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
        "rna": rest >= half,
    }[mode]
    bits = ((exponent - layout.lowest_exponent) << layout.stored) + whole + up
    if bits >= layout.infinity:
        inward = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        bits = layout.infinity - inward
    return bits | (layout.sign if negative else 0)


def edge_floats(layout: Layout, seed: int = 3, more: int = 10) -> list[int]:
    """Patterns: zeros, subnormal numbers, ones, the largest, infinities, a NaN, and random ones near one another."""
    random = np.random.Generator(np.random.PCG64(seed))
    one = encode(Fraction(1), layout)
    smallest_normal = 1 << layout.stored
    edges = [
        0,
        1,
        2,
        smallest_normal - 1,
        smallest_normal,
        smallest_normal + 1,
        one - 1,
        one,
        one + 1,
        layout.infinity - 1,
    ]
    edges += [
        encode(Fraction(3), layout),
        encode(Fraction(1, 3), layout),
        encode(Fraction(2) ** (layout.stored + 1), layout),
    ]
    edges += [layout.infinity, layout.infinity | (1 << (layout.stored - 1))]
    edges += [int(random.integers(0, layout.infinity)) for _ in range(more)]
    edges += [one + int(random.integers(-(4 << layout.stored), 4 << layout.stored)) for _ in range(more)]
    return [bits | sign for bits in edges for sign in (0, layout.sign)]


def to_float(bits: int, layout: Layout) -> float:
    """The value as a Python float; only for infinities, NaNs and zeros, whose rules need no rounding."""
    if is_nan(bits, layout):
        return float("nan")
    if not is_finite(bits, layout):
        return -float("inf") if bits & layout.sign else float("inf")
    value = decode(bits, layout)
    return (-1.0 if bits & layout.sign else 1.0) * (0.0 if value == 0 else 1.0)


def flush(bits: int, layout: Layout) -> int:
    """Subnormal numbers become zeros of their sign."""
    return bits & layout.sign if bits & layout.infinity == 0 else bits


# Bits, bits of the fraction, and how many of the largest magnitudes are infinity and NaN
_SMALL = {"e4m3": (8, 3, 0, 1), "e5m2": (8, 2, 1, 3), "e2m3": (6, 3, 0, 0), "e3m2": (6, 2, 0, 0), "e2m1": (4, 1, 0, 0)}


@cache
def decode_table(name: str) -> npt.NDArray[np.float64]:
    """The value of every bit pattern of a format of at most eight bits, positive ones first."""
    bits, stored, infinities, nans = _SMALL[name]
    exponent, fraction = np.divmod(np.arange(1 << bits - 1), 1 << stored)
    lowest = 2 - (1 << bits - stored - 2)
    values = np.ldexp(fraction + (exponent > 0) * float(1 << stored), np.maximum(exponent, 1) - 1 + lowest - stored)
    values[len(values) - nans - infinities :] = [np.inf] * infinities + [np.nan] * nans
    return np.concatenate([values, -values])
