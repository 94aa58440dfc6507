"""Counts over traced blocks, for accesses without an expression (:func:`sample_instruction`) and for shared memory."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction, bypasses_l1
from gpa_lsp.code.symbolic_accesses.requests import (
    LINE_BYTES,
    SECTOR_BYTES,
    WARP_LANES,
    count_request_cycles,
    count_wavefronts,
)
from gpa_lsp.execution.accesses.lane_addresses import pack_lanes, spread_lanes
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.volumes.expressions import AccessedArray, FirstTouched, SampledAccess
from gpa_lsp.execution.volumes.groups import Integers, list_distinct
from gpa_lsp.execution.volumes.lane_rows import LaneRows
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.foundation.records import ColumnRecord

SECTOR_BITS = 44  # Bits of a sector's number: addresses have 49
_LINE_SECTOR_BITS = (LINE_BYTES // SECTOR_BYTES).bit_length() - 1
# Warp-level accesses of shared memory that conflicts are counted in; of more, every n-th is taken
_MOST_SHARED_ROWS = 1 << 14


def sample_instruction(
    trace: Trace, instruction: StaticInstruction, lanes: LaneRows, array: int | None, why: Sentence
) -> SampledAccess:
    """Count the accesses of one instruction in the traced blocks."""
    blocks = len(trace.traced_blocks)
    threads = prod(trace.block_threads)
    warps = -(-threads // WARP_LANES) * blocks
    width = max(1, int(trace.accesses.bytes[lanes.rows[0]]))
    requests = len(lanes.rows)
    addresses = lanes.read_all()
    sectors = addresses // SECTOR_BYTES
    of_request = lanes.lanes.request << SECTOR_BITS
    of_block = lanes.lanes.slot[lanes.lanes.request] << SECTOR_BITS
    block_sectors = len(list_distinct(of_block | sectors))
    return SampledAccess(
        array=array,
        kind=instruction.kind or AccessKind.LOAD,
        element_bytes=width,
        executions=len(addresses) / (threads * blocks),
        sectors_per_request=len(list_distinct(of_request | sectors)) / requests,
        cycles_per_request=float(
            count_request_cycles(pack_lanes(trace.accesses, lanes.rows).view(np.int64), width).mean()
        ),
        requests_per_warp=requests / warps,
        block_sectors=block_sectors / blocks,
        block_lines=len(list_distinct(of_block | (addresses // LINE_BYTES))) / blocks,
        distinct_ratio=len(list_distinct(sectors)) / block_sectors,
        instruction=instruction.index,
        why=why,
        bypasses_l1=bypasses_l1(instruction),
    )


def find_touched(trace: Trace, lanes: LaneRows) -> Integers:
    """int64[n]: the sectors that each traced block touches with one instruction, as places of blocks and numbers of sectors together."""
    places = np.searchsorted(trace.traced_blocks, trace.accesses.block[lanes.rows]).astype(np.int64)
    return list_distinct((places[lanes.lanes.request] << SECTOR_BITS) | (lanes.read_all() // SECTOR_BYTES))


def share_sectors(
    sampled: Sequence[SampledAccess], touched: Mapping[int, Integers], blocks: int
) -> tuple[SampledAccess, ...]:
    """Accesses with the sectors that each touches first: unrolled ones touch the same sectors, which are moved once.

    Args:
        touched: of :func:`find_touched`, by instruction.
    """
    reads, writes = _Touched(blocks), _Touched(blocks)
    found = {one.instruction: one for one in sampled}
    # What L1 keeps comes first: it is what a block asks for once.
    for one in sorted(sampled, key=lambda access: (access.kind is not AccessKind.LOAD, access.bypasses_l1)):
        keys = touched[one.instruction]
        found[one.instruction] = replace(
            one,
            read=None if one.kind is AccessKind.STORE else reads.take(keys),
            written=None if one.kind is AccessKind.LOAD else writes.take(keys),
        )
    return tuple(found[one.instruction] for one in sampled)


class _Touched:
    """Sectors, lines and pairs of sectors that the accesses of one direction have touched so far."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._sectors = self._lines = self._of_any = self._pairs = np.zeros(0, dtype=np.int64)

    def take(self, keys: Integers) -> FirstTouched:
        """Add the sectors of an access, and count those that are new."""
        before = self._count()
        of_any = keys & ((1 << SECTOR_BITS) - 1)
        self._sectors = np.union1d(self._sectors, keys)
        self._lines = np.union1d(self._lines, keys >> _LINE_SECTOR_BITS)
        self._of_any = np.union1d(self._of_any, of_any)
        self._pairs = np.union1d(self._pairs, of_any >> 1)
        sectors, lines, own, pairs = (
            (now - then) / self._blocks for now, then in zip(self._count(), before, strict=True)
        )
        return FirstTouched(block_sectors=sectors, block_lines=lines, wave_sectors=own, wave_pairs=pairs)

    def _count(self) -> tuple[int, int, int, int]:
        return len(self._sectors), len(self._lines), len(self._of_any), len(self._pairs)


