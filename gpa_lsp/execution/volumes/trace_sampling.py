"""What traced blocks did, counted: for accesses without an expression (:func:`sample_instruction`), and shared memory."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.cache_operators import bypasses_l1
from gpa_lsp.execution.volumes.block_volumes import LINE_BYTES, WARP_THREADS
from gpa_lsp.execution.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.execution.volumes.distinct import list_distinct
from gpa_lsp.execution.volumes.expressions import FirstTouched, SampledAccess
from gpa_lsp.execution.volumes.groups import Integers
from gpa_lsp.execution.volumes.l1_cycles import count_bank_conflicts, count_request_cycles
from gpa_lsp.execution.volumes.lane_rows import LaneRows, fill_requests
from gpa_lsp.foundation.prose import Sentence

SECTOR_BITS = 44  # Of the number of a sector: addresses have 49 bits
_LINE_SECTOR_BITS = (LINE_BYTES // SECTOR_BYTES).bit_length() - 1
# Warp-level accesses of shared memory that conflicts are counted in; of more, every n-th is taken
_MOST_SHARED_ROWS = 1 << 14


def sample_instruction(
    trace: Trace, instruction: StaticInstruction, lanes: LaneRows, array: int | None, why: Sentence
) -> SampledAccess:
    """What the traced blocks did with one instruction."""
    blocks = len(trace.traced_blocks)
    threads = prod(trace.block_threads)
    warps = -(-threads // WARP_THREADS) * blocks
    width = max(1, int(trace.accesses.bytes[lanes.rows[0]]))
    requests = len(lanes.rows)
    addresses = lanes.read_all()
    sectors = addresses // SECTOR_BYTES
    request = lanes.lanes.request
    block = lanes.lanes.slot[request]
    return SampledAccess(
        array=array,
        kind=instruction.kind or AccessKind.LOAD,
        element_bytes=width,
        executions=len(addresses) / (threads * blocks),
        sectors_per_request=_count_pairs(request, sectors) / requests,
        cycles_per_request=float(count_request_cycles(fill_requests(trace, lanes.rows), width).mean()),
        requests_per_warp=requests / warps,
        block_sectors=_count_pairs(block, sectors) / blocks,
        block_lines=_count_pairs(block, addresses // LINE_BYTES) / blocks,
        distinct_ratio=len(list_distinct(sectors)) / _count_pairs(block, sectors),
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
    """Accesses with what each of them touches first: unrolled ones touch the same sectors, which are moved once.

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
    """What the accesses of one direction touched so far."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._sectors = self._lines = self._of_any = self._pairs = np.zeros(0, dtype=np.int64)

    def take(self, keys: Integers) -> FirstTouched:
        """Add what an access touches; what of it is new."""
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

    Approximation: an access of 8 or 16 bytes per lane takes at least 2 or 4 cycles, and conflicts count by its own width.

    Args:
        ratios: float64[instructions], how much more often than in the trace they are executed; None for as often.
    """
    rows = np.flatnonzero(trace.accesses.space == int(Space.SHARED))
    if not len(rows):
        return 0.0
    taken = rows[:: -(-len(rows) // _MOST_SHARED_ROWS)]
    total = 0.0
    widths = trace.accesses.bytes[taken]
    for width in list_distinct(widths).tolist():
        total += float(_count_shared(fill_requests(trace, taken[widths == width]), max(1, width)))
    warps = -(-prod(trace.block_threads) // WARP_THREADS) * len(trace.traced_blocks)
    executed = len(rows) if ratios is None else float(ratios[trace.accesses.instruction[rows]].sum())
    return total * executed / len(taken) / warps


def _count_shared(addresses: Integers, width: int) -> int:
    unit = max(4, width)
    conflicts = count_bank_conflicts(addresses // unit, max(1, LINE_BYTES // unit))
    return int(np.maximum(conflicts, 1).sum())


def _count_pairs(of_whom: Integers, values: Integers) -> int:
    """Distinct pairs."""
    order = np.lexsort((values, of_whom))
    first, second = of_whom[order], values[order]
    return 1 + int(np.count_nonzero((first[1:] != first[:-1]) | (second[1:] != second[:-1])))
