"""What the warps of some blocks execute, instruction by instruction of SASS: :class:`KernelWalk`."""

from dataclasses import field

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.dataflow.accesses import SECTOR_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpWalk:
    """One warp of one block as its SASS executes: n executions in their order.

    Attributes:
        block: x, y and z of the block in the grid.
        warp: within the block.
        instruction: int32[n], row in :class:`~gpa_lsp.rows.model.KernelRows`: the kernel's instructions first, then those of what it calls.
        active: uint32[n], lanes that execute it: those of its path for which its predicate holds. 0 where the predicate holds for none; the
            instruction is issued all the same.
        wavefronts: uint16[n], passes of a memory instruction through the data stage (shared memory: of its banks; global and local: of L1, and of
            atomic operations as many for a line as lanes name the same word of it); 0 otherwise, and where no lane is active.
        first_sector: int64[n + 1]; execution i touches ``sectors[first_sector[i] : first_sector[i + 1]]``.
        sectors: int64[m], distinct 32-byte sectors (address // 32) of an execution, ascending; those of global memory, and of local memory at
            :data:`LOCAL_BASE`. None for shared memory.
    """

    block: tuple[int, int, int]
    warp: int
    instruction: npt.NDArray[np.int32] = field(repr=False)
    active: npt.NDArray[np.uint32] = field(repr=False)
    wavefronts: npt.NDArray[np.uint16] = field(repr=False)
    first_sector: npt.NDArray[np.int64] = field(repr=False)
    sectors: npt.NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        """Executions."""
        return len(self.instruction)


LOCAL_BASE = 1 << 48
"""Where local memory is put among the addresses of sectors: beyond what any GPU addresses. Lanes are interleaved by words, as in hardware."""
LOCAL_SECTOR = LOCAL_BASE // SECTOR_BYTES
"""The first sector of local memory; a power of two."""
LINE_SECTORS = 4
"""Sectors of a line of L1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSimulated:
    """Why, and where, a walk ended or could not begin.

    Attributes:
        reason: a sentence.
        row: of the instruction; None where it is about the whole launch.
        block: linear index of the first block it happened in; None in the same case.
        warp: within that block; None in the same case.
    """

    reason: str
    row: int | None = None
    block: int | None = None
    warp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWalk:
    """What the sampled blocks of a launch execute.

    Attributes:
        kernel: mangled name.
        grid: blocks in x, y, z.
        block_threads: threads of a block in x, y, z.
        shared_bytes: of a block, static and dynamic.
        registers: of a thread.
        walks: by block, then by warp; only of blocks whose every warp ran to its end.
        sampled_blocks: linear indexes, x fastest, ascending; those of ``walks``.
        executed: float64[r], warp-level executions of each row over the whole grid: by where blocks of a grid of one axis begin to do something
            else, where that was looked for, else counts of the sampled blocks, times blocks of the grid over sampled ones. Exact where every
            block was walked, or all do the same.
        thread_executed: float64[r], the same of lanes whose predicate held.
        not_simulated: what could not be walked; empty where all of the sampled blocks were.
        outside: rows that access global memory where no array or variable of the launch lies, ascending.
    """

    kernel: str
    grid: tuple[int, int, int]
    block_threads: tuple[int, int, int]
    shared_bytes: int
    registers: int
    walks: tuple[WarpWalk, ...] = field(repr=False)
    sampled_blocks: tuple[int, ...]
    executed: npt.NDArray[np.float64] = field(repr=False)
    thread_executed: npt.NDArray[np.float64] = field(repr=False)
    not_simulated: tuple[NotSimulated, ...]
    outside: tuple[int, ...] = ()
