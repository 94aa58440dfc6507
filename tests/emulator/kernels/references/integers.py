"""Integers and their bits, one element at a time in plain Python."""

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


@reference("wide_integers")
def _wide_integers(given: Given) -> Expected:
    def compute(x: int, y: int) -> tuple[int, ...]:
        shift = y & 63
        low_x, low_y = _sign(x, 32), _sign(y, 32)
        product = (x * y + x) & (1 << 128) - 1
        turned = (product << 41 ^ product >> 87) & (1 << 128) - 1
        signed_x, signed_y = _sign(x, 64), _sign(y, 64)
        short = _sign(x, 24) * _sign(y, 24)
        return (
            x + y, x * y, x * y >> 64, signed_x * signed_y >> 64, x << shift, x >> shift, signed_x >> shift,
            (x & 0xFFFFFFFF) * (y & 0xFFFFFFFF), low_x * low_y, (x & 0xFFFFFFFF) * (y & 0xFFFFFFFF) >> 32,
            product >> 64, turned >> 64, turned - y,
            1 if x < y else 2 if signed_x < signed_y else 3,
            abs(low_x - low_y) + 7 & 0xFFFFFFFF, _sign(short, 32),
        )  # fmt: skip

    return {"out": _stack(given["a"], given["b"], compute, 64)}


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


def _leading(x: int, bits: int) -> int:
    return bits - x.bit_length()


def _reverse(x: int, bits: int) -> int:
    return int(f"{x:0{bits}b}"[::-1], 2)


def _permute(x: int, y: int, selector: int) -> int:
    source = (x | y << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(source[selector >> 4 * k & 7] for k in range(4)), "little")


def _insert(field: int, into: int, start: int, length: int) -> int:
    mask = ((1 << length) - 1) << start & 0xFFFFFFFF
    return into & ~mask | field << start & mask


def _find_second(x: int, base: int) -> int:
    places = [bit for bit in range(base, 32) if x >> bit & 1]
    return places[1] if len(places) > 1 else 0xFFFFFFFF


@reference("bit_tricks")
def _bit_tricks(given: Given) -> Expected:
    def compute(x: int, y: int) -> tuple[int, ...]:
        wide = x << 32 | y
        pair = y << 32 | x
        moved = wide << 13 & (1 << 64) - 1
        # __byte_perm takes three bits of each selector digit.
        chosen = _permute(x, y, (y >> 9) & 0x7777)
        return (
            x.bit_count(), _leading(x, 32), (x & -x).bit_length(), _reverse(x, 32), wide.bit_count(), _leading(wide, 64),
            _reverse(wide, 64) >> 17, pair << (y & 31) >> 32, pair >> min(y & 63, 32), chosen, _permute(x, y, 0x3715),
            x >> 5 & 0x7FF, _sign(x << 9, 32) >> 20, x & y | ~x & x >> 3 | y ^ 0x55555555, (moved & -moved).bit_length(),
            _sign(x, 32) + _sign(y, 32) >> 1, x + y + 1 >> 1,
            x >> (y & 31) & 0x7FF, _insert(x, y, y & 31, 9), x.bit_length() - 1, _find_second(x, 4),
        )  # fmt: skip

    return {"out": _stack(given["a"], given["b"], compute, 32)}


def _bytes(x: int, is_signed: bool = False) -> list[int]:
    return [_sign(x >> 8 * k, 8) if is_signed else x >> 8 * k & 255 for k in range(4)]


def _join(values: list[int], bits: int) -> int:
    return sum((value & (1 << bits) - 1) << bits * k for k, value in enumerate(values))


@reference("packed_bytes")
def _packed_bytes(given: Given) -> Expected:
    def compute(x: int, y: int) -> tuple[int, ...]:
        plain = list(zip(_bytes(x), _bytes(y), strict=True))
        signed = list(zip(_bytes(x, True), _bytes(y, True), strict=True))
        x_shorts, y_shorts = [_sign(x, 16), _sign(x >> 16, 16)], [_sign(y, 16), _sign(y >> 16, 16)]
        return (
            sum(a * b for a, b in signed) + 1000,
            sum(a * b for a, b in plain) + 3,
            x_shorts[0] * signed[0][1] + x_shorts[1] * signed[1][1] - 5,
            (x & 0xFFFF) * plain[2][1] + (x >> 16) * plain[3][1] + 5,
            _join([a + b for a, b in plain], 8),
            _join([a - b for a, b in zip(x_shorts, y_shorts, strict=True)], 16),
            _join([abs(a - b) for a, b in plain], 8),
            sum(abs(a - b) for a, b in plain),
            _join([max(a, b) for a, b in zip(x_shorts, y_shorts, strict=True)], 16),
            _join([255 if a > b else 0 for a, b in plain], 8),
            _join([min(a + b, 255) for a, b in plain], 8),
            _join([a + b + 1 >> 1 for a, b in plain], 8),
        )

    return {"out": _stack(given["a"], given["b"], compute, 32)}
