"""Predicted hit rates of L1 and L2, from reuse distances.

Model, all of it assumed and none of it measured:

* L1, one per SM: lines of 128 bytes of four sectors, least recently used first out, empty when a wave begins, shared by the blocks that
  :mod:`gpa_lsp.execution.traces.waves` puts on the SM. A load finds its line's tag when fewer distinct lines than fit were loaded since the line
  was; it finds a sector when the sector was loaded since the tag was set. Stores write through and set no tag. From Volta on they leave what is
  there; with ``evicts_on_store`` they make it invalid, and its place stays taken until it is the least recently used. Strong and ``.cg`` loads,
  atomics and reductions pass by.
* L2, one for all: the same lines, least recently used, empty when the first wave begins. It sees the load sectors that miss L1 or pass by it,
  and all store and atomic sectors, which set tags. Where only a part of the SMs was looked at, it has that part of its size.
* Fully associative, or with a number of ways in sets chosen by the exclusive-or of the parts of the line's number.

What is left out: latencies and fills under way (a second miss to a sector that is on its way counts as a hit), the replacement of the real
caches, prefetches, and what ran before.

Source: R. Mattson et al., "Evaluation techniques for storage hierarchies" (1970) for hits from distances; C. Nugteren et al., "A detailed GPU
cache model based on reuse distance theory" (HPCA 2014) for round robin over resident warps.
"""

import math

import numpy as np
from msgspec import Struct

from gpa_lsp.execution.traces.keyed_sums import KeyedSums
from gpa_lsp.execution.traces.lane_addresses import Integers, Marks
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.references import order_rows
from gpa_lsp.execution.traces.reuse_distance import (
    INFINITE,
    Distances,
    ReuseDistances,
    find_previous,
    measure_distances,
)
from gpa_lsp.execution.traces.segments import LINE_BYTES, LINE_SHIFT, SECTOR_SHIFT
from gpa_lsp.execution.traces.waves import ATOMIC, BYPASSING_LOAD, LOAD, STORE, WaveReferences, WaveRequests
from gpa_lsp.foundation.prose import Sentence, count, number, percent, say
from gpa_lsp.foundation.records import ColumnRecord

_SECTOR_BITS = LINE_SHIFT - SECTOR_SHIFT


class CacheShape(Struct, frozen=True, kw_only=True):
    """A cache."""

    lines: int  # it holds, at least 1
    ways: int | None = None  # lines of one set; None for fully associative


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
        """Of load sectors looked up in L1; None without any, or without L1's size."""
        sectors = self.sum_column("l1_sectors")
        return self.sum_column("l1_hits") / sectors if sectors and self.l1_bytes is not None else None

    @property
    def l2_hit_ratio(self) -> float | None:
        """Of load sectors looked up in L2; None when unknown."""
        sectors = self.sum_column("l2_sectors")
        return self.sum_column("l2_hits") / sectors if sectors and self.l2_bytes is not None else None


class LineLoads(ColumnRecord, frozen=True, kw_only=True):
    """Loads through L1 by line: one reference per request and line."""

    reference: Integers  # int64[m], index of the first sector reference of each
    line: Integers  # int64[m]
    group: Integers  # int64[m]
    of_sector: Integers  # int64[k], for each of the k load references the line reference it belongs to
    distances: Distances  # reuse distances within the group; stores have no part in them
    is_dropped: Marks  # bool[m], the line was made invalid by a store since it was loaded


