"""Values of registers: :data:`Value`, an array over the lanes of a warp set, or one numpy scalar that all lanes share."""

from typing import Any

import numpy as np
import numpy.typing as npt

# Array [n] over the lanes of a warp set, or a numpy scalar (*uniform*). Its dtype has the width of the register; which of the dtypes of that width it
# is depends on its writer, and readers view it as they need. No value is modified in place.
Value = Any

U32 = np.dtype(np.uint32)
U64 = np.dtype(np.uint64)
I64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
WARP_LANES = 32


def take_rows(value: Value, rows: Value) -> Value:
    """The value over some of the warps.

    Args:
        rows: int[w], positions of warps in that set.
    """
    if not value.ndim:
        return value
    return value.reshape(-1, WARP_LANES)[rows].reshape(-1)


def find_active_rows(mask: Value) -> Value:
    """Whether each warp has any lane set: bool[w] of a contiguous mask bool[32w]."""
    words = mask.view(np.uint64).reshape(-1, 4)
    return (words[:, 0] | words[:, 1] | words[:, 2] | words[:, 3]) != 0


def pack_lanes(mask: Value) -> Value:
    """The mask bool[32w] or bool[w, 32] as uint32[w], bit i for lane i of each warp."""
    return np.packbits(mask, bitorder="little").view("<u4")


def unpack_lanes(masks: "npt.NDArray[np.uint32]") -> "npt.NDArray[np.bool_]":
    """bool[w, 32] of uint32[w], lane i for bit i."""
    as_bytes = np.ascontiguousarray(masks, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(as_bytes, axis=1, bitorder="little").view(np.bool_)
