"""Executions of the warps of some blocks, instruction by instruction of SASS (:class:`KernelWalk`), and as columns of a block
(:class:`BlockStream`).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

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


_FIRST_TURNS, _LAST_TURNS = 2, 1  # Of a loop, turns that stand for themselves alone
_FEWEST_TURNS = 4  # Of a loop, turns that are kept beside them
_MOST_LOOPS = 8  # Levels and places of loops that are shortened one after the other


def keep_turns(rows: npt.NDArray[np.int32], share: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Indexes of the executions of a warp to simulate, and the number that each stands for."""
    indexes = np.arange(len(rows), dtype=np.int64)
    weights = np.ones(len(rows))
    target = len(rows) * share
    for _ in range(_MOST_LOOPS):
        if len(indexes) <= target:
            break
        kept = _shorten(rows[indexes], weights, target / len(indexes))
        if kept is None:
            break
        chosen, weights = kept
        indexes = indexes[chosen]
    return indexes, weights


def _shorten(
    rows: npt.NDArray[np.int32], weights: npt.NDArray[np.float64], share: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None:
    """Shorten the loop that most executions belong to; None where none is long enough."""
    found = _find_loop(rows)
    if found is None:
        return None
    first, last = found
    heads = np.flatnonzero(rows == first)
    inside = (rows >= first) & (rows <= last)
    outside_before = np.cumsum(~inside)
    entry = outside_before[heads]  # heads of one entry have the same count of executions outside before them
    weights = weights.copy()
    keep = np.ones(len(rows), dtype=bool)
    changed = False
    bounds = np.flatnonzero(np.diff(entry)) + 1
    for group in np.split(heads, bounds):
        turns = len(group)
        wanted = max(_FEWEST_TURNS, int(turns * share))
        if turns <= wanted + _FIRST_TURNS + _LAST_TURNS:
            continue
        low, high = group[_FIRST_TURNS], group[_FIRST_TURNS + wanted]
        end = group[turns - _LAST_TURNS]
        weights[low:high] *= (turns - _FIRST_TURNS - _LAST_TURNS) / wanted
        keep[high:end] = False
        changed = True
    if not changed:
        return None
    chosen = np.flatnonzero(keep)
    return chosen, weights[chosen]


def _find_loop(rows: npt.NDArray[np.int32]) -> tuple[int, int] | None:
    """First and last row of the loop with most executions in turns that can be left out."""
    back = np.flatnonzero(rows[1:] <= rows[:-1])
    best, best_count = None, 0
    pairs, counts = np.unique(np.stack([rows[back + 1], rows[back]]), axis=1, return_counts=True)
    for (first, last), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        if count < _FIRST_TURNS + _LAST_TURNS + _FEWEST_TURNS:
            continue
        heads = int(np.count_nonzero(rows == first))
        covered = int(np.count_nonzero((rows >= first) & (rows <= last)))
        entries = max(1, heads - count)
        spare = 1 - min(1.0, entries * (_FIRST_TURNS + _LAST_TURNS + _FEWEST_TURNS) / max(1, heads))
        if covered * spare > best_count:
            best, best_count = (int(first), int(last)), covered * spare
    return best


# Blocks that have more of an instruction's sectors in common than this are taken to read the same data
SHARED_SECTORS = 0.25
_INSTANCE_BIT = 50  # Above any address of a sector: later blocks that execute a walk again touch data of their own


class BlockStream(ColumnRecord, frozen=True, kw_only=True):
    """The n executions of a block's w warps, one warp after the other."""

    starts: npt.NDArray[np.int64]  # int64[w + 1], first execution of each warp, and their number
    rows: npt.NDArray[np.int32]  # int32[n], of the program
    # int32[n], through the data stage; 0 where no lane is active, or for what accesses no memory
    passes: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int32]  # int32[n], distinct 128-byte lines
    masked: npt.NDArray[np.int32]  # int32[n], of them, those of which less than whole sectors is accessed
    first_sector: npt.NDArray[np.int64]  # int64[n], where an execution's sectors begin in ``sectors``
    last_sector: npt.NDArray[np.int64]  # int64[n], where they end
    sectors: npt.NDArray[np.int64]  # int64[m], 32-byte sectors
    is_private: npt.NDArray[np.bool_]  # bool[m], a later block that executes the same touches another one
    weights: npt.NDArray[np.float64]  # float64[n], how many executions one stands for
    repetition: int = 0  # number of times the block was run before: data of its own lies elsewhere each time

    @property
    def shift(self) -> np.int64:
        """Number that is added to the sectors that the block alone touches."""
        return np.int64(self.repetition) << _INSTANCE_BIT


