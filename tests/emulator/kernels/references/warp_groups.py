"""Products of warp groups."""

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Close, Expected, Given, reference

Doubles = npt.NDArray[np.float64]
Bits = npt.NDArray[np.generic]


def _widen_half(bits: Bits) -> Doubles:
    return bits.view(np.float16).astype(np.float64)


def _widen_bfloat16(bits: Bits) -> Doubles:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _bound(left: Doubles, right: Doubles, sign: int, roundings: int) -> Close:
    # PTX: sums are at least of single precision, in no stated order.
    return Close(sign * (left @ right.T), 1, roundings * 2.0**-24 * (np.abs(left) @ np.abs(right).T).ravel())


@reference("warp_group_rows", "warp_group_mixed")
def _warp_group_halves_in_memory(given: Given) -> Expected:
    left, right = (_widen_half(given[name]).reshape(-1, 32) for name in "ab")
    return {"c": _bound(np.tile(left, (4, 1)), right, 1, 2)}


@reference("warp_group_columns")
def _warp_group_columns(given: Given) -> Expected:
    left, right = (_widen_bfloat16(given[name]).reshape(-1, 32) for name in "ab")
    return {"c": _bound(np.tile(left, (4, 1)), right, -1, 2)}


@reference("warp_group_bytes")
def _warp_group_bytes(given: Given) -> Expected:
    signed, unsigned = (
        [given[name].view(dtype).reshape(-1, 32).astype(np.int64) for name in "ab"] for dtype in (np.int8, np.uint8)
    )
    clamped, wrapped = (given[name].reshape(-1, 24).astype(np.int64) for name in ("clamped", "wrapped"))
    clamped = clamped + unsigned[0] @ signed[1].T
    assert (clamped > 2**31 - 1).any()
    return {
        "clamped": np.clip(clamped, -(2**31), 2**31 - 1).astype(np.int32),
        "wrapped": (wrapped + signed[0] @ unsigned[1].T).astype(np.int32),
    }


@reference("warp_group_bits")
def _warp_group_bits(given: Given) -> Expected:
    left, right = (np.unpackbits(given[name].reshape(-1, 32), axis=1).astype(np.int32) for name in "ab")
    return {"c": left @ right.T}


@reference("warp_group_halves")
def _warp_group_halves(given: Given) -> Expected:
    left, right = (_widen_half(given[name]).reshape(-1, 16) for name in "ab")
    turned = _widen_half(given["b_turned"]).reshape(16, 8).T
    return {
        name: Close(1 - left @ factor.T, 1, 2.0**-11 * (1 + np.abs(left) @ np.abs(factor).T).ravel())
        for name, factor in (("c", right), ("c_turned", turned))
    }


@reference("warp_group_singles")
def _warp_group_singles(given: Given) -> Expected:
    bits = (given[name].view(np.uint32) & np.uint32(0xFFFFE000) for name in "ab")
    left, right = (one.view(np.float32).astype(np.float64).reshape(-1, 8) for one in bits)
    return {"c": _bound(left, right, 1, 1)}


@reference("warp_group_eights")
def _warp_group_eights(given: Given) -> Expected:
    left = _widen_eight(given["a"], 3, 7).reshape(-1, 32)
    right = _widen_eight(given["b"], 2, 15).reshape(-1, 32)
    return {"c": _bound(left, right, -1, 1)}


def _widen_eight(codes: Bits, fraction_bits: int, bias: int) -> Doubles:
    magnitude = codes.astype(np.int64) & 0x7F
    exponent, fraction = magnitude >> fraction_bits, (magnitude & (1 << fraction_bits) - 1) / (1 << fraction_bits)
    size = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    return np.where(codes & 0x80, -size, size)


@reference("warp_group_turns")
def _warp_group_turns(given: Given) -> Expected:
    left, right = (given[name].reshape(-1, 32).astype(np.int32) for name in "ab")
    once = left[:128] @ right.T
    return {"c": np.tile(np.concatenate([once[:64], 3 * once[64:]]), (given.grid[0], 1))}
