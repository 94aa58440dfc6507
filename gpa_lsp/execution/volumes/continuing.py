"""What lies behind a trace that holds the first executions of each instruction alone, where loops go on as they began: :class:`Continuation`."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.execution.volumes.distinct import list_distinct
from gpa_lsp.execution.volumes.expressions import AccessedArray, FirstTouched, SampledAccess
from gpa_lsp.execution.volumes.lane_rows import LaneRows
from gpa_lsp.execution.volumes.trace_sampling import SECTOR_BITS
from gpa_lsp.foundation.records import ColumnRecord

_FOLLOWED = (Space.GLOBAL, Space.GENERIC, Space.TEXTURE)


class Continuation(ColumnRecord, frozen=True, kw_only=True):
    """How much more often instructions are executed than a trace has it."""

    most_executions: int  # of an instruction by a warp, as many are in the trace
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


def continue_trace(trace: Trace, lane_executions: npt.NDArray[np.int64], blocks: int) -> Continuation | None:
    """Compare a trace with what was counted; None where what was counted cannot be told from it.

    Args:
        lane_executions: int64[instructions], by threads, of whole blocks.
    """
    rows = trace.accesses
    if not has_all_first(trace) or not blocks or not len(rows.instruction):
        return None
    # Ways to called functions have numbers of their own, and are counted together.
    own = np.array([one.index if one.same_as is None else one.same_as for one in trace.instructions], dtype=np.int64)
    lanes = np.bitwise_count(rows.lane_mask).astype(np.float64)
    traced = np.bincount(own[rows.instruction], weights=lanes, minlength=len(own)) / len(trace.traced_blocks)
    counted = np.zeros(len(own))
    counted[: len(lane_executions)] = lane_executions / blocks
    is_missing = (counted > 0) & (traced == 0)
    if any(is_missing[one.index] and one.kind is not None and one.space in _FOLLOWED for one in trace.instructions):
        return None
    ratios = np.divide(counted, traced, out=np.ones(len(own)), where=traced > 0)[own]
    return Continuation(most_executions=int(rows.execution.max()) + 1, ratios=np.maximum(1.0, ratios))


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
    """What was counted over a trace, with what the executions behind it add.

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
    """Of what some accesses of one array would touch beside what they touch in the trace, the part that there is."""
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
