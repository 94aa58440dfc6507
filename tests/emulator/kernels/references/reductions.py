"""Reductions and scans. Sums of floats follow the kernel's own order of additions, so they are exact to the bit."""

import numpy as np
import numpy.typing as npt

from tests.emulator.kernels.truth import Expected, Given, Unordered, reference

_LANES = np.arange(32)


def _add_tree(rows: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        rows = rows[:, :half] + rows[:, half:]
    return rows[:, 0]


def _add_warp(lanes: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    # Lane 0 after shuffles down by 16, 8, 4, 2, 1: a lane whose source is outside the warp gets its own value, which lane 0 never sees.
    for distance in (16, 8, 4, 2, 1):
        lanes = lanes[..., :distance] + lanes[..., distance : 2 * distance]
    return lanes[..., 0]


@reference("reduce_tree_int")
def _reduce_tree_int(given: Given) -> Expected:
    values = given["in"][: given.number("n")]
    size = given.grid[0] * given.block[0] - len(values)
    rows = np.pad(values, (0, size)).reshape(given.grid[0], -1)
    peaks = np.pad(values, (0, size), constant_values=-(2**31)).reshape(given.grid[0], -1)
    return {"block_sums": rows.sum(axis=1, dtype=np.int32), "block_peaks": peaks.max(axis=1)}


@reference("reduce_tree_float")
def _reduce_tree_float(given: Given) -> Expected:
    values = np.pad(given["in"], (0, given.threads - given.number("n")))
    return {"block_sums": _add_tree(values.reshape(given.grid[0], -1))}


@reference("reduce_shuffle_float", "reduce_shuffle_double", "reduce_shuffle_long")
def _reduce_shuffle(given: Given) -> Expected:
    values = given["in"]
    turns = -(-len(values) // given.threads)
    values = np.pad(values, (0, turns * given.threads - len(values))).reshape(turns, given.grid[0], given.block[0])
    own = np.zeros(values.shape[1:], dtype=values.dtype)
    for turn in values:
        own = own + turn
    warps = _add_warp(own.reshape(given.grid[0], -1, 32))
    padded = np.zeros((given.grid[0], 32), dtype=values.dtype)
    padded[:, : warps.shape[1]] = warps
    return {"out": _add_warp(padded)}


@reference("reduce_redux")
def _reduce_redux(given: Given) -> Expected:
    rows = given["in"].reshape(-1, 32)
    columns = (
        rows.sum(axis=1, dtype=np.uint32),
        rows.min(axis=1),
        rows.view(np.int32).max(axis=1).view(np.uint32),
        np.bitwise_and.reduce(rows | np.uint32(0xFF), axis=1),
        np.bitwise_or.reduce(rows & np.uint32(0xFF00), axis=1),
        np.bitwise_xor.reduce(rows, axis=1),
        rows[:, 1::2].sum(axis=1, dtype=np.uint32),
    )
    return {"out": np.stack(columns, axis=1)}


@reference("reduce_atomic")
def _reduce_atomic(given: Given) -> Expected:
    values = given["in"][: given.number("n")]
    return {
        "total": values.sum(dtype=np.int32, keepdims=True),
        "squares": (values.astype(np.int64) ** 2).sum(keepdims=True).view(np.uint64),
        "float_total": (values & 15).sum(keepdims=True).astype(np.float32),
    }


@reference("reduce_last_block")
def _reduce_last_block(given: Given) -> Expected:
    sums = given["in"].reshape(-1, 64).sum(axis=1, dtype=np.int32)
    return {
        "partial": sums,
        "total": sums.sum(dtype=np.int32, keepdims=True),
        "finished_blocks": np.zeros(1, dtype=np.uint32),
    }


@reference("scan_warp")
def _scan_warp(given: Given) -> Expected:
    n = given.number("n")
    values = given["in"]
    out = given["out"]
    out[:n] = np.cumsum(values[:n], dtype=np.int32)
    return {"out": out}


@reference("scan_segmented")
def _scan_segmented(given: Given) -> Expected:
    values, begins = given["in"], given["begins"]
    out = np.empty_like(values)
    for i, value in enumerate(values.tolist()):
        out[i] = value if begins[i] or i % 32 == 0 else out[i - 1] + np.int32(value)
    return {"out": out}


@reference("scan_chained")
def _scan_chained(given: Given) -> Expected:
    scanned = np.cumsum(given["in"], dtype=np.int32)
    return {
        "out": scanned,
        "sums": scanned[63::64],
        "states": np.ones(given.grid[0], dtype=np.int32),
        "chain": np.array([given.grid[0], 0], dtype=np.uint32),
    }


@reference("histogram_global", "histogram_shared")
def _histogram(given: Given) -> Expected:
    return {"counts": np.bincount(given["in"].view(np.uint8), minlength=256).astype(np.uint32)}


@reference("histogram_private")
def _histogram_private(given: Given) -> Expected:
    return {"counts": np.bincount(given["in"][: given.number("n")] >> 4, minlength=16).astype(np.uint32)}


@reference("atomics_returned")
def _atomics_returned(given: Given) -> Expected:
    # Who comes first is open; the sets of what is handed out are not, and test_truth follows the lists.
    values = given["in"]
    kept = given["kept"]
    positive = values[values > 0]
    kept[: len(positive)] = positive
    return {
        "counter": np.array([len(values), len(positive)], dtype=np.uint32),
        "tickets": Unordered(np.arange(len(values), dtype=np.uint32)),
        "kept": Unordered(kept),
    }
