"""Quotients, one element at a time in plain Python."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Expected, Given, reference

Array = npt.NDArray[np.generic]


def _sign(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _stack(a: Array, b: Array, compute: Callable[[int, int], tuple[int, ...]], bits: int) -> Array:
    rows = [compute(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    mask = (1 << bits) - 1
    return np.array([[value & mask for value in row] for row in rows], dtype=f"u{bits // 8}").T


def _divide(x: int, y: int) -> int:
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def _rest(x: int, y: int) -> int:
    return x - _divide(x, y) * y


@reference("divisions")
def _divisions(given: Given) -> Expected:
    def compute(x: int, y: int) -> tuple[int, ...]:
        ux, uy = x & 0xFFFFFFFF, y & 0xFFFFFFFF
        return (
            _divide(x, y), _rest(x, y), ux // uy, ux % uy, _divide(x, 7), _rest(x, -10), ux // 641, _divide(x, 16),
            _divide(_sign(x, 16), _sign(y, 16) | 1), _rest(_sign(x, 8), y & 255 | 1),
        )  # fmt: skip

    return {"out": _stack(given["a"], given["b"], compute, 32)}


@reference("divisions_wide")
def _divisions_wide(given: Given) -> Expected:
    def compute(x: int, y: int) -> tuple[int, ...]:
        ux, uy = x & (1 << 64) - 1, y & (1 << 64) - 1
        return (_divide(x, y), _rest(x, y), ux // uy, ux % uy, _divide(x, 1000000007), _rest(x, 86400))

    return {"out": _stack(given["a"], given["b"], compute, 64)}
