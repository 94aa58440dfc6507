"""Divergence of warps: conditional branches whose lanes go both ways, and basic blocks that only a part of a warp enters.

Definitions, all *dynamic*, per execution by a warp:

* a branch *diverges* when some of the lanes that execute it jump and some do not;
* an entry into a basic block is *divergent* when fewer lanes enter together than the warp has threads (a block of 40 threads has a second warp
  of 8). The paper's table counts divergent and all basic blocks; this is its dynamic form. What CUDAAdvisor's code counts instead is in
  :mod:`gpa_lsp.execution.traces.paper_answer`;
* *lane efficiency* is the part of a full warp's 32 lanes that took part, over all executions.

Source: CUDAAdvisor (CGO 2018), section 4.2 (C) and Table 3.
"""

from math import prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.execution.accesses.lane_addresses import FULL_MASK, Integers, count_lanes
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.keyed_sums import KeyedSums


class BranchTotals(Struct, frozen=True, kw_only=True):
    """The executions of one conditional branch."""

    instruction: int  # index of the static instruction
    executions: int  # by warps
    divergent: int  # executions that went both ways
    active_lanes: int  # over all executions
    taken_lanes: int  # of them, those that jumped

    @property
    def divergent_ratio(self) -> float:
        """Divergent executions of all, 0..1."""
        return self.divergent / self.executions if self.executions else 0.0

    @property
    def lane_ratio(self) -> float:
        """Lanes that execute it of 32 per execution, 0..1."""
        return self.active_lanes / (WARP_LANES * self.executions) if self.executions else 0.0


class BlockTotals(Struct, frozen=True, kw_only=True):
    """The entries into one basic block."""

    basic_block: int  # its number in the trace
    entries: int  # by warps
    divergent: int  # entries of fewer lanes than the warp has threads
    lanes: int  # over all entries

    @property
    def divergent_ratio(self) -> float:
        """Divergent entries of all, 0..1."""
        return self.divergent / self.entries if self.entries else 0.0


class BranchDivergence(Struct, frozen=True, kw_only=True):
    """Divergence of a trace."""

    branches: tuple[BranchTotals, ...]  # by instruction
    basic_blocks: tuple[BlockTotals, ...]  # by number; empty where entries were not traced

    @property
    def executions(self) -> int:
        """Executions of all branches."""
        return sum(one.executions for one in self.branches)

    @property
    def divergent(self) -> int:
        """Executions of branches that diverged."""
        return sum(one.divergent for one in self.branches)

    @property
    def divergent_ratio(self) -> float:
        """Divergent executions of all branches, 0..1; 0 without branches."""
        return self.divergent / self.executions if self.executions else 0.0

    @property
    def entries(self) -> int:
        """Entries into all basic blocks; the paper's "total blocks"."""
        return sum(one.entries for one in self.basic_blocks)

    @property
    def divergent_entries(self) -> int:
        """The paper's "divergent blocks"."""
        return sum(one.divergent for one in self.basic_blocks)

    @property
    def lane_ratio(self) -> float | None:
        """Lane efficiency over entries into basic blocks, or over branches where entries were not traced; None without either."""
        lanes = sum(one.lanes for one in self.basic_blocks)
        if self.entries:
            return lanes / (WARP_LANES * self.entries)
        active = sum(one.active_lanes for one in self.branches)
        return active / (WARP_LANES * self.executions) if self.executions else None


class BranchAccumulator:
    """Sums over pieces of a trace."""

    def __init__(self) -> None:
        self._branches = KeyedSums(4)
        self._blocks = KeyedSums(3)

    def add(self, piece: Trace) -> None:
        """Take the branches and entries of a piece."""
        branches, entries = piece.branches, piece.entries
        if len(branches):
            active, taken = branches.active_mask, branches.taken_mask & branches.active_mask
            ones = np.ones(len(branches), dtype=np.int64)
            columns = (ones, (taken != active) & (taken != 0), count_lanes(active), count_lanes(taken))
            self._branches.add(branches.instruction.astype(np.int64), np.stack(columns, axis=1).astype(np.int64))
        if len(entries):
            is_partial = entries.lane_mask != find_whole_masks(entries.warp, piece.block_threads)
            ones = np.ones(len(entries), dtype=np.int64)
            lanes = count_lanes(entries.lane_mask)
            self._blocks.add(
                entries.basic_block.astype(np.int64), np.stack([ones, is_partial, lanes], axis=1).astype(np.int64)
            )

    def finish(self) -> BranchDivergence:
        """The sums of all pieces."""
        branches = tuple(
            BranchTotals(
                instruction=instruction,
                executions=executions,
                divergent=divergent,
                active_lanes=active,
                taken_lanes=taken,
            )
            for instruction, (executions, divergent, active, taken) in zip(
                self._branches.keys.tolist(), self._branches.sums.tolist(), strict=True
            )
        )
        blocks = tuple(
            BlockTotals(basic_block=number, entries=entries, divergent=divergent, lanes=lanes)
            for number, (entries, divergent, lanes) in zip(
                self._blocks.keys.tolist(), self._blocks.sums.tolist(), strict=True
            )
        )
        return BranchDivergence(branches=branches, basic_blocks=blocks)


def find_whole_masks(warps: npt.NDArray[np.uint16], block_threads: tuple[int, int, int]) -> npt.NDArray[np.uint32]:
    """uint32[n], the lanes that have a thread.

    >>> [hex(mask) for mask in find_whole_masks(np.array([0, 1], dtype=np.uint16), (40, 1, 1))]
    ['0xffffffff', '0xff']
    """
    left: Integers = np.clip(prod(block_threads) - warps.astype(np.int64) * WARP_LANES, 0, WARP_LANES)
    return ((np.int64(1) << left) - 1).astype(np.uint32) & np.uint32(FULL_MASK)
