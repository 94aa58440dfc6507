"""Floating-point arithmetic and conversions, exactly rounded by fractions."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.rounding import fuse, fuse_double, fuse_half, round_bfloat16, round_each
from tests.emulator.kernels.truth import Expected, Given, reference

Array = npt.NDArray[np.generic]

SINGLE = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)
HALF = np.dtype(np.float16)


def _halves(bits: Array) -> npt.NDArray[np.float16]:
    return np.asarray(bits.view(np.float16))


@reference("half_scalars")
def _half_scalars(given: Given) -> Expected:
    x, y = _halves(given["a"]), _halves(given["b"])
    i = np.arange(len(x))
    scaled = x.astype(np.float32) * np.float32(1.0009765625)
    out = (
        x + y,
        x - y,
        x * y,
        fuse_half(x, y, np.full_like(x, 0.5)),
        -x,
        np.abs(x),
        scaled.astype(np.float16),
        round_each(lambda v: v, HALF, "rz", scaled),
        (y.astype(np.float64) / 3.0).astype(np.float16),
        (i * 37 - 2000).astype(np.float16),
        np.clip(x + y, np.float16(0), np.float16(1)),
    )
    less, equal = x < y, x == y
    facts = (
        less * 1 + equal * 2 + (x >= y) * 4 + np.isnan(x) * 8 + less * 16,
        np.rint(x.astype(np.float64)).astype(np.int32).view(np.uint32),
        np.trunc(x.astype(np.float64)).astype(np.int32).view(np.uint32),
        y.view(np.uint16).astype(np.uint32) * 3,
    )
    return {"out": np.stack(out), "facts": np.stack([fact.astype(np.uint32) for fact in facts])}


@reference("half_pairs")
def _half_pairs(given: Given) -> Expected:
    x, y = _halves(given["a"]).reshape(-1, 2), _halves(given["b"]).reshape(-1, 2)
    wide = x.astype(np.float32)
    out = (
        x + y,
        x * y,
        fuse_half(x, y, np.repeat(y[:, :1], 2, axis=1)),
        np.stack([x[:, 0], y[:, 0]], axis=1),
        (x > y).astype(np.float16),
        x[:, ::-1],
        np.stack([wide[:, 0] + wide[:, 1], wide[:, 0] * wide[:, 1]], axis=1).astype(np.float16),
    )
    return {"out": np.stack(out)}


@reference("half_limits")
def _half_limits(given: Given) -> Expected:
    # Division and root of halves are computed in single precision and rounded once more, which is right to the bit
    # (PTX's approximate ones leave 2 ulp of single precision: never at a tie of halves for these inputs).
    x, y = _halves(given["a"]), _halves(given["b"])
    root = np.sqrt(np.abs(x).astype(np.float64)).astype(np.float16)
    quotient = (x.astype(np.float64) / y.astype(np.float64)).astype(np.float16)
    return {"out": np.stack([np.minimum(x, y), np.maximum(x, y), root, quotient, np.floor(x), np.rint(y)])}


@reference("bfloat16_arithmetic")
def _bfloat16_arithmetic(given: Given) -> Expected:
    x_bits, y_bits = round_bfloat16(given["a"].astype(np.float64)), round_bfloat16(given["b"].astype(np.float64))
    x, y = _widen(x_bits), _widen(y_bits)
    # Products of eight-bit significands are exact in double, and so are the sums of these.
    out = (
        x_bits,
        round_bfloat16(x * y + x),
        round_bfloat16(np.maximum(x, y)),
        y_bits ^ np.uint16(0x8000),
        round_bfloat16(x * y + x),
        round_bfloat16(y * y + x),
        round_bfloat16(given["a"].astype(np.float64), "rz"),
    )
    return {"out": np.stack(out), "floats": y.astype(np.float32) + np.float32(1)}


def _widen(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float64]:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


@reference("float_rounding")
def _float_rounding(given: Given) -> Expected:
    x, y, z = given["a"], given["b"], given["c"]
    rows: list[Array] = []
    add, multiply = (lambda a, b: a + b), (lambda a, b: a * b)
    rows += [round_each(add, SINGLE, mode, x, y) for mode in ("rn", "rz", "ru", "rd")]
    rows += [round_each(multiply, SINGLE, mode, x, y) for mode in ("rn", "rz", "ru", "rd")]
    rows += [fuse(x, y, z)] + [
        round_each(lambda a, b, c: a * b + c, SINGLE, mode, x, y, z) for mode in ("rz", "ru", "rd")
    ]
    rows += [x / y, round_each(lambda a, b: a / b, SINGLE, "rz", x, y)]
    root = np.sqrt(np.abs(x))
    below = Fraction  # a root is irrational or exact, so comparing squares tells on which side the nearest one lies
    squares = [below(value) ** 2 < abs(below(own)) for value, own in zip(root.tolist(), x.tolist(), strict=True)]
    rows += [root, np.where(squares, np.nextafter(root, np.float32(np.inf)), root)]
    rows += [np.float32(1) / y, round_each(lambda b: 1 / b, SINGLE, "rd", y)]
    rows += [np.minimum(x, y), np.maximum(x, y), np.copysign(x, y)]
    rows += [_flush(_flush(x * np.float32(1e-38)) + _flush(y * np.float32(1e-39))), np.copysign(np.float32(0), x)]
    rows += [np.clip(x + y, np.float32(0), np.float32(1))]
    return {"out": np.stack([row.astype(np.float32) for row in rows])}


def _flush(values: Array) -> Array:
    small = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(small, np.copysign(np.float32(0), values), values)


@reference("double_exact")
def _double_exact(given: Given) -> Expected:
    x, y = given["a"].astype(np.float64), given["b"].astype(np.float64)
    product = x * y
    rows = (
        x + y,
        product,
        fuse_double(x, y, -product),
        x / y,
        np.sqrt(np.abs(x)),
        1.0 / y,
        round_each(lambda a, b: a + b, DOUBLE, "rz", x, y),
        round_each(lambda a, b: a * b, DOUBLE, "ru", x, y),
        np.minimum(x, y),
        np.fmod(x, y),
        np.floor(x),
        np.ldexp(x, np.arange(len(x)) % 40 - 20),
    )
    return {"out": np.stack(rows)}


@reference("conversions")
def _conversions(given: Given) -> Expected:
    x, d = given["in"], given["doubles"]
    words, longs = x.view(np.int32), d.view(np.int64)
    out = (
        *(_to_integer(x, 32, mode) for mode in ("rn", "rz", "rd", "ru")),
        _to_integer(x, 32, "rn", is_signed=False),
        _to_integer(d, 32, "rn"),
        _to_integer(d, 32, "rz", is_signed=False),
        words >> 3,
        (longs >> 32).astype(np.int32) ^ longs.astype(np.int32),
        _to_integer(x, 32, "rz").astype(np.int16).astype(np.int32)
        + _to_integer(x, 32, "rz").astype(np.uint8).astype(np.int32),
    )
    wide = (
        _to_integer(x, 64, "rn"),
        _to_integer(d, 64, "rd"),
        _to_integer(d, 64, "rn", is_signed=False),
        np.array([abs(v) // 2 * (-1 if v < 0 else 1) for v in longs.tolist()], dtype=np.int64),
    )
    with np.errstate(all="ignore"):
        nearest = d.astype(np.float32)
    floats = (
        nearest,
        _narrow(d, nearest, "rz"),
        _narrow(d, nearest, "ru"),
        round_each(lambda v: v, SINGLE, "rn", words),
        round_each(lambda v: v, SINGLE, "rd", words),
        round_each(lambda v: v, SINGLE, "rz", words.view(np.uint32)),
        round_each(lambda v: v, SINGLE, "rn", longs),
        np.clip(np.where(np.isnan(x), np.float32(0), x), np.float32(0), np.float32(1)) + np.float32(0),
        np.trunc(x),
        np.rint(x),
        np.floor(x),
        np.ceil(x),
    )
    doubles = (
        x.astype(np.float64),
        round_each(lambda v: v, DOUBLE, "rn", longs),
        round_each(lambda v: v, DOUBLE, "ru", longs.view(np.uint64)),
        np.rint(d),
    )
    return {"out": np.stack(out), "wide": np.stack(wide), "floats": np.stack(floats), "double_out": np.stack(doubles)}


_ROUND: dict[str, Callable[[Array], Array]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def _to_integer(values: Array, bits: int, mode: str, *, is_signed: bool = True) -> Array:
    # PTX: what is out of range becomes the nearest limit. The data hold no NaN, whose result depends on the widths.
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    whole = _ROUND[mode](values).astype(np.float64).tolist()
    results = [
        low if value == -np.inf else high if value == np.inf else min(max(int(value), low), high) for value in whole
    ]
    return np.array(results, dtype=f"{'i' if is_signed else 'u'}{bits // 8}").view(f"i{bits // 8}")


def _narrow(values: Array, nearest: Array, mode: str) -> Array:
    # A step towards zero or up from the nearest single where that lies on the wrong side.
    back = nearest.astype(np.float64)
    with np.errstate(all="ignore"):
        if mode == "rz":
            return np.where(np.abs(back) > np.abs(values), np.nextafter(nearest, np.float32(0)), nearest)
        return np.where(back < values, np.nextafter(nearest, np.float32(np.inf)), nearest)
