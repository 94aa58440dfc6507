"""The memories of a launch and what accesses to them are noted: :class:`MemorySpaces`; its constant banks, and what a lane can ask of its place."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.launches.model import FIRST_ADDRESS
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES, Lanes
from gpa_lsp.foundation.records import ColumnRecord

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


Places = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


class FlatMemory:
    """Bytes that are read and written at places, of which some have no known value.

    What lies outside has none; writes to it are dropped, as a launch description may give an array as smaller than it was.

    Args:
        data: uint8[n], n a multiple of 16.
        name: for messages.

    Attributes:
        data: the bytes.
        unknown: bool, by word, whether it has no known value; None while all have one.
    """

    def __init__(self, data: npt.NDArray[np.uint8], name: str) -> None:
        self.data = data
        self.unknown: Marks | None = None
        self._size = len(data)
        self._name = name
        self._views: dict[int, npt.NDArray[Any]] = {
            size: data[: len(data) // size * size].view(f"<u{size}") for size in (1, 2, 4)
        }

    def check(self, places: Places, width: int) -> None:
        """See that accesses of some bytes each are aligned.

        Raises:
            OutsideError: one is not.
        """
        if width > 1 and len(places) and np.bitwise_or.reduce(places) & (width - 1):
            raise OutsideError(f"an access to {self._name} is not aligned to its {width} bytes")

    def _find_outside(self, places: Places, size: int = 1) -> Marks | None:
        """bool[n]; None where nothing is."""
        if not len(places) or (int(places.min()) >= 0 and int(places.max()) + size <= self._size):
            return None
        return (places < 0) | (places + size > self._size)

    def read(self, places: Places, size: int) -> npt.NDArray[np.uint32]:
        """uint32[n] of 1, 2 or 4 bytes each, extended by zeros; zeros outside."""
        outside = self._find_outside(places, size)
        if outside is None:
            found: npt.NDArray[np.uint32] = self._views[size][places // size].astype(np.uint32)
            return found
        return np.where(outside, np.uint32(0), self._views[size][np.where(outside, 0, places) // size]).astype(
            np.uint32
        )

    def write(self, places: Places, values: npt.NDArray[np.uint32], size: int) -> None:
        """Write the low 1, 2 or 4 bytes of each value; of equal places the last one stays."""
        outside = self._find_outside(places, size)
        if outside is not None:
            places, values = places[~outside], values[~outside]
        self._views[size][places // size] = values.astype(self._views[size].dtype)

    def find_unknown(self, places: Places) -> Marks | None:
        """bool[n], the word around a place has no known value; None where all have one."""
        outside = self._find_outside(places)
        if outside is None:
            return None if self.unknown is None else self.unknown[places >> 2]
        if self.unknown is None:
            return outside
        found: Marks = outside | self.unknown[np.where(outside, 0, places) >> 2]
        return found

    def mark(self, places: Places, unknown: Marks) -> None:
        """Note whether what was written has a known value."""
        if self.unknown is None:
            if not unknown.any():
                return
            self.unknown = np.zeros(self._size // 4 + 1, np.bool_)
        outside = self._find_outside(places)
        if outside is not None:
            places, unknown = places[~outside], unknown[~outside]
        self.unknown[places >> 2] = unknown


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


class OutsideError(Exception):
    """An access to what is no memory."""


class UnknownConstantError(LookupError):
    """A constant without a value: the driver's own, or one beyond its bank."""


class Bank(ColumnRecord, frozen=True, kw_only=True):
    """One bank."""

    data: npt.NDArray[np.uint8]  # uint8[n]
    known: npt.NDArray[np.bool_]  # bool[n], bytes that have a value


class ConstantBanks:
    """Banks by number.

    Args:
        banks: those that there are.
    """

    def __init__(self, banks: Mapping[int, Bank]) -> None:
        self._banks = dict(banks)

    def read_word(self, bank: int, offset: int) -> int:
        """Four bytes.

        Raises:
            UnknownConstantError: they have no value.
        """
        found = self._banks.get(bank)
        if found is None or offset + 4 > len(found.data) or not found.known[offset : offset + 4].all():
            raise UnknownConstantError(f"the constant c[0x{bank:x}][0x{offset:x}] has no value that is known")
        return int.from_bytes(found.data[offset : offset + 4].tobytes(), "little")

    def gather(
        self, bank: int, offsets: npt.NDArray[np.int64], width: int
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """uint8[…, width] at some offsets, and whether all bytes of each are known."""
        found = self._banks.get(bank)
        size = 0 if found is None else len(found.data)
        places = offsets[..., None] + np.arange(width)
        inside = (places >= 0) & (places < size)
        if found is None:
            return np.zeros(places.shape, np.uint8), np.zeros(offsets.shape, np.bool_)
        near = np.where(inside, places, 0)
        known: npt.NDArray[np.bool_] = np.all(inside & found.known[near], axis=-1)
        return found.data[near], known


Words = npt.NDArray[np.uint32]


class SpecialRegisters:
    """The special registers of w warps.

    Args:
        grid: blocks of the launch.
        block: threads of a block.
        numbers: int64[w], linear index of each warp's block.
        warps: int64[w], of each within its block.
        shared_bytes: of a block.
    """

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        numbers: npt.NDArray[np.int64],
        warps: npt.NDArray[np.int64],
        shared_bytes: int,
    ) -> None:
        threads = warps[:, None] * WARP_LANES + np.arange(WARP_LANES)
        lanes = np.broadcast_to(np.arange(WARP_LANES), threads.shape)
        x, y, _ = block
        tid = (threads % x, threads // x % y, threads // (x * y))
        of_block = tuple(
            one[:, None] for one in (numbers % grid[0], numbers // grid[0] % grid[1], numbers // (grid[0] * grid[1]))
        )
        found: dict[str, npt.NDArray[np.int64]] = {"SR_LANEID": lanes, "SRZ": lanes * 0}
        for axis, thread, number in zip("XYZ", tid, of_block, strict=True):
            found[f"SR_TID.{axis}"] = thread
            found[f"SR_CTAID.{axis}"] = np.broadcast_to(number, threads.shape)
        found["SR_TID"] = tid[0] | tid[1] << 16 | tid[2] << 26
        one = np.ones_like(lanes, dtype=np.int64)
        found |= {
            "SR_EQMASK": one << lanes,
            "SR_LTMASK": (one << lanes) - 1,
            "SR_LEMASK": (one << lanes + 1) - 1,
            "SR_GTMASK": 0xFFFFFFFF & ~((one << lanes + 1) - 1),
            "SR_GEMASK": 0xFFFFFFFF & ~((one << lanes) - 1),
            "SR_SWINHI": one * (SHARED_WINDOW >> 32),
            "SR_LWINHI": one * (LOCAL_WINDOW >> 32),
            "SR_CgaCtaId": lanes * 0,
            "SR_CgaSize": one,
            "SR_SMEMSZ": one * shared_bytes,
        }
        self._found: dict[str, Words] = {name: value.astype(np.uint32) for name, value in found.items()}

    def find(self, name: str) -> Words | None:
        """uint32[w, 32]; None for what depends on the machine and the moment."""
        return self._found.get(name)
