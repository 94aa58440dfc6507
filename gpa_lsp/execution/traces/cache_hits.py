"""Predicted hit rates of L1 and L2, from reuse distances.

Model, all of it assumed and none of it measured:

* L1, one per SM: lines of 128 bytes of four sectors, least recently used first out, empty when a wave begins, shared by the blocks that the model of
  residency below puts on the SM. A load finds its line's tag when fewer distinct lines than fit were loaded since the line was; it finds a sector
  when the sector was loaded since the tag was set. Stores write through, set no tag and leave what is there, as from Volta on. Strong and ``.cg``
  loads, atomics and reductions pass by.
* L2, one for all: the same lines, least recently used, empty when the first wave begins. It sees the load sectors that miss L1 or pass by it,
  and all store and atomic sectors, which set tags. Where only a part of the SMs was looked at, it has that part of its size.

Both are fully associative.

What is left out: latencies and fills under way (a second miss to a sector that is on its way counts as a hit), the replacement of the real
caches, prefetches, and what ran before.

Source: R. Mattson et al., "Evaluation techniques for storage hierarchies" (1970) for hits from distances; C. Nugteren et al., "A detailed GPU
cache model based on reuse distance theory" (HPCA 2014) for round robin over resident warps.

Model of residency: the grid runs in waves of ``sm_count · blocks_per_sm`` blocks by ascending number, and block b of a wave is on SM
``b mod sm_count``. All blocks of a wave start together and end before the next wave starts; their warps go round robin
(:mod:`gpa_lsp.execution.accesses.references`).

Where too many references come together, only every second, fourth … SM is kept, and of several waves the later ones are dropped. Where the
trace is a sample that has all blocks of no SM, traced blocks stand for an SM ``blocks_per_sm`` at a time, by ascending number.
"""

import math
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction, bypasses_l1
from gpa_lsp.code.symbolic_accesses.requests import LINE_BYTES
from gpa_lsp.execution.accesses.lane_addresses import CACHED_SPACES, LINE_SHIFT, SECTOR_SHIFT, Integers, Marks
from gpa_lsp.execution.accesses.piece_rows import PieceRows, SectorLists, count_kept_rows, join_lists, list_lines
from gpa_lsp.execution.accesses.references import list_references, order_turns
from gpa_lsp.execution.emulator.model import Buffer
from gpa_lsp.execution.traces.keyed_sums import compress_keys
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.reuse_distance import ReuseDistances, ReuseGroup, ReuseSums
from gpa_lsp.foundation.prose import Sentence, number, percent, say
from gpa_lsp.foundation.records import ColumnRecord

if TYPE_CHECKING:
    from gpa_lsp.execution.accesses.reuse_loops import Cache, Requests

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


class InstructionHits(Struct, frozen=True, kw_only=True):
    """The sectors of one instruction."""

    instruction: int  # index of the static instruction
    l1_sectors: int  # load sectors looked up in L1
    l1_hits: int  # of them found
    l2_sectors: int  # load sectors looked up in L2
    l2_hits: int  # of them found
    store_sectors: int  # store and atomic sectors, all of which go to L2


class CacheHits(Struct, frozen=True, kw_only=True):
    """Predicted hits over what was looked at."""

    instructions: tuple[InstructionHits, ...]  # by instruction
    l1_bytes: int | None  # of one SM's L1, as modelled; None when its size is unknown and nothing was predicted for it
    l2_bytes: int | None  # as modelled, scaled to the SMs that were looked at; None when unknown
    assumptions: tuple[Sentence, ...]  # what the model takes for granted, as sentences

    def sum_column(self, name: str) -> int:
        """The sum of one of the columns of :class:`InstructionHits`."""
        return sum(getattr(one, name) for one in self.instructions)

    @property
    def l1_hit_ratio(self) -> float | None:
        """Part of load sectors looked up in L1 that hit; None without any, or without L1's size."""
        sectors = self.sum_column("l1_sectors")
        return self.sum_column("l1_hits") / sectors if sectors and self.l1_bytes is not None else None

    @property
    def l2_hit_ratio(self) -> float | None:
        """Part of load sectors looked up in L2 that hit; None when unknown."""
        sectors = self.sum_column("l2_sectors")
        return self.sum_column("l2_hits") / sectors if sectors and self.l2_bytes is not None else None


