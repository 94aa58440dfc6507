"""Matrix products and their kin."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.rounding import fuse, fuse_double, fuse_half
from tests.emulator.kernels.truth import Close, Expected, Given, reference

Matrix = npt.NDArray[np.generic]


def _add_products(left: Matrix, right: Matrix) -> Matrix:
    total = np.zeros((left.shape[0], right.shape[1]), dtype=left.dtype)
    for k in range(left.shape[1]):
        total = total + left[:, k : k + 1] * right[k : k + 1, :]
    return total


@reference("matmul_naive_float")
def _matmul_naive_float(given: Given) -> Expected:
    # The compiler contracts each multiply and add to one fma, which rounds once.
    rows, columns, depth = (given.number(name) for name in ("rows", "columns", "depth"))
    a, b = given["a"].reshape(rows, depth), given["b"].reshape(depth, columns)
    total = np.zeros((rows, columns), dtype=np.float32)
    for k in range(depth):
        total = fuse(np.broadcast_to(a[:, k : k + 1], total.shape), np.broadcast_to(b[k : k + 1], total.shape), total)
    return {"c": total}


@reference("matmul_naive_double")
def _matmul_naive_double(given: Given) -> Expected:
    size = given.number("size")
    a, b, c = (given[name].reshape(size, size) for name in "abc")
    total = np.zeros(size * size)
    for k in range(size):
        total = fuse_double(np.repeat(a[:, k], size), np.tile(b[k], size), total)
    # alpha * sum + beta * c may be contracted on either side: one rounding more or less.
    return {"c": Close(given.real("alpha") * total.reshape(size, size) + given.real("beta") * c, 2, 1e-15)}


@reference("matmul_tiled<float>", "matmul_tiled<double>", "matmul_tiled<int>", "matmul_vector")
def _matmul_tiled(given: Given) -> Expected:
    size = given.number("size")
    return {"c": _add_products(given["a"].reshape(size, size), given["b"].reshape(size, size))}


@reference("matmul_half")
def _matmul_half(given: Given) -> Expected:
    size = given.number("size")
    a = given["a"].view(np.float16).reshape(size, size)
    b = given["b"].view(np.float16).reshape(size, size)
    total = np.zeros((size, size), dtype=np.float16)
    for k in range(size):
        total = fuse_half(
            np.broadcast_to(a[:, k : k + 1], total.shape), np.broadcast_to(b[k : k + 1], total.shape), total
        )
    return {"c": total}


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


@reference("syrk")
def _syrk(given: Given) -> Expected:
    size, depth = given.number("size"), given.number("depth")
    a = given["a"].reshape(size, depth)
    alpha = np.float32(given.real("alpha"))
    c = given["c"].reshape(size, size) * np.float32(given.real("beta"))
    for k in range(depth):
        c = c + alpha * a[:, k : k + 1] * a[:, k][None, :]
    return {"c": c}


@reference("syr2k")
def _syr2k(given: Given) -> Expected:
    size, depth = given.number("size"), given.number("depth")
    a, b = given["a"].reshape(size, depth), given["b"].reshape(size, depth)
    alpha = np.float32(given.real("alpha"))
    c = given["c"].reshape(size, size) * np.float32(given.real("beta"))
    for k in range(depth):
        c = c + (alpha * a[:, k : k + 1] * b[:, k][None, :] + alpha * b[:, k : k + 1] * a[:, k][None, :])
    return {"c": c}


@reference("sparse_scalar")
def _sparse_scalar(given: Given) -> Expected:
    starts, columns, values, x = (given[name] for name in ("starts", "columns", "values", "x"))
    y = np.zeros(given.number("rows"), dtype=np.float32)
    for row in range(len(y)):
        for k in range(starts[row], starts[row + 1]):
            y[row] = y[row] + values[k] * x[columns[k]]
    return {"y": y}


@reference("sparse_vector")
def _sparse_vector(given: Given) -> Expected:
    starts, columns, values, x = (given[name] for name in ("starts", "columns", "values", "x"))
    y = np.zeros(given.number("rows"), dtype=np.float32)
    for row in range(len(y)):
        lanes = np.zeros(32, dtype=np.float32)
        for k in range(starts[row], starts[row + 1]):
            lane = (k - starts[row]) % 32
            lanes[lane] = lanes[lane] + values[k] * x[columns[k]]
        for distance in (16, 8, 4, 2, 1):
            lanes = lanes[:distance] + lanes[distance : 2 * distance]
        y[row] = lanes[0]
    return {"y": y}


@reference("layer_forward")
def _layer_forward(given: Given) -> Expected:
    hidden, blocks = given.number("hidden"), given.grid[1]
    weights = given["weights"]
    ty, tx = np.mgrid[0:16, 0:16]
    partial = given["partial_sums"]
    for block in range(blocks):
        index = (hidden + 1) * 16 * block + (hidden + 1) * ty + tx + 1 + hidden + 1
        nodes = given["input"][16 * block + 1 : 16 * block + 17]
        products = weights[index] * nodes[:, None]
        for power in (2, 4, 8, 16):
            products[::power] = products[::power] + products[power // 2 :: power]
        weights[index] = products
        partial[block * hidden : block * hidden + 16] = products[0]
    return {"weights": weights, "partial_sums": partial}


@reference("adjust_weights")
def _adjust_weights(given: Given) -> Expected:
    hidden = given.number("hidden")
    weights, old = given["weights"], given["old_weights"]
    ty, tx = np.mgrid[0:16, 0:16]
    for block in range(given.grid[1]):
        index = (hidden + 1) * 16 * block + (hidden + 1) * ty + tx + 1 + hidden + 1
        rate = np.float32(0.3)
        change = rate * given["delta"][tx + 1] * given["units"][16 * block + ty + 1] + rate * old[index]
        weights[index] = weights[index] + change
        old[index] = change
    return {"weights": weights, "old_weights": old}


@reference("nearest_neighbours")
def _nearest_neighbours(given: Given) -> Expected:
    places = given["places"].reshape(-1, 2)
    latitude = np.float32(given.real("latitude")) - places[:, 0]
    longitude = np.float32(given.real("longitude")) - places[:, 1]
    return {"distances": np.sqrt(latitude * latitude + longitude * longitude)}


@reference("n_body")
def _n_body(given: Given) -> Expected:
    # rsqrt.approx is off by 2^-22.9 at most; pull takes its third power, and the sums of 128 terms round once each.
    bodies = given["bodies"].reshape(-1, 4).astype(np.float64)
    away = bodies[None, :, :3] - bodies[:, None, :3]
    pull = bodies[None, :, 3] * ((away**2).sum(axis=2) + np.float32(0.01)) ** -1.5
    sums = np.concatenate([(away * pull[:, :, None]).sum(axis=1), pull.sum(axis=1, keepdims=True)], axis=1)
    sizes = np.concatenate([np.abs(away * pull[:, :, None]).sum(axis=1), pull.sum(axis=1, keepdims=True)], axis=1)
    return {"accelerations": Close(sums, 0, float(sizes.max()) * 2e-6)}


@reference("particle_boxes")
def _particle_boxes(given: Given) -> Expected:
    boxes = given["boxes"].reshape(-1, 6)
    per_box = given.number("per_box")
    particles = given["particles"].reshape(-1, 4)
    charges = given["charges"]
    forces = given["forces"].reshape(-1, 4)
    factor = 2.0 * given.real("alpha") * given.real("alpha")
    for number, (first, neighbours, *neighbour) in enumerate(boxes.tolist()):
        for other in [number, *neighbour[:neighbours]]:
            start = boxes[other, 0]
            mine, others = particles[first : first + per_box, None], particles[None, start : start + per_box]
            charge = charges[None, start : start + per_box]
            distance = mine[..., 0] + others[..., 0] - (mine[..., 1:] * others[..., 1:]).sum(axis=2)
            weight = np.exp(-factor * distance)
            forces[first : first + per_box, 0] += (charge * weight).sum(axis=1)
            pull = charge * 2.0 * weight
            forces[first : first + per_box, 1:] += (pull[..., None] * (mine[..., 1:] - others[..., 1:])).sum(axis=1)
    # exp is within one unit in the last place; sums of some hundred terms.
    return {"forces": Close(forces, 64, float(np.abs(forces).max()) * 1e-13)}