class Streams(Struct, frozen=True, kw_only=True):
    """The sampled blocks of a launch."""

    blocks: tuple[BlockStream, ...]  # in the order of the grid
    left_out: float  # share of the executions that others stand for, of the block that most was left out of


def build_streams(walks: Sequence[WarpWalk], most_per_block: int, widths: npt.NDArray[np.int64]) -> Streams:
    """Streams of the walked blocks, with about ``most_per_block`` executions each at most.

    Args:
        widths: bytes that each instruction accesses for a lane.
    """
    by_block: dict[tuple[int, int, int], list[WarpWalk]] = defaultdict(list)
    for one in walks:
        by_block[one.block].append(one)
    private_rows = _find_private_rows(walks)
    blocks, left_out = [], []
    for warps in by_block.values():
        stream, share = _build_block(sorted(warps, key=lambda one: one.warp), most_per_block, private_rows, widths)
        blocks.append(stream)
        left_out.append(share)
    return Streams(blocks=tuple(blocks), left_out=max(left_out))


def _build_block(
    warps: Sequence[WarpWalk], most: int, private_rows: npt.NDArray[np.int32], widths: npt.NDArray[np.int64]
) -> tuple[BlockStream, float]:
    whole = sum(map(len, warps))
    kept = [keep_turns(one.instruction, most / whole if whole > most else 1.0) for one in warps]
    starts, weights, rows, passes, lines, masked = [0], [], [], [], [], []
    first, last, sectors, sector_rows = [], [], [], []
    offset = 0
    for one, (indexes, weight) in zip(warps, kept, strict=True):
        begin, end = one.first_sector[indexes], one.first_sector[indexes + 1]
        counts = end - begin
        taken = _spread(begin, counts)
        own = one.sectors[taken]
        owner = np.repeat(np.arange(len(indexes)), counts)
        rows.append(one.instruction[indexes])
        passes.append(np.where(one.active[indexes] == 0, 0, np.maximum(one.wavefronts[indexes], 1)))
        lines.append(np.bincount(owner[one.mark_lines()[taken]], minlength=len(indexes)))
        given = np.bitwise_count(one.active[indexes]) * widths[one.instruction[indexes]]
        masked.append(np.where(given < counts * SECTOR_BYTES, lines[-1], 0))
        first.append(np.cumsum(counts) - counts + offset)
        last.append(np.cumsum(counts) + offset)
        sectors.append(own)
        sector_rows.append(one.instruction[indexes][owner])
        weights.append(weight)
        offset += len(own)
        starts.append(starts[-1] + len(indexes))

    def join(parts: list[Any], dtype: Any) -> npt.NDArray[Any]:
        return np.concatenate(parts).astype(dtype, copy=False)

    stream = BlockStream(
        starts=np.array(starts, dtype=np.int64),
        rows=join(rows, np.int32),
        passes=join(passes, np.int32),
        lines=join(lines, np.int32),
        masked=join(masked, np.int32),
        first_sector=join(first, np.int64),
        last_sector=join(last, np.int64),
        sectors=join(sectors, np.int64),
        is_private=np.isin(join(sector_rows, np.int32), private_rows),
        weights=join(weights, np.float64),
    )
    return stream, 1 - starts[-1] / whole if whole else 0.0


def _spread(begin: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    total = int(counts.sum())
    if not total:
        return np.zeros(0, dtype=np.int64)
    shift = np.repeat(begin - (np.cumsum(counts) - counts), counts)
    found: npt.NDArray[np.int64] = np.arange(total, dtype=np.int64) + shift
    return found


def _find_private_rows(walks: Sequence[WarpWalk]) -> npt.NDArray[np.int32]:
    """Rows whose sectors differ from block to block."""
    found = []
    for row, of_block in list_touched(walks).items():
        total, distinct = sum(map(len, of_block.values())), len(np.unique(np.concatenate([*of_block.values()])))
        if len(of_block) == 1 or total - distinct <= SHARED_SECTORS * total:
            found.append(row)
    return np.array(sorted(found), dtype=np.int32)
