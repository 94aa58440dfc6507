"""Kernels of newer architectures and libraries: CUB, barrier objects, tensor types, eight-bit floats, vector atomics."""

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Close, Expected, Given, reference

Doubles = npt.NDArray[np.float64]


@reference("block_library")
def _block_library(given: Given) -> Expected:
    rows = given["in"].reshape(given.grid[0], -1)
    keys, values = (given[name].reshape(rows.shape) for name in ("keys", "values"))
    order = np.argsort(keys, axis=1, kind="stable")
    return {
        "sums": rows.sum(axis=1, dtype=np.int32),
        "scanned": np.cumsum(rows, axis=1, dtype=np.int32) - rows,
        "keys": np.take_along_axis(keys, order, axis=1),
        "values": np.take_along_axis(values, order, axis=1),
    }


@reference("barrier_objects")
def _barrier_objects(given: Given) -> Expected:
    rows = given["in"].reshape(-1, 64)
    for _ in range(3):
        rows = rows * 2 + np.roll(rows, -1, axis=1)
    guarded = 0
    for _ in range(given.grid[0]):
        guarded = guarded * 2 % 1000003 + 1
    return {
        "out": rows,
        "total": rows.sum(dtype=np.int32, keepdims=True).ravel(),
        "guarded": np.array([guarded], dtype=np.int32),
    }


@reference("tensor_bytes")
def _tensor_bytes(given: Given) -> Expected:
    a, b = given["a"].reshape(16, 32).astype(np.int32), given["b"].reshape(8, 32).astype(np.int32)
    row, column = np.mgrid[0:16, 0:8]
    return {"c": (a @ b.T + 1 + column % 2 + 2 * (row >= 8)).astype(np.int32)}


@reference("tensor_shorts")
def _tensor_shorts(given: Given) -> Expected:
    a, b = (_widen(given[name]).reshape(-1, 8) for name in "ab")
    left, right = (given[name].view(np.float16).astype(np.float64).reshape(-1, 16) for name in ("a_half", "b_half"))
    # Sums are of single precision at least, or of half precision where the result is: a rounding for each product.
    half_bound = float((np.abs(left) @ np.abs(right).T).max()) * 16 * 2.0**-11
    return {"c": Close(a @ b.T, 2, 8 * 2.0**-23), "c_half": Close(left @ right.T, 0, half_bound)}


def _widen(bits: npt.NDArray[np.generic]) -> Doubles:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


@reference("tensor_wide")
def _tensor_wide(given: Given) -> Expected:
    a, b = (_round_tf32(given[name]).reshape(-1, 4) for name in "ab")
    left, right = given["a_double"].reshape(8, 4), given["b_double"].reshape(8, 4)
    first = np.tile([0.5, -0.5], (8, 4))
    return {"c": Close(a @ b.T, 2, 4 * 2.0**-23), "c_double": Close(left @ right.T + first, 2, 4 * 2.0**-53)}


def _round_tf32(values: npt.NDArray[np.generic]) -> Doubles:
    # cvt.rna: to eleven bits of significand, ties away from zero.
    bits = (values.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return bits.view(np.float32).astype(np.float64)


@reference("eight_bit_floats")
def _eight_bit_floats(given: Given) -> Expected:
    values = given["in"].astype(np.float64)
    results = {"e4m3": _list_numbers(3, 7, 0x7E), "e5m2": _list_numbers(2, 15, 0x7B)}
    codes = {name: _find_nearest(values, table) for name, table in results.items()}
    back = [np.copysign(results[name][code & 0x7F], values).astype(np.float32) for name, code in codes.items()]
    return {"e4m3": codes["e4m3"], "e5m2": codes["e5m2"], "back": np.concatenate(back)}


def _list_numbers(fraction_bits: int, bias: int, largest: int) -> Doubles:
    """The value of each non-negative code up to the largest finite one."""
    code = np.arange(largest + 1)
    exponent, fraction = code >> fraction_bits, (code & (1 << fraction_bits) - 1) / (1 << fraction_bits)
    return np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))


def _find_nearest(values: Doubles, table: Doubles) -> npt.NDArray[np.uint8]:
    # Ties to the even code; what is beyond the largest number becomes it.
    size = np.minimum(np.abs(values), table[-1])
    above = np.searchsorted(table, size).clip(1, len(table) - 1)
    below = above - 1
    to_above, to_below = table[above] - size, size - table[below]
    takes_above = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
    code = np.where(takes_above, above, below)
    return (code | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


@reference("vector_atomics")
def _vector_atomics(given: Given) -> Expected:
    whole = np.trunc(given["in"])
    i = np.arange(len(whole))
    pairs = [(whole[i % 3 == k].sum(), (i % 3 == k).sum()) for k in range(3)]
    fours = [
        ((i % 2 == k).sum(), whole[i % 2 == k].sum(), 2 * (i % 2 == k).sum(), -whole[i % 2 == k].sum())
        for k in range(2)
    ]
    return {"pairs": np.array(pairs, dtype=np.float32), "fours": np.array(fours, dtype=np.float32)}


@reference("elected_lanes")
def _elected_lanes(given: Given) -> Expected:
    # Which lane is elected is open; the hardware and the emulator take the lowest. Lane l holds elements 2 l and 2 l + 1 of the matrix.
    matrix = np.arange(64, dtype=np.uint16).reshape(8, 8)
    turned = np.ascontiguousarray(matrix.T).view(np.uint32)
    return {"leaders": np.zeros(given.grid[0], dtype=np.uint32), "turned": np.tile(turned.ravel(), given.grid[0])}
