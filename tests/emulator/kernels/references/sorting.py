"""Sorts, merges and transposes."""

import numpy as np

from tests.emulator.kernels.truth import Expected, Given, reference


@reference("sort_bitonic")
def _sort_bitonic(given: Given) -> Expected:
    return {"keys": np.sort(given["keys"].reshape(-1, 128), axis=1)}


@reference("sort_bitonic_pairs")
def _sort_bitonic_pairs(given: Given) -> Expected:
    keys, values = given["keys"].reshape(-1, 32), given["values"].reshape(-1, 32)
    order = np.lexsort((values, keys), axis=1)
    # Every second warp sorts downwards nowhere: the last length is 32, whose bit no lane has set.
    return {
        "sorted_keys": np.take_along_axis(keys, order, axis=1),
        "sorted_values": np.take_along_axis(values, order, axis=1),
    }


@reference("radix_digit_counts")
def _radix_digit_counts(given: Given) -> Expected:
    n = given.number("n")
    digits = given["keys"][:n] >> np.uint32(given.number("shift")) & np.uint32(15)
    blocks = np.arange(n) // given.block[0] % given.grid[0]
    counts = np.zeros((16, given.grid[0]), dtype=np.uint32)
    np.add.at(counts, (digits, blocks), 1)
    return {"counts": counts}


@reference("radix_sort_block")
def _radix_sort_block(given: Given) -> Expected:
    keys = given["keys"].reshape(-1, 128)
    order = np.argsort(keys & np.uint32(0xFFF), axis=1, kind="stable")
    return {"keys": np.take_along_axis(keys, order, axis=1)}


@reference("transpose_naive", "transpose_shared", "transpose_padded")
def _transpose(given: Given) -> Expected:
    width, height = given.number("width"), given.number("height")
    rows = given["in"].reshape(height, width, -1)
    return {"out": rows.transpose(1, 0, 2)}
