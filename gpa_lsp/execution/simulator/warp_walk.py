"""Executions of the warps of some blocks, instruction by instruction of SASS: :class:`KernelWalk`."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.accesses.l2_traffic import BlockPlace, Sectors
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES


class WarpWalk(ColumnRecord, frozen=True, kw_only=True):
    """One warp of one block as its SASS executes: n executions in their order."""

    block: tuple[int, int, int]  # x, y and z of the block in the grid
    warp: int  # within the block
    # int32[n], row in :class:`~gpa_lsp.kernel.model.KernelRows`: the kernel's instructions first, then those of what it calls
    instruction: npt.NDArray[np.int32]
    # uint32[n], lanes that execute it: those of its path for which its predicate holds. 0 where the predicate holds for none; the instruction is
    # issued all the same.
    active: npt.NDArray[np.uint32]
    # uint16[n], passes of a memory instruction through the data stage (shared memory: of its banks; global and local: of L1, and of atomic operations
    # as many for a line as lanes name the same word of it); 0 otherwise, and where no lane is active
    wavefronts: npt.NDArray[np.uint16]
    # int64[n + 1]; execution i touches ``sectors[first_sector[i] : first_sector[i + 1]]``
    first_sector: npt.NDArray[np.int64]
    # int64[m], distinct 32-byte sectors (address // 32) of an execution, ascending; those of global memory, and of local memory at
    # :data:`LOCAL_BASE`. None for shared memory.
    sectors: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Number of executions."""
        return len(self.instruction)

    def mark_lines(self) -> npt.NDArray[np.bool_]:
        """bool[m], whether a sector is the first of its line (128 bytes) that its execution touches."""
        begins: npt.NDArray[np.bool_] = np.diff(self.sectors // LINE_SECTORS, prepend=-1) != 0
        begins[self.first_sector[:-1][self.first_sector[:-1] < len(self.sectors)]] = True
        return begins


# Where local memory is put among the addresses of sectors: beyond what any GPU addresses. Lanes are interleaved by words, as in hardware.
LOCAL_BASE = 1 << 48
LOCAL_SECTOR = LOCAL_BASE // SECTOR_BYTES  # The first sector of local memory; a power of two
LINE_SECTORS = 4  # Sectors of a line of L1


class NotSimulated(Struct, frozen=True, kw_only=True):
    """Reason why a walk ended early or could not begin, and the place."""

    reason: str  # a sentence
    row: int | None = None  # of the instruction; None where it is about the whole launch
    block: int | None = None  # linear index of the first block it happened in; None in the same case
    warp: int | None = None  # within that block; None in the same case


class KernelWalk(ColumnRecord, frozen=True, kw_only=True):
    """Executions of the sampled blocks of a launch, and of its grid by them."""

    kernel: str  # mangled name
    grid: tuple[int, int, int]  # blocks in x, y, z
    block_threads: tuple[int, int, int]  # threads of a block in x, y, z
    shared_bytes: int  # of a block, static and dynamic
    registers: int  # of a thread
    walks: tuple[WarpWalk, ...]  # by block, then by warp; only of blocks whose every warp ran to its end
    sampled_blocks: tuple[int, ...]  # linear indexes, x fastest, ascending; those of ``walks``
    # float64[r], warp-level executions of each row over the whole grid: by where blocks of a grid of one axis begin to do something else, where that
    # was looked for, else counts of the sampled blocks, times blocks of the grid over sampled ones. Exact where every block was walked, or all do the
    # same.
    executed: npt.NDArray[np.float64]
    thread_executed: npt.NDArray[np.float64]  # float64[r], the same of lanes whose predicate held
    not_simulated: tuple[NotSimulated, ...]  # what could not be walked; empty where all of the sampled blocks were
    # int64[k, 2], addresses at which arrays and variables of the launch begin and end, by ascending beginnings
    extents: npt.NDArray[np.int64]
    # rows that access global memory where no array or variable of the launch lies, ascending
    outside: tuple[int, ...] = ()


def list_touched(
    walks: Iterable[WarpWalk], chosen: npt.NDArray[np.bool_] | None = None
) -> dict[int, dict[BlockPlace, Sectors]]:
    """Row → block → distinct sectors that its executions touch, ascending.

    Args:
        chosen: bool[rows], rows to list; None for all.
    """
    by_block: dict[BlockPlace, list[WarpWalk]] = defaultdict(list)
    for one in walks:
        by_block[one.block].append(one)
    found: dict[int, dict[BlockPlace, Sectors]] = defaultdict(dict)
    for block, warps in by_block.items():
        rows = np.concatenate([np.repeat(one.instruction, np.diff(one.first_sector)) for one in warps])
        sectors = np.concatenate([one.sectors for one in warps])
        if chosen is not None:
            rows, sectors = rows[chosen[rows]], sectors[chosen[rows]]
        order = np.argsort(rows, kind="stable")
        touched, first = np.unique(rows[order], return_index=True)
        for row, part in zip(touched.tolist(), np.split(sectors[order], first[1:]), strict=False):
            found[row][block] = np.unique(part)
    return found
