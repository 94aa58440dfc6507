"""The requests of the blocks that are resident together: :class:`WaveCollector` keeps them, bounded, and puts them in order.

Model of residency: the grid runs in waves of ``sm_count · blocks_per_sm`` blocks by ascending number, and block b of a wave is on SM
``b mod sm_count``. All blocks of a wave start together and end before the next wave starts; their warps go round robin
(:mod:`gpa_lsp.execution.accesses.references`).

Where too many references come together, only every second, fourth … SM is kept, and of several waves the later ones are dropped. Where the
trace is a sample that has all blocks of no SM, traced blocks stand for an SM ``blocks_per_sm`` at a time, by ascending number.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction, bypasses_l1
from gpa_lsp.execution.accesses.lane_addresses import CACHED_SPACES, SECTOR_SHIFT, Integers, Marks
from gpa_lsp.execution.accesses.piece_rows import PieceRows, SectorLists, count_kept_rows, join_lists
from gpa_lsp.execution.accesses.references import list_references, order_turns
from gpa_lsp.execution.traces.keyed_sums import compress_keys
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.foundation.records import ColumnRecord

LOAD = 0  # Roles of references: a load through L1
BYPASSING_LOAD = 1  # A load that L1 does not keep: :func:`~gpa_lsp.code.ptx.static_instructions.bypasses_l1`
STORE = 2
ATOMIC = 3

_SAMPLE_ROWS = 4096
_IS_CACHED = np.isin(np.arange(256), CACHED_SPACES)  # By number of the space


class WaveRequests(ColumnRecord, frozen=True, kw_only=True):
    """n warp-level accesses with their sectors, and two orders of them."""

    # int8[i], one of the four above, by instruction; loads of local memory go through L1 whatever they are
    roles: npt.NDArray[np.int8]
    instruction: npt.NDArray[np.uint32]  # uint32[n], index of the static instruction
    is_local: Marks  # bool[n], of local memory
    lists: SectorLists  # their sectors
    order: Integers  # int64[n], the accesses by wave, then SM, then as the warps of the SM make them
    ends: Integers  # int64[g], for each wave and SM, in this order, where its accesses end
    # int64[n], the accesses in the order in which they would reach a cache that all SMs share: by wave, turn, place on the SM, SM and warp
    shared_order: Integers
    kept_ratio: float  # SMs kept of those there were, 0..1
    blocks_per_sm: float  # resident blocks of an SM, on average over the groups
    has_whole_sms: bool  # False where traced blocks only stand for an SM
    is_whole: bool  # False where blocks were dropped for want of room

    @property
    def groups(self) -> int:
        """Waves times SMs."""
        return len(self.ends)

    def find_roles(self) -> npt.NDArray[np.int8]:
        """int8[n], role of each access."""
        found = self.roles[self.instruction]
        found[self.is_local & (found == BYPASSING_LOAD)] = LOAD
        return found


class _Rows(ColumnRecord, frozen=True, kw_only=True):
    """Rows kept of a piece; ``block`` and ``place`` are by warp, ``warp`` is the index of a row's warp in them."""

    block: Integers
    place: Integers
    references: int  # of all rows, in sectors
    warp: npt.NDArray[np.int32]
    turn: Integers
    instruction: npt.NDArray[np.uint32]
    is_local: Marks
    lists: SectorLists

    def list_blocks(self) -> Integers:
        """Blocks of the rows; some may be there several times."""
        return self.block[np.bincount(self.warp, minlength=len(self.block)) > 0]