def count_shared_cycles(trace: Trace, ratios: npt.NDArray[np.float64] | None = None) -> float:
    """Cycles of L1's data pipe for one warp's accesses of shared memory, mean of the traced warps.

    Args:
        ratios: float64[instructions], executions of a block, of those in the trace (:func:`compare_executions`); None where they are as many.
    """
    rows = np.flatnonzero(trace.accesses.space == int(Space.SHARED))
    if not len(rows):
        return 0.0
    taken = rows[:: -(-len(rows) // _MOST_SHARED_ROWS)]
    kinds = np.array([AccessKind.LOAD if one.kind is None else one.kind for one in trace.instructions], dtype=np.int8)
    total = 0.0
    widths = trace.accesses.bytes[taken]
    for width in list_distinct(widths).tolist():
        own = taken[widths == width]
        lanes = spread_lanes(trace.accesses, own)
        total += float(count_wavefronts(*lanes, max(1, width), kinds[trace.accesses.instruction[own]])[0].sum())
    warps = -(-prod(trace.block_threads) // WARP_LANES) * len(trace.traced_blocks)
    executed = len(rows) if ratios is None else float(ratios[trace.accesses.instruction[rows]].sum())
    return total * executed / len(taken) / warps


_FOLLOWED = (Space.GLOBAL, Space.GENERIC, Space.TEXTURE)


class Continuation(ColumnRecord, frozen=True, kw_only=True):
    """Executions of instructions beyond those in a trace."""

    most_executions: int  # of an instruction by a warp that are in the trace
    # float64[instructions], at least 1: executions by threads in all, of those in the trace
    ratios: npt.NDArray[np.float64]

    def lengthen(self, instruction: int, trips: Sequence[int], executions: float) -> tuple[int, ...]:
        """Trips of loops, the innermost first, of which the outermost goes on.

        >>> Continuation(most_executions=8, ratios=np.array([2.5])).lengthen(0, (4, 2), 8)
        (4, 5)
        """
        *inner, outer = trips
        return *inner, max(outer, round(executions * float(self.ratios[instruction]) / prod(inner)))


def has_all_first(trace: Trace) -> bool:
    """Whether of each access of a trace's blocks, as far as they ran, all executions are there, or the first ones."""
    return trace.is_complete or trace.most_executions is not None


def compare_executions(
    trace: Trace, lane_executions: npt.NDArray[np.int64], blocks: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Compare the executions of a block that were counted with those in a trace, instruction by instruction.

    Args:
        lane_executions: int64[instructions], by threads, of whole blocks.
        blocks: at least 1.

    Returns:
        float64[n], the ratio of both for each instruction of the trace, 1 for those that have no access in it; and bool[n], those of them
        that were counted.
    """
    # Ways to called functions have numbers of their own, and are counted together.
    own = np.array([one.index if one.same_as is None else one.same_as for one in trace.instructions], dtype=np.int64)
    lanes = np.bitwise_count(trace.accesses.lane_mask).astype(np.float64)
    traced = np.bincount(own[trace.accesses.instruction], weights=lanes, minlength=len(own)) / len(trace.traced_blocks)
    counted = np.zeros(len(own))
    counted[: len(lane_executions)] = lane_executions / blocks
    ratios = np.divide(counted, traced, out=np.ones(len(own)), where=traced > 0)
    return ratios[own], ((counted > 0) & (traced == 0))[own]


def continue_trace(trace: Trace, lane_executions: npt.NDArray[np.int64], blocks: int) -> Continuation | None:
    """Compare a trace with what was counted (:func:`compare_executions`); None where what was counted cannot be told from it."""
    if not has_all_first(trace) or not blocks or not len(trace.accesses.instruction):
        return None
    ratios, are_missing = compare_executions(trace, lane_executions, blocks)
    if any(are_missing[one.index] and one.kind is not None and one.space in _FOLLOWED for one in trace.instructions):
        return None
    return Continuation(most_executions=int(trace.accesses.execution.max()) + 1, ratios=np.maximum(1.0, ratios))


def count_growth(lanes: LaneRows, continuation: Continuation, instruction: int, whole: int) -> float:
    """Sectors a block touches with an instruction in all, of those it touches in the trace: at least 1.

    Approximation: what is new in each further quarter of as many executions as the trace has goes on as from its third to its fourth: as many where
    they walk on, fewer where they are drawn from what was touched before.
    """
    request, most = lanes.lanes.request, int(lanes.lanes.execution.max()) + 1
    keys = (lanes.lanes.slot[request] << SECTOR_BITS) | (lanes.read_all() // SECTOR_BYTES)
    execution = lanes.lanes.execution[request]
    half, later = (len(list_distinct(keys[execution < most * quarters // 4])) for quarters in (2, 3))
    third, fourth = later - half, whole - later
    kept = min(1.0, fourth / third) if third else 1.0
    ratio = float(continuation.ratios[instruction])
    further = 4 * (ratio - 1)
    times = further if kept == 1.0 else kept * (1 - kept**further) / (1 - kept)
    return min(ratio, 1 + fourth * times / whole)


def continue_sampled(
    sampled: Sequence[SampledAccess],
    continuation: Continuation,
    growths: Mapping[int, float],
    arrays: Sequence[AccessedArray],
) -> tuple[SampledAccess, ...]:
    """Counts over a trace, extended by the executions that follow it.

    Args:
        growths: of :func:`count_growth`, by instruction.
    """
    shares = [_find_room([one for one in sampled if one.array == n], growths, one) for n, one in enumerate(arrays)]
    bounded = {
        one.instruction: 1 + (growths[one.instruction] - 1) * (1.0 if one.array is None else shares[one.array])
        for one in sampled
    }
    return tuple(
        replace(
            one,
            executions=one.executions * float(continuation.ratios[one.instruction]),
            requests_per_warp=one.requests_per_warp * float(continuation.ratios[one.instruction]),
            block_sectors=one.block_sectors * bounded[one.instruction],
            block_lines=one.block_lines * bounded[one.instruction],
            read=_grow(one.read, bounded[one.instruction]),
            written=_grow(one.written, bounded[one.instruction]),
        )
        for one in sampled
    )


def _find_room(sampled: Sequence[SampledAccess], growths: Mapping[int, float], array: AccessedArray) -> float:
    """Part of the growth of one array's accesses that the array has room for, 0..1."""
    if array.size_bytes is None:
        return 1.0
    share, most = 1.0, array.size_bytes / SECTOR_BYTES + 1
    for touched in ([one.read for one in sampled], [one.written for one in sampled]):
        pairs = [
            (one.block_sectors, growths[own.instruction]) for one, own in zip(touched, sampled, strict=True) if one
        ]
        now, grown = sum(sectors for sectors, _ in pairs), sum(sectors * growth for sectors, growth in pairs)
        if grown > most:
            share = min(share, max(0.0, most - now) / (grown - now))
    return share


def _grow(touched: FirstTouched | None, growth: float) -> FirstTouched | None:
    if touched is None:
        return None
    return FirstTouched(
        block_sectors=touched.block_sectors * growth,
        block_lines=touched.block_lines * growth,
        wave_sectors=touched.wave_sectors * growth,
        wave_pairs=touched.wave_pairs * growth,
    )
