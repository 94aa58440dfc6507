"""Transcendental functions, computed in double precision and compared within the errors that are documented.

Source of the bounds: CUDA C++ Programming Guide, "Mathematical Functions" (tables of maximum ulp errors of the standard and the intrinsic
functions); PTX ISA, ``sin``, ``cos``, ``ex2``, ``lg2``, ``rcp``, ``sqrt`` and ``tanh`` (``.approx``).
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Close, Expected, Given, reference

Doubles = npt.NDArray[np.float64]


def _each(function: Callable[[float], float], values: Doubles) -> Doubles:
    return np.array([function(value) for value in values.tolist()])


def _limit(rows: list[tuple[Doubles, float, float]], dtype: npt.DTypeLike) -> Expected:
    # One array whose rows have bounds of their own: all of them become absolute ones.
    values = np.stack([row for row, _, _ in rows])
    spacing = np.spacing(np.abs(values).astype(dtype)).astype(np.float64)
    bounds = (
        np.stack([np.full(len(row), absolute) for row, _, absolute in rows])
        + np.array([[ulps] for _, ulps, _ in rows]) * spacing
    )
    return {"out": Close(values, 0.0, bounds)}


@reference("transcendental")
def _transcendental(given: Given) -> Expected:
    single = given["in"].astype(np.float32)
    x = single.astype(np.float64)
    positive = (np.abs(single) + np.float32(0.125)).astype(np.float64)
    # Results are rounded to single precision: a function off by n ulp of the exact value is within n + 0.5 of the double one.
    rows: list[tuple[Doubles, float, float]] = [
        (np.sin(x), 2, 0),
        (np.cos(x), 2, 0),
        (np.tan(x), 4, 0),
        (np.exp(x), 2, 0),
        (np.exp2(x), 2, 0),
        (np.log(positive), 1, 0),
        (np.log2(positive), 1, 0),
        (positive ** float(np.float32(1.7)), 9, 0),
        (np.tanh(x), 2, 0),
        (_each(math.erf, x), 2, 0),
        (1 / np.sqrt(positive), 2, 0),
        (np.sqrt(positive), 0, 0),
        (1 / positive, 0, 0),
        (np.arctan2(x, 2.0), 3, 0),
        (np.cbrt(x), 1, 0),
        (np.expm1(x), 1, 0),
        (np.log1p(positive), 1, 0),
        (np.arcsin((single / np.float32(16)).astype(np.float64)), 4, 0),
        (_each(math.sin, (single * np.float32(100000)).astype(np.float64)), 2, 0),
        (np.fmod(x, float(np.float32(0.7))), 0, 0),
    ]
    return _limit([(row, ulps + 0.5, absolute) for row, ulps, absolute in rows], np.float32)


@reference("fast_functions")
def _fast_functions(given: Given) -> Expected:
    single = given["in"].astype(np.float32)
    x = single.astype(np.float64)
    positive = (np.abs(single) + np.float32(0.125)).astype(np.float64)
    exponential = 2 + np.floor(np.abs(1.173 * x))
    tenths = (single * np.float32(0.25)).astype(np.float64)
    power = positive ** float(np.float32(1.7))
    # __powf is ex2(y lg2(x)): an error of lg2 of 2^-22 and the rounding of the product, times the power's size.
    power_bound = power * (1.7 * 2.0**-22 + np.abs(1.7 * np.log2(positive)) * 2.0**-22 + 2.0**-21)
    rows: list[tuple[Doubles, float, float]] = [
        (np.sin(x), 0, 2.0**-20.5),
        (np.cos(x), 0, 2.0**-20.5),
        (np.exp(x), 0, 0),
        (np.log(positive), 3, 2.0**-21.41),
        (power, 0, 0),
        (x / positive, 2, 0),
        (1 / np.sqrt(positive), 0.5, 0),
        (np.log2(positive), 2, 2.0**-22),
        (10**tenths, 0, 0),
        (np.tanh(x), 0, 2.0**-11),
        (1 / positive, 1.5, 0),
        (np.sqrt(positive), 0, float(np.sqrt(positive).max()) * 2.0**-23),
    ]
    expected = _limit(rows, np.float32)["out"]
    assert isinstance(expected, Close)
    bounds = np.asarray(expected.absolute, dtype=np.float64)
    bounds[2] += (exponential + 0.5) * np.spacing(np.exp(x).astype(np.float32))
    bounds[4] += power_bound
    bounds[8] += (2.5 + np.floor(np.abs(2.97 * tenths))) * np.spacing((10**tenths).astype(np.float32))
    return {"out": Close(expected.values, 0.0, bounds)}


@reference("double_functions")
def _double_functions(given: Given) -> Expected:
    x = given["a"].astype(np.float64)
    size = np.abs(x)
    rows = (
        np.exp(x),
        np.log(size + 0.5),
        np.sin(x),
        np.cos(x),
        np.arctan(x),
        np.tanh(x),
        (size + 0.25) ** 1.5,
        1 / np.sqrt(size + 1),
        np.cbrt(x),
        np.exp2(x),
        np.log10(size + 2),
        np.hypot(x, 3.0),
    )
    # At most 2 ulp in CUDA's table, and one of numpy's own.
    return {"out": Close(np.stack(rows), 3)}
