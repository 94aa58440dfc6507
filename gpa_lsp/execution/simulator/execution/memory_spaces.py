"""The memories of a launch, :class:`MemorySpaces`, its constant banks and special registers."""

from collections.abc import Mapping
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.accesses.l2_traffic import place_block
from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW
from gpa_lsp.execution.launches.model import FIRST_ADDRESS
from gpa_lsp.foundation.records import ColumnRecord

GLOBAL_BASE = FIRST_ADDRESS  # Virtual address of the first byte of global memory
WORD_STRIDE = 4 * WARP_LANES  # Bytes of local memory from a word of a lane to its next


class MemorySpace(IntEnum):
    """Memories that accesses go to."""

    GLOBAL = 0
    SHARED = 1
    LOCAL = 2


GENERIC = -1  # In place of a space: the addresses say which
DISTRIBUTED = -2  # Shared memory of the cluster's other blocks, which no address leads to here
FIRST_BANK = 3  # Number of the space of constant bank 0


Marks = npt.NDArray[np.bool_]


class FlatMemory:
    """Bytes, of which some have no known value.

    What lies outside has none; writes to it are dropped, as a launch description may give an array as smaller than it was.

    Args:
        data: uint8[n], n a multiple of 16.

    Attributes:
        data: the bytes.
        unknown: bool, by word, whether it has no known value; None while all have one.
    """

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.data = data
        self.unknown: Marks | None = None

    def make_marks(self) -> None:
        """Create marks, none of them set."""
        self.unknown = np.zeros(len(self.data) // 4 + 1, np.bool_)


class MemorySpaces:
    """Global memory, shared memory of each block, local memory of each lane.

    Args:
        data: global memory, from :data:`GLOBAL_BASE` on.
        blocks: int64[w], number of each warp's block among those that run.
        shared_bytes: of a block, what lies below its first variable included.
        local_bytes: of a lane.
        banks: constants.

    Attributes:
        shared_bytes: of a block, a multiple of 16.
        local_bytes: of a lane, as well.
        shared_starts: int64[w], where the shared memory of each warp's block begins.
        memories: by the number of their space.
    """

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        blocks: npt.NDArray[np.int64],
        shared_bytes: int,
        local_bytes: int,
        banks: "ConstantBanks",
    ) -> None:
        self.shared_bytes = -(-max(shared_bytes, 16) // 16) * 16
        self.local_bytes = -(-max(local_bytes, 16) // 16) * 16
        count = int(blocks.max(initial=-1)) + 1
        self.memories = {
            int(MemorySpace.GLOBAL): FlatMemory(data),
            int(MemorySpace.SHARED): FlatMemory(np.zeros(count * self.shared_bytes, np.uint8)),
            int(MemorySpace.LOCAL): FlatMemory(np.zeros(len(blocks) * self.local_bytes * WARP_LANES, np.uint8)),
            **banks.list_memories(),
        }
        self.shared_starts = blocks * self.shared_bytes


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

    def list_memories(self) -> dict[int, FlatMemory]:
        """Banks by the number of their space."""
        found = {}
        for number, bank in self._banks.items():
            memory = found[FIRST_BANK + number] = FlatMemory(np.ascontiguousarray(bank.data))
            memory.make_marks()
            assert memory.unknown is not None
            memory.unknown[np.flatnonzero(~bank.known) >> 2] = True
        return found


class SpecialRegisters:
    """The special registers of w warps.

    Args:
        grid: blocks of the launch.
        block: threads of a block.
        numbers: int64[w], linear index of each warp's block.
        warps: int64[w], of each within its block.
        shared_bytes: of a block.

    Attributes:
        numbers: of those whose values are known, by name; others depend on the machine and the moment.
        values: uint32[number, w, 32].
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
        tid, of_block = place_block(block, threads), place_block(grid, numbers[:, None])
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
            "SR_LMEMHIOFF": lanes * 0,  # which the stack may not go below
        }
        self.numbers = {name: number for number, name in enumerate(found)}
        self.values = np.stack([*found.values()]).astype(np.uint32)