def list_line_loads(references: WaveReferences, *, evicts_on_store: bool) -> LineLoads:
    """The loads that L1 sees, by line, with their reuse distances on the SM."""
    wanted = references.role == LOAD
    if evicts_on_store:
        wanted |= (references.role == STORE) | (references.role == ATOMIC)
    chosen = np.flatnonzero(wanted)
    line, request = references.sector[chosen] >> _SECTOR_BITS, references.request[chosen]
    is_first = np.ones(len(chosen), dtype=np.bool_)
    is_first[1:] = (np.diff(line) != 0) | (np.diff(request) != 0)
    first, line = chosen[is_first], line[is_first]
    is_load = references.role[first] == LOAD
    number = np.cumsum(is_load) - 1
    group = references.group[first]
    is_dropped = np.zeros(len(first), dtype=np.bool_)
    if evicts_on_store and len(first):
        previous = find_previous(line, group)
        is_dropped = (previous >= 0) & ~is_load[previous]
    return LineLoads(
        reference=first[is_load],
        line=line[is_load],
        group=group[is_load],
        of_sector=number[(np.cumsum(is_first) - 1)[references.role[chosen] == LOAD]],
        distances=measure_distances(line[is_load], group[is_load]),
        is_dropped=is_dropped[is_load],
    )


def predict_hits(
    references: WaveReferences, loads: LineLoads, context: TraceContext, *, ways: int | None = None
) -> CacheHits:
    """Predicted hits of both caches.

    Args:
        ways: of each set of both caches; None for fully associative ones.
    """
    count = len(references.sector)
    l1_hit = np.zeros(count, dtype=np.bool_)
    is_load = references.role == LOAD
    if context.l1_bytes is not None:
        shape = CacheShape(lines=count_lines(context.l1_bytes), ways=ways)
        tag_hit = _find_tag_hits(loads.line, loads.group, loads.distances, shape) & ~loads.is_dropped
        sectors = references.sector[is_load]
        l1_hit[is_load] = _find_sector_hits(loads, tag_hit, sectors, references.group[is_load])
    l2_bytes = scale_l2(references, context)
    goes_on = (is_load & ~l1_hit) | (references.role == BYPASSING_LOAD)
    l2_hit = np.zeros(count, dtype=np.bool_)
    if l2_bytes is not None:
        is_seen = goes_on | (references.role >= STORE)
        order = references.shared_order[is_seen[references.shared_order]]
        l2_hit[order] = _find_shared_hits(references, order, CacheShape(lines=count_lines(l2_bytes), ways=ways))
    sums = KeyedSums(5)
    columns = (is_load, l1_hit, goes_on, goes_on & l2_hit, references.role >= STORE)
    sums.add(references.instruction, np.stack(columns, axis=1).astype(np.int64))
    return list_hits(sums.keys, sums.sums, references, context, ways=ways)


