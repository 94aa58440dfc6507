"""The comparison itself: it finds what is wrong, or no test of the emulator could fail."""

from fractions import Fraction

import numpy as np

from tests.emulator.kernels.rounding import fuse, fuse_half, round_bfloat16, round_fraction
from tests.emulator.kernels.truth import Close, Unordered, find_differences


def _count(found: object, expected: object) -> int:
    return len(list(find_differences("out", np.asarray(found), expected)))  # type: ignore[arg-type]


def test_integers_and_floats_are_compared_to_the_bit() -> None:
    whole = np.array([1, 2, 3], dtype=np.int32)
    assert _count(whole, whole.copy()) == 0
    assert _count(whole, whole + 1) == 1
    floats = np.array([0.0, 1.0, np.nan], dtype=np.float32)
    assert _count(floats, floats.copy()) == 0
    assert _count(floats, np.array([-0.0, 1.0, np.nan], dtype=np.float32)) == 1
    assert _count(floats, np.nextafter(floats, np.float32(2))) == 1
    assert _count(floats[:2], floats) == 1


def test_close_values_are_counted_in_units_of_the_results_own_type() -> None:
    right = np.array([1.0, 1e10])
    off = np.nextafter(np.nextafter(right.astype(np.float32), np.float32(np.inf)), np.float32(np.inf))
    assert _count(off, Close(right, 2)) == 0
    assert _count(off, Close(right, 1)) == 1
    assert _count(off, Close(right, 0, 1e5)) == 0
    assert _count(np.array([np.nan, np.inf], dtype=np.float32), Close(right, 1e6, 1e30)) == 1


def test_unordered_values_are_compared_as_sets_with_repeats() -> None:
    values = np.array([3, 1, 1], dtype=np.uint32)
    assert _count(values, Unordered(np.array([1, 3, 1], dtype=np.uint32))) == 0
    assert _count(values, Unordered(np.array([1, 3, 3], dtype=np.uint32))) == 1


def test_fused_operations_of_the_references_round_once() -> None:
    random = np.random.Generator(np.random.PCG64(1))
    a, b = (random.standard_normal(500).astype(np.float32) for _ in range(2))
    # Sums that nearly cancel and sums at a tie show a second rounding.
    c = np.concatenate([-(a * b)[:250], (a * b)[250:] * np.float32(2.0**24)])
    exact = [
        Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert fuse(a, b, c).tolist() == [round_fraction(value, np.dtype(np.float32), "rn") for value in exact]
    halves = [values.astype(np.float16) for values in (a, b, np.where(np.abs(c) < 100, c, 1))]
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(*(one.tolist() for one in halves), strict=True)]
    assert fuse_half(*halves).tolist() == [round_fraction(value, np.dtype(np.float16), "rn") for value in exact]


def test_roundings_of_the_references() -> None:
    third = Fraction(1, 3)
    single = np.dtype(np.float32)
    assert np.float32(round_fraction(third, single, "rn")) == np.float32(1 / 3)
    assert round_fraction(third, single, "ru") == np.nextafter(
        np.float32(round_fraction(third, single, "rd")), np.float32(1)
    )
    assert round_fraction(-third, single, "rz") == -round_fraction(third, single, "rd")
    assert round_fraction(Fraction(3, 2) * Fraction(2) ** -149, single, "rn") == 2.0**-148
    assert round_bfloat16(np.array([1.0, 1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, -3.0])).tolist() == [
        0x3F80,
        0x3F80,
        0x3F82,
        0xC040,
    ]