class WaveCollector:
    """Keeps sector references of pieces, as many as allowed.

    Args:
        context: the GPU that the blocks run on.
        most_references: kept at once.
    """

    def __init__(self, context: TraceContext, *, most_references: int) -> None:
        self._context = context
        self._most = most_references
        self._held: list[_Rows] = []
        self._roles = np.empty(0, np.int8)
        self._step = 1
        self._last_block: int | None = None
        self._is_whole = True
        self._grid_blocks = 0

    def add(self, found: PieceRows) -> None:
        """Take the accesses of a piece."""
        piece, accesses = found.piece, found.piece.accesses
        warps, block = found.warps, found.warps.block
        self._grid_blocks = prod(piece.grid)
        new = [_find_role(one) for one in piece.instructions[len(self._roles) :]]  # each piece has those before it
        self._roles = np.concatenate([self._roles, np.array(new, dtype=np.int8)])
        kept, kept_warps = _IS_CACHED[accesses.space], self._is_kept(block)
        rows = np.flatnonzero(kept if kept_warps.all() else kept & kept_warps[warps.number])
        if len(rows) == 0:
            return
        rows = self._make_room(found, rows)
        is_listed = found.has_sectors and bool(found.is_global[rows].all())  # as they were listed for reuse
        lists = found.find_sectors(rows) if is_listed else found.list_sectors(rows)
        sizes = lists.sizes
        kept_rows = count_kept_rows(sizes, 2 * self._most)
        if kept_rows != len(rows):
            self._is_whole = False
            rows, lists = rows[:kept_rows], lists.choose(np.arange(kept_rows))
        chosen = slice(None) if len(rows) == len(accesses) else rows
        self._held.append(
            _Rows(
                block=block,
                place=warps.place,
                references=int(sizes[:kept_rows].sum()),
                warp=warps.number[chosen],
                turn=found.turns[chosen],
                instruction=accesses.instruction[chosen],
                is_local=accesses.space[chosen] == Space.LOCAL,
                lists=lists,
            )
        )
        while self._count_held() > self._most and self._shrink():
            pass

    def finish(self) -> WaveRequests:
        """All that was kept, in order."""
        held, self._held = self._held, []
        before = np.cumsum([0, *(len(one.block) for one in held)]).tolist()
        warp = _join([one.warp + np.int32(first) for one, first in zip(held, before, strict=False)], np.int32)
        turn = _join([one.turn for one in held], np.int64)
        counts = np.bincount(warp, minlength=before[-1])
        used = np.flatnonzero(counts)
        block, place = (_join([getattr(one, name) for one in held], np.int64)[used] for name in ("block", "place"))
        sms, width = self._context.sm_count, int(place.max(initial=0)) + 1
        wave, sm, slot, has_whole_sms, per_sm = self._place_blocks(block)
        keys, group = np.unique(wave * sms + sm, return_inverse=True)

        def order(of_warp: Integers, rank: Integers) -> Integers:
            columns = np.zeros((2, before[-1]), dtype=np.int64)
            columns[:, used] = of_warp, rank * width + place
            return order_turns(warp, turn, *columns)

        return WaveRequests(
            roles=self._roles,
            instruction=_join([one.instruction for one in held], np.uint32),
            is_local=_join([one.is_local for one in held], np.bool_),
            lists=held[0].lists if len(held) == 1 else join_lists([one.lists for one in held]),
            order=order(group, slot),
            ends=np.cumsum(np.bincount(group, weights=counts[used], minlength=len(keys))).astype(np.int64),
            shared_order=order(wave, slot * sms + sm),
            kept_ratio=1.0 / self._step,
            blocks_per_sm=per_sm,
            has_whole_sms=has_whole_sms,
            is_whole=self._is_whole,
        )

    def _is_kept(self, block: Integers) -> npt.NDArray[np.bool_]:
        kept: npt.NDArray[np.bool_] = np.ones(len(block), dtype=np.bool_)
        if self._step > 1:
            kept = block % self._context.sm_count % self._step == 0
        if self._last_block is not None:
            kept &= block <= self._last_block
        return kept

    def _count_held(self) -> int:
        return sum(one.references for one in self._held)

    def _make_room(self, found: PieceRows, rows: Integers) -> Integers:
        """Drop blocks before the references of a piece are listed, by a sample of its rows; returns the rows that are left."""
        accesses, sample = found.piece.accesses, rows[:: max(1, len(rows) // _SAMPLE_ROWS)]
        if found.has_sectors and found.is_global[sample].all():
            per_row = int(found.find_sectors(sample).sizes.sum()) / len(sample)
        else:
            per_row = len(list_references(found.lanes, sample, SECTOR_SHIFT, self._most).unit) / len(sample)
        while self._count_held() + per_row * len(rows) > self._most:
            if not self._shrink(accesses.block[rows].astype(np.int64)):
                break
            rows = rows[self._is_kept(accesses.block[rows].astype(np.int64))]
        return rows

    def _shrink(self, others: Integers | None = None) -> bool:
        """Drop the last wave, half of the SMs, or half of the only SM's blocks; False when nothing is left to drop."""
        self._is_whole = False
        more = [] if others is None else [others]
        blocks = np.unique(np.concatenate([*(one.list_blocks() for one in self._held), *more]))
        if len(blocks) == 0:
            return False
        wave_blocks = self._context.sm_count * self._context.blocks_per_sm
        waves = blocks // wave_blocks
        if waves[0] != waves[-1]:
            self._last_block = int(waves[-1]) * wave_blocks - 1
        elif self._step * 2 <= self._context.sm_count and len(np.unique(blocks % self._context.sm_count)) > 1:
            self._step *= 2
        elif len(blocks) > 1:
            self._last_block = int(blocks[len(blocks) // 2 - 1])
        else:
            return False
        self._held = [self._filter(one) for one in self._held]
        return True

    def _filter(self, rows: _Rows) -> _Rows:
        kept = np.flatnonzero(self._is_kept(rows.block)[rows.warp])
        lists = rows.lists.choose(kept).compact()
        return replace(
            rows,
            references=int(lists.sizes.sum()),
            warp=rows.warp[kept],
            turn=rows.turn[kept],
            instruction=rows.instruction[kept],
            is_local=rows.is_local[kept],
            lists=lists,
        )

    def _place_blocks(self, block: Integers) -> tuple[Integers, Integers, Integers, bool, float]:
        """Wave, SM and place on it of each warp's block; whether these SMs are whole; blocks per SM."""
        sms, per_sm = self._context.sm_count, self._context.blocks_per_sm
        if len(block) == 0:
            return block, block, block, True, 0.0
        blocks, of_block = compress_keys(block)
        wave, slot = blocks // (sms * per_sm), blocks % (sms * per_sm)
        sm, place = slot % sms, slot // sms
        groups, sizes = np.unique(wave * sms + sm, return_counts=True)
        first = groups // sms * (sms * per_sm) + groups % sms
        expected = np.clip((self._grid_blocks - 1 - first) // sms + 1, 1, per_sm)
        has_whole_sms = bool((sizes == expected).any())
        if not has_whole_sms:
            number = np.arange(len(blocks))
            wave, sm, place = number // (sms * per_sm), number // per_sm % sms, number % per_sm
            sizes = np.bincount(number // per_sm)
        return wave[of_block], sm[of_block], place[of_block], has_whole_sms, float(sizes.mean())


def _join(columns: Sequence["npt.NDArray[Any]"], kind: "npt.DTypeLike") -> "npt.NDArray[Any]":
    return np.concatenate([np.empty(0, kind), *columns])


def _find_role(instruction: StaticInstruction) -> int:
    if instruction.kind in (AccessKind.ATOMIC, AccessKind.REDUCTION):
        return ATOMIC
    if instruction.kind is AccessKind.STORE:
        return STORE
    return BYPASSING_LOAD if bypasses_l1(instruction) else LOAD
