"""The memories of a launch, and what accesses to them are noted: :class:`MemorySpaces`."""

from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.launches.model import FIRST_ADDRESS
from gpa_lsp.execution.simulator.execution.device_memory import FlatMemory, OutsideError, Places
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES, Lanes

GLOBAL_BASE = FIRST_ADDRESS  # Virtual address of the first byte of global memory
SHARED_WINDOW = 0x4000_0000_0000
LOCAL_WINDOW = 0x4100_0000_0000
WINDOW_BYTES = 1 << 32  # Where generic addresses mean shared and local memory, and how far

_WORD_STRIDE = 4 * WARP_LANES


class MemorySpace(IntEnum):
    """Where an access goes."""

    GLOBAL = 0
    SHARED = 1
    LOCAL = 2


class AccessNote(Protocol):
    """Takes the accesses of the instruction that executes."""

    def note(
        self,
        space: MemorySpace,
        lanes: Lanes,
        addresses: npt.NDArray[np.int64],
        width: int,
        *,
        is_atomic: bool,
        is_load: bool,
    ) -> None:
        """An access.

        Args:
            addresses: int64[k, 32], of each lane's first byte: virtual ones, of shared memory those within the block's; of local memory those
                within the memory of all warps, words of lanes side by side.
            width: bytes of each lane.
        """

    def note_constants(self, lanes: Lanes, offsets: npt.NDArray[np.int64]) -> None:
        """A load of constants, at int64[k, 32] offsets of a bank."""


class MemorySpaces:
    """Global memory, shared memory of each block, local memory of each lane.

    Args:
        data: global memory, from :data:`GLOBAL_BASE` on.
        blocks: int64[w], number of each warp's block among those that run.
        shared_bytes: of a block, what lies below its first variable included.
        local_bytes: of a lane.
        log: takes the accesses.

    Attributes:
        shared_starts: int64[w], where the shared memory of each warp's block begins.
    """

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        blocks: npt.NDArray[np.int64],
        shared_bytes: int,
        local_bytes: int,
        log: AccessNote,
    ) -> None:
        self._log = log
        self.shared_bytes = -(-max(shared_bytes, 16) // 16) * 16
        self.local_bytes = -(-max(local_bytes, 16) // 16) * 16
        count = int(blocks.max(initial=-1)) + 1
        self._memories = {
            MemorySpace.GLOBAL: FlatMemory(data, "global memory"),
            MemorySpace.SHARED: FlatMemory(np.zeros(count * self.shared_bytes, np.uint8), "shared memory"),
            MemorySpace.LOCAL: FlatMemory(
                np.zeros(len(blocks) * self.local_bytes * WARP_LANES, np.uint8), "local memory"
            ),
        }
        self.shared_starts = blocks * self.shared_bytes
        warps = np.arange(len(blocks), dtype=np.int64)[:, None]
        self._local_starts = warps * self.local_bytes * WARP_LANES + np.arange(WARP_LANES) * 4

    def memory(self, space: MemorySpace) -> FlatMemory:
        """The bytes of a space."""
        return self._memories[space]

    def place(self, space: MemorySpace, lanes: Lanes, addresses: npt.NDArray[np.int64], width: int) -> Places:
        """int64[k, 32], places in the space's bytes; those of lanes that do not execute mean nothing.

        Raises:
            OutsideError: a lane that executes goes outside.
        """
        if space == MemorySpace.GLOBAL:
            places = addresses - GLOBAL_BASE
        else:
            limit = self.shared_bytes if space == MemorySpace.SHARED else self.local_bytes
            active = addresses[lanes.mask]
            if len(active) and (int(active.min()) < 0 or int(active.max()) + width > limit):
                owner = "block" if space == MemorySpace.SHARED else "thread"
                raise OutsideError(f"an access lies outside of the {space.name.lower()} memory of its {owner}")
            if space == MemorySpace.SHARED:
                places = addresses + self.shared_starts[lanes.warps][:, None]
            else:
                places = (addresses >> 2) * _WORD_STRIDE + (addresses & 3) + self._local_starts[lanes.warps]
        self._memories[space].check(places[lanes.mask], min(width, 4) if space == MemorySpace.LOCAL else width)
        return places

    def note(
        self,
        space: MemorySpace,
        lanes: Lanes,
        addresses: npt.NDArray[np.int64],
        places: Places,
        *,
        width: int,
        is_load: bool,
        is_atomic: bool = False,
    ) -> None:
        """Tell what was accessed: addresses, and of local memory the places in that of all warps."""
        shown = places if space == MemorySpace.LOCAL else addresses
        self._log.note(space, lanes, shown, width, is_atomic=is_atomic, is_load=is_load)

    def note_constants(self, lanes: Lanes, offsets: npt.NDArray[np.int64]) -> None:
        """Tell which constants were loaded."""
        self._log.note_constants(lanes, offsets)

    def word_stride(self, space: MemorySpace) -> int:
        """Bytes from one word of a lane to its next."""
        return _WORD_STRIDE if space == MemorySpace.LOCAL else 4


def find_generic_space(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]
) -> tuple[MemorySpace, npt.NDArray[np.int64]]:
    """The space that generic addresses mean, and the addresses in it.

    Raises:
        OutsideError: lanes of one access mean several.
    """
    active = addresses[mask]
    for space, window in ((MemorySpace.SHARED, SHARED_WINDOW), (MemorySpace.LOCAL, LOCAL_WINDOW)):
        inside = (active >= window) & (active < window + WINDOW_BYTES)
        if inside.all() and len(active):
            return space, addresses - window
        if inside.any():
            raise OutsideError("the lanes of one access go to several memories")
    return MemorySpace.GLOBAL, addresses