def follow_waves(
    waves: WaveRequests, context: TraceContext, buffers: tuple[Buffer, ...]
) -> tuple[CacheHits, tuple[ReuseGroup, ...]]:
    """Predicted hits of both caches, and reuse distances of the lines that each SM loads through L1."""
    from gpa_lsp.execution.accesses import reuse_loops  # llvmlite takes .1 s to import

    found, masks = list_lines(waves.lists)
    lists, number, units = reuse_loops.number_lists(found.size, found.sector)
    role, instruction, count = waves.find_roles(), waves.instruction.astype(np.int64), len(waves.roles)
    requests = reuse_loops.Requests(
        list=number[found.number],
        masks=found.firsts[found.number],
        sectors=masks,
        missed=np.full(len(role), reuse_loops.EVERY),
        left=np.empty(int(found.sizes.sum()), np.uint8),
        used=np.zeros(1, np.int64),
    )

    def open_cache(size_bytes: int | None) -> "Cache":
        lines = -1 if size_bytes is None else max(1, size_bytes // LINE_BYTES)
        recency = reuse_loops.open_recency(lists, len(units), len(requests.left))
        return reuse_loops.Cache(recency, lines, np.zeros(len(units), np.uint8), np.full(len(lists.size), -1))

    sums, is_load = ReuseSums(buffers), role == LOAD
    if is_load.any():
        tally, bases, keys = sums.open(lists, units << LINE_SHIFT, instruction)
        ends = np.unique(np.cumsum(is_load[waves.order])[waves.ends - 1])
        loads = reuse_loops.Sequences(waves.order[is_load[waves.order]], ends[ends > 0], bases)
        reuse_loops.look_in_l1(lists, requests, loads, tally, open_cache(context.l1_bytes))
        sums.close(tally, keys)
    l2_bytes = None if context.l2_bytes is None else int(context.l2_bytes * waves.kept_ratio)
    l2_hits = np.zeros(len(role), np.int64)
    if l2_bytes is not None:
        lists.is_own[:] = False  # lines are referred to alone as well
        reuse_loops.look_in_l2(lists, requests, waves.shared_order, open_cache(l2_bytes), l2_hits)
    sectors = waves.lists.sizes
    hits = sectors - _count_missed(requests, found, sectors)
    is_read = role < STORE
    columns = np.stack(
        [
            np.bincount(instruction, one, count).astype(np.int64)
            for one in (
                is_load * sectors,
                is_load * hits,
                is_read * (sectors - is_load * hits),
                is_read * l2_hits,
                ~is_read * sectors,
            )
        ],
        axis=1,
    )
    chosen = np.flatnonzero(columns.any(axis=1))
    rows = zip(chosen.tolist(), columns[chosen].tolist(), strict=True)
    predicted = CacheHits(
        instructions=tuple(
            InstructionHits(
                instruction=number, l1_sectors=l1, l1_hits=l1_hits, l2_sectors=l2, l2_hits=found_in_l2, store_sectors=stores
            )
            for number, (l1, l1_hits, l2, found_in_l2, stores) in rows
        ),
        l1_bytes=context.l1_bytes,
        l2_bytes=l2_bytes,
        assumptions=_list_assumptions(waves, context),
    )  # fmt: skip
    return predicted, sums.finish()


def _count_missed(requests: "Requests", lines: SectorLists, sectors: Integers) -> Integers:
    """int64[n], the sectors of each request that L1 does not have."""
    before = np.concatenate([[0], np.cumsum(np.bitwise_count(requests.left), dtype=np.int64)])
    first = np.maximum(requests.missed, 0)
    partial = before[np.minimum(first + lines.sizes, len(requests.left))] - before[first]
    return np.where(requests.missed >= 0, partial, np.where(requests.missed == -1, sectors, 0))


def _list_assumptions(waves: WaveRequests, context: TraceContext) -> tuple[Sentence, ...]:
    found = [*context.assumptions]
    found.append(
        say("Caches are fully associative, evict the least recently used line and start empty (L1 in each wave).")
    )
    found.append(say("Resident warps are scheduled round-robin, one memory request each; latency is not modelled."))
    if not waves.has_whole_sms:
        found.append(
            say(
                "The traced blocks stand for SMs with {blocks} each: no SM has all of its blocks in the trace.",
                blocks=number(waves.blocks_per_sm, "block"),
            )
        )
    if waves.kept_ratio < 1:
        found.append(
            say(
                "Only {share} of the SMs were modelled, with the same share of L2; lines shared with other SMs are not seen.",
                share=percent(waves.kept_ratio),
            )
        )
    if not waves.is_whole:
        found.append(say("Later waves or blocks were left out."))
    return tuple(found)


# Number of warps of a block that should use L1 while the others bypass it: CUDAAdvisor's Equation 1.
#
# ``warps = floor(L1 bytes / (mean reuse distance · line bytes · mean memory divergence · blocks per SM))``: each warp
# is thought to need the lines it touches between two uses of the same one. Source: CUDAAdvisor (CGO 2018), section 4.2
# (D), Equation 1; there within 4.3 to 6.7 % of the best number found by trying, for kernels that bypassing helps.
#
# With our own definitions the reuse distance is counted in lines and within one warp, by request, so that the lines a
# divergent request touches are in it already and the divergence is no factor; only loads whose lines L1 keeps count,
# since no other access can make use of it. With the paper's it counts elements, by thread, and the divergence turns
# them into lines.


class BypassingAdvice(Struct, frozen=True, kw_only=True):
    """Result of Equation 1 for a launch."""

    mean_distance: float  # the reuse distance that went into it
    warps: int  # of each block that should use L1, 0 to ``warps_per_block``; the equation's value cut to that
    equation_warps: int  # the equation's value
    warps_per_block: int  # of the launch


def count_caching_warps(
    *, l1_bytes: int, mean_distance: float, line_bytes: int, mean_divergence: float, blocks_per_sm: int
) -> int:
    """Number of warps of a block that should use L1, by Equation 1.

    Raises:
        ValueError: a factor of the denominator is not above zero.

    >>> count_caching_warps(l1_bytes=16384, mean_distance=4, line_bytes=128, mean_divergence=2.0, blocks_per_sm=2)
    8
    """
    footprint = mean_distance * line_bytes * mean_divergence * blocks_per_sm
    if footprint <= 0:
        raise ValueError(f"no footprint of {footprint} bytes divides a cache")
    return math.floor(l1_bytes / footprint)


def advise_bypassing(reuse: ReuseDistances, context: TraceContext, warps_per_block: int) -> BypassingAdvice | None:
    """Advice by Equation 1 with our own definitions.

    Returns:
        None where the size of L1 is unknown or no line is used again: there is nothing to keep.
    """
    mean = reuse.total.mean_distance
    if mean is None or context.l1_bytes is None:
        return None
    distance = mean + 1.0  # the line itself has to stay; the paper's code has 1 as its least distance, too
    equation = count_caching_warps(
        l1_bytes=context.l1_bytes,
        mean_distance=distance,
        line_bytes=LINE_BYTES,
        mean_divergence=1.0,
        blocks_per_sm=context.blocks_per_sm,
    )
    return BypassingAdvice(
        mean_distance=distance,
        warps=min(equation, warps_per_block),
        equation_warps=equation,
        warps_per_block=warps_per_block,
    )
