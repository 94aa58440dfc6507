"""Predicted hit rates of L1 and L2, from reuse distances.

Model, all of it assumed and none of it measured:

* L1, one per SM: lines of 128 bytes of four sectors, least recently used first out, empty when a wave begins, shared by the blocks that
  :mod:`gpa_lsp.execution.traces.waves` puts on the SM. A load finds its line's tag when fewer distinct lines than fit were loaded since the line
  was; it finds a sector when the sector was loaded since the tag was set. Stores write through, set no tag and leave what is there, as from Volta
  on. Strong and ``.cg`` loads, atomics and reductions pass by.
* L2, one for all: the same lines, least recently used, empty when the first wave begins. It sees the load sectors that miss L1 or pass by it,
  and all store and atomic sectors, which set tags. Where only a part of the SMs was looked at, it has that part of its size.

Both are fully associative.

What is left out: latencies and fills under way (a second miss to a sector that is on its way counts as a hit), the replacement of the real
caches, prefetches, and what ran before.

Source: R. Mattson et al., "Evaluation techniques for storage hierarchies" (1970) for hits from distances; C. Nugteren et al., "A detailed GPU
cache model based on reuse distance theory" (HPCA 2014) for round robin over resident warps.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from gpa_lsp.code.symbolic_accesses.requests import LINE_BYTES
from gpa_lsp.execution.accesses.lane_addresses import LINE_SHIFT, Integers
from gpa_lsp.execution.accesses.piece_rows import SectorLists, list_lines
from gpa_lsp.execution.emulator.trace import Buffer
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.reuse_distance import ReuseDistances, ReuseGroup, ReuseSums
from gpa_lsp.execution.traces.waves import LOAD, STORE, WaveRequests
from gpa_lsp.foundation.prose import Sentence, number, percent, say

if TYPE_CHECKING:
    from gpa_lsp.execution.accesses.reuse_loops import Cache, Requests


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