def count_lines(size_bytes: int) -> int:
    """Of a cache of that size."""
    return max(1, size_bytes // LINE_BYTES)


def scale_l2(waves: WaveReferences | WaveRequests, context: TraceContext) -> int | None:
    """Bytes of L2 for the SMs that were looked at; None when its size is unknown."""
    return None if context.l2_bytes is None else int(context.l2_bytes * waves.kept_ratio)


def list_hits(
    instructions: Integers,
    sums: Integers,
    waves: WaveReferences | WaveRequests,
    context: TraceContext,
    *,
    ways: int | None,
) -> CacheHits:
    """The record of what was found.

    Args:
        instructions: int64[n], ascending.
        sums: int64[n, 5], in the order of :class:`InstructionHits`.
    """
    rows = zip(instructions.tolist(), sums.tolist(), strict=True)
    return CacheHits(
        instructions=tuple(
            InstructionHits(
                instruction=instruction, l1_sectors=l1, l1_hits=l1_hits, l2_sectors=l2, l2_hits=l2_hits,
                store_sectors=stores,
            )
            for instruction, (l1, l1_hits, l2, l2_hits, stores) in rows
        ),
        l1_bytes=context.l1_bytes,
        l2_bytes=scale_l2(waves, context),
        assumptions=_list_assumptions(waves, context, ways),
    )  # fmt: skip


def _find_tag_hits(line: Integers, group: Integers, distances: Distances, shape: CacheShape) -> Marks:
    """Which references find their line."""
    if shape.ways is None or shape.ways >= shape.lines:
        found: Marks = (distances.distance != INFINITE) & (distances.distance < shape.lines)
        return found
    sets = max(1, shape.lines // shape.ways)
    bits = max(1, (sets - 1).bit_length())
    mixed = line ^ (line >> bits) ^ (line >> (2 * bits))
    place = group * sets + mixed % sets
    order = order_rows(place)
    inner = measure_distances(line[order], place[order]).distance
    hits = np.zeros(len(line), dtype=np.bool_)
    hits[order] = (inner != INFINITE) & (inner < shape.ways)
    hits &= distances.distance != INFINITE
    return hits


def _number_stays(line: Integers, group: Integers, tag_hit: Marks) -> Integers:
    """int64[m], a number for each stay of a line in the cache: one more at each miss."""
    order = order_rows(group, line)
    stays = np.empty(len(line), dtype=np.int64)
    stays[order] = np.cumsum(~tag_hit[order])
    return stays


def _find_sector_hits(loads: LineLoads, tag_hit: Marks, sectors: Integers, groups: Integers) -> Marks:
    """Which sectors were loaded during the same stay of their line."""
    if len(sectors) == 0:
        return np.zeros(0, dtype=np.bool_)
    stay = _number_stays(loads.line, loads.group, tag_hit)[loads.of_sector]
    previous = find_previous(sectors, groups)
    hits: Marks = (previous >= 0) & (stay == stay[previous])
    return hits


def _find_shared_hits(references: WaveReferences, order: Integers, shape: CacheShape) -> Marks:
    """Which sector references, in the shared order, find their sector."""
    if len(order) == 0:
        return np.zeros(0, dtype=np.bool_)
    sector, request = references.sector[order], references.request[order]
    line = sector >> _SECTOR_BITS
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (np.diff(line) != 0) | (np.diff(request) != 0)
    first_line = line[is_first]
    one = np.zeros(len(first_line), dtype=np.int64)
    tag_hit = _find_tag_hits(first_line, one, measure_distances(first_line, one), shape)
    stay = _number_stays(first_line, one, tag_hit)[np.cumsum(is_first) - 1]
    previous = find_previous(sector, np.zeros(len(sector), dtype=np.int64))
    hits: Marks = (previous >= 0) & (stay == stay[previous])
    return hits


def _list_assumptions(
    references: WaveReferences | WaveRequests, context: TraceContext, ways: int | None
) -> tuple[Sentence, ...]:
    found = [*context.assumptions]
    kind = say("fully associative") if ways is None else say("{ways}-way set associative", ways=count(ways))
    found.append(
        say("Caches are {kind}, evict the least recently used line and start empty (L1 in each wave).", kind=kind)
    )
    found.append(say("Resident warps are scheduled round-robin, one memory request each; latency is not modelled."))
    if not references.has_whole_sms:
        found.append(
            say(
                "The traced blocks stand for SMs with {blocks} each: no SM has all of its blocks in the trace.",
                blocks=number(references.blocks_per_sm, "block"),
            )
        )
    if references.kept_ratio < 1:
        found.append(
            say(
                "Only {share} of the SMs were modelled, with the same share of L2; lines shared with other SMs are not seen.",
                share=percent(references.kept_ratio),
            )
        )
    if not references.is_whole:
        found.append(say("Later waves or blocks were left out."))
    return tuple(found)


# How many warps of a block should use L1, when the others bypass it: CUDAAdvisor's Equation 1.
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
    """What the equation says."""

    mean_distance: float  # the reuse distance that went into it
    warps: int  # of each block that should use L1, 0 to ``warps_per_block``; the equation's value cut to that
    equation_warps: int  # the equation's value
    warps_per_block: int  # of the launch


def count_caching_warps(
    *, l1_bytes: int, mean_distance: float, line_bytes: int, mean_divergence: float, blocks_per_sm: int
) -> int:
    """Equation 1.

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
    """The equation with our own definitions.

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
