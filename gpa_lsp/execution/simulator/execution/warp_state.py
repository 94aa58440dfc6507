"""Registers of many warps: :class:`WarpState`; and which of them an instruction is executed by: :class:`Lanes`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

WARP_LANES = 32
_PREDICATES = 8
_KINDS = 5

Column = npt.NDArray[Any]  # A value for each lane [k, 32], for each warp [k, 1], or one for all [1, 1]
Warps = npt.NDArray[np.int64] | slice


class Lanes:
    """Who executes an instruction.

    Attributes:
        warps: their numbers, or a slice for all of them.
        mask: bool[k, 32], the lanes.
    """

    __slots__ = ("is_slice", "mask", "warps")

    def __init__(self, warps: Warps, mask: npt.NDArray[np.bool_]) -> None:
        self.warps = warps
        self.mask = mask
        self.is_slice = isinstance(warps, slice)

    @property
    def bits(self) -> npt.NDArray[np.uint32]:
        """uint32[k], lane i as bit i."""
        return pack_lanes(self.mask)


def pack_lanes(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """uint32[k] of bool[k, 32], lane i as bit i."""
    packed = np.packbits(np.ascontiguousarray(mask), axis=1, bitorder="little")
    return packed.view("<u4").reshape(-1).astype(np.uint32, copy=False)


def unpack_lanes(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """bool[k, 32] of uint32[k]."""
    as_bytes = np.ascontiguousarray(bits, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(as_bytes, axis=1, bitorder="little").view(np.bool_)


class WarpState:
    """Registers of w warps.

    What an instruction wrote whose arithmetic is not known, and what was computed from it, is marked: a value that is marked decides nothing.

    Args:
        warps: how many.
        registers: general ones of a thread.

    Attributes:
        count: of warps.
        registers: uint32[r, w, 32].
        uniform: uint32[64 or more, w, 1].
        predicates: bool[8, w, 32]; the last one is true.
        uniform_predicates: bool[8, w, 1]; the last one is true.
        barriers: uint32[16, w, 32], the lanes that each lane waits for at a convergence barrier.
        are_barriers_left: some lane has said that it is waited for no longer, so that those who wait already may wait for fewer.
        alive: bool[w, 32], lanes that have not exited.
        unknown: uint32[resource, w], by resource number, the lanes in which it has no known value; of uniform ones all or none.
        has_unknown: whether any is.
        tainted: of each resource, whether it is unknown anywhere.
    """

    def __init__(self, warps: int, registers: int) -> None:
        self.count = warps
        self.registers: npt.NDArray[np.uint32] = np.zeros(
            (min(max(registers, 1) + 8, 255), warps, WARP_LANES), np.uint32
        )
        self.uniform: npt.NDArray[np.uint32] = np.zeros((255, warps, 1), np.uint32)
        self.predicates: npt.NDArray[np.bool_] = np.zeros((_PREDICATES, warps, WARP_LANES), np.bool_)
        self.uniform_predicates: npt.NDArray[np.bool_] = np.zeros((_PREDICATES, warps, 1), np.bool_)
        self.predicates[-1] = True
        self.uniform_predicates[-1] = True
        self.barriers: npt.NDArray[np.uint32] = np.zeros((16, warps, WARP_LANES), np.uint32)
        self.are_barriers_left = False
        self.alive: npt.NDArray[np.bool_] = np.zeros((warps, WARP_LANES), np.bool_)
        self.unknown: npt.NDArray[np.uint32] = np.zeros((_KINDS << 8, warps), np.uint32)
        self.has_unknown = False
        self.tainted = bytearray(_KINDS << 8)

    def find_unknown(self, resources: Sequence[int], lanes: Lanes) -> npt.NDArray[np.uint32]:
        """uint32[k], lanes that execute in which any of some resources has no known value."""
        if not resources:
            return np.zeros(len(lanes.mask), np.uint32)
        found: npt.NDArray[np.uint32] = np.bitwise_or.reduce(self.unknown[list(resources)][:, lanes.warps], axis=0)
        return found & lanes.bits
