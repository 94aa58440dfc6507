"""Products of matrices of numbers, for one warp or a group of them; :mod:`.families.matrix_multiply` says how exact they are."""

from typing import Any

import numpy as np

from gpa_lsp.execution.emulator.operations.fused import fuse_double


def multiply_floats(a: Any, b: Any, c: Any) -> Any:
    """[w, m, k] · [w, k, n] + [w, m, n] in float64."""
    return np.add(np.matmul(a, b), c)


def multiply_doubles(a: Any, b: Any, c: Any) -> Any:
    """The same with fused multiply-adds."""
    shape = c.shape
    total = np.ascontiguousarray(c).reshape(-1)
    for place in range(a.shape[2]):
        left = np.broadcast_to(a[:, :, place, None], shape).reshape(-1)
        right = np.broadcast_to(b[:, None, place, :], shape).reshape(-1)
        total = fuse_double(left, right, total)
    return total.reshape(shape)


def multiply_integers(a: Any, b: Any, c: Any, *, clamps: bool) -> Any:
    """Exact products of small integers (by float64, which holds them) and sums in int64; modulo 2^32 or clamped to int32."""
    total = c + np.rint(np.matmul(a.astype(np.float64), b.astype(np.float64))).astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1) if clamps else total


def multiply_bits(a: Any, b: Any, c: Any, joins: Any) -> Any:
    """Counts of ones in the rows of A joined with the columns of B."""
    joined = joins(a[:, :, None, :], b.transpose(0, 2, 1)[:, None, :, :])
    return c + joined.sum(axis=-1, dtype=np.int64)
