"""Matrix products and their kin."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Close, Expected, Given, reference

Matrix = npt.NDArray[np.generic]


def _add_products(left: Matrix, right: Matrix) -> Matrix:
    total = np.zeros((left.shape[0], right.shape[1]), dtype=left.dtype)
    for k in range(left.shape[1]):
        total = total + left[:, k : k + 1] * right[k : k + 1, :]
    return total


@reference("matmul_tiled<float>", "matmul_tiled<double>", "matmul_tiled<int>")
def _matmul_tiled(given: Given) -> Expected:
    size = given.number("size")
    return {"c": _add_products(given["a"].reshape(size, size), given["b"].reshape(size, size))}


@reference("matmul_wmma_half")
def _matmul_wmma_half(given: Given) -> Expected:
    return {"c": _bound_tensor_sums(given, _widen_half)}


@reference("matmul_wmma_bfloat16")
def _matmul_wmma_bfloat16(given: Given) -> Expected:
    return {"c": _bound_tensor_sums(given, _widen_bfloat16)}


def _bound_tensor_sums(given: Given, widen: Callable[[Matrix], npt.NDArray[np.float64]]) -> Close:
    # PTX: products are at least of single precision, their sums in no stated order and of at least single precision with any rounding.
    size = given.number("size")
    a, b = widen(given["a"]).reshape(size, size), widen(given["b"]).reshape(size, size)
    exact = given["c"].astype(np.float64).reshape(size, size) + a @ b.T
    return Close(2 * exact, 4, 2 * size * 2**-23)


@reference("matmul_wmma_byte")
def _matmul_wmma_byte(given: Given) -> Expected:
    size = given.number("size")
    a, b = given["a"].reshape(size, size).astype(np.int32), given["b"].reshape(size, size).astype(np.int32)
    return {"c": 2 * (given["c"].reshape(size, size) + a @ b.T)}


@reference("matmul_wmma_double")
def _matmul_wmma_double(given: Given) -> Expected:
    # Double products are fused in no stated order.
    size = given.number("size")
    return {"c": Close(given["a"].reshape(size, size) @ given["b"].reshape(size, size), 4, size * 2**-52)}


@reference("matmul_mma")
def _matmul_mma(given: Given) -> Expected:
    size = given.number("size")
    return {
        "c": Close(
            _widen_half(given["a"]).reshape(size, size) @ _widen_half(given["b"]).reshape(size, size), 4, size * 2**-23
        )
    }


def _widen_half(bits: Matrix) -> npt.NDArray[np.float64]:
    return bits.view(np.float16).astype(np.float64)


def _widen_bfloat16(bits: Matrix) -> npt.NDArray[np.float64]:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


@reference("bicg_rows")
def _bicg_rows(given: Given) -> Expected:
    a = given["a"].reshape(given.number("rows"), given.number("columns"))
    return {"q": _add_products(a, given["p"][:, None])}


@reference("bicg_columns")
def _bicg_columns(given: Given) -> Expected:
    a = given["a"].reshape(given.number("rows"), given.number("columns"))
    return {"s": _add_products(a.T, given["r"][:, None])}
