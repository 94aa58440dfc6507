"""Registers of many warps: :class:`WarpState`; and which of them an instruction is executed by: :class:`Lanes`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import ResourceKind, encode_resource

WARP_LANES = 32
_PREDICATES = 8
_KINDS = 5

ALL_LANES = np.uint32(0xFFFFFFFF)
_UNIFORM_KINDS = (ResourceKind.UNIFORM_REGISTER, ResourceKind.UNIFORM_PREDICATE)

Column = npt.NDArray[Any]  # A value for each lane [k, 32], for each warp [k, 1], or one for all [1, 1]
Warps = npt.NDArray[np.int64] | slice


class Lanes:
    """Who executes an instruction.

    Attributes:
        warps: their numbers, or a slice for all of them.
        mask: bool[k, 32], the lanes.
        is_whole: every lane of ``mask`` is set.
    """

    __slots__ = ("is_slice", "is_whole", "mask", "warps")

    def __init__(self, warps: Warps, mask: npt.NDArray[np.bool_]) -> None:
        self.warps = warps
        self.mask = mask
        self.is_slice = isinstance(warps, slice)
        self.is_whole = bool(mask.all())

    def restrict(self, mask: npt.NDArray[np.bool_]) -> "Lanes":
        """The same warps with fewer lanes."""
        return Lanes(self.warps, self.mask & mask)

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

    def mark(self, resources: npt.NDArray[np.int64], lanes: Lanes, unknown: npt.NDArray[np.uint32]) -> None:
        """Mark, or clear, what some resources hold in the lanes that wrote them.

        Args:
            unknown: uint32[k], lanes in which what was written is not known.
        """
        bits = lanes.bits
        for resource in resources.tolist():
            if resource >> 8 in _UNIFORM_KINDS:
                known = np.where(unknown & bits, ALL_LANES, np.uint32(0))
                before = self.unknown[resource][lanes.warps]
                self.unknown[resource][lanes.warps] = np.where(bits, known, before)
            else:
                before = self.unknown[resource][lanes.warps]
                self.unknown[resource][lanes.warps] = (unknown & bits) | (before & ~bits)
            self.tainted[resource] = bool(self.unknown[resource].any())
        self.has_unknown = self.has_unknown or bool((unknown & bits).any())

    def is_touched(self, resources: Sequence[int]) -> bool:
        """Whether any of some resources has no known value anywhere."""
        tainted = self.tainted
        return any(tainted[one] for one in resources)

    def find_unknown(self, resources: npt.NDArray[np.int64], lanes: Lanes) -> npt.NDArray[np.uint32]:
        """uint32[k], lanes that execute in which any of some resources has no known value."""
        if not len(resources):
            return np.zeros(len(lanes.mask), np.uint32)
        found: npt.NDArray[np.uint32] = np.bitwise_or.reduce(self.unknown[resources][:, lanes.warps], axis=0)
        return found & lanes.bits


def list_register_resources(first: int, count: int) -> npt.NDArray[np.int64]:
    """Numbers of general registers, without RZ."""
    numbers = [encode_resource(ResourceKind.REGISTER, one) for one in range(first, min(first + count, 255))]
    return np.array(numbers, dtype=np.int64)
