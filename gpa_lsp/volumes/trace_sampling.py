"""What traced blocks did, counted: for accesses without an expression (:func:`sample_instruction`), and shared memory."""

from math import prod

import numpy as np

from gpa_lsp.basis.prose import Sentence
from gpa_lsp.emulator.trace import AccessKind, StaticInstruction, Trace
from gpa_lsp.ptx.model import Space
from gpa_lsp.traces.cache_operators import bypasses_l1
from gpa_lsp.volumes.block_volumes import LINE_BYTES, WARP_THREADS
from gpa_lsp.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.volumes.distinct import list_distinct
from gpa_lsp.volumes.expressions import SampledAccess
from gpa_lsp.volumes.groups import Integers
from gpa_lsp.volumes.l1_cycles import count_bank_conflicts, count_request_cycles
from gpa_lsp.volumes.lane_rows import LaneRows, fill_requests

_MOST_SHARED_ROWS = 1 << 14
"""Warp-level accesses of shared memory that conflicts are counted in; of more, every n-th is taken."""


def sample_instruction(
    trace: Trace, instruction: StaticInstruction, lanes: LaneRows, array: int | None, why: Sentence
) -> SampledAccess:
    """What the traced blocks did with one instruction."""
    blocks = len(trace.traced_blocks)
    threads = prod(trace.block_threads)
    warps = -(-threads // WARP_THREADS) * blocks
    width = max(1, instruction.bytes_per_lane)
    requests = len(lanes.rows)
    sectors = lanes.addresses // SECTOR_BYTES
    block = lanes.thread // threads
    return SampledAccess(
        array=array,
        kind=instruction.kind or AccessKind.LOAD,
        element_bytes=width,
        executions=len(lanes.addresses) / (threads * blocks),
        sectors_per_request=_count_pairs(lanes.request, sectors) / requests,
        cycles_per_request=float(count_request_cycles(fill_requests(trace, lanes.rows), width).mean()),
        requests_per_warp=requests / warps,
        block_sectors=_count_pairs(block, sectors) / blocks,
        block_lines=_count_pairs(block, lanes.addresses // LINE_BYTES) / blocks,
        distinct_ratio=len(list_distinct(sectors)) / _count_pairs(block, sectors),
        instruction=instruction.index,
        why=why,
        bypasses_l1=bypasses_l1(instruction),
    )


def count_shared_cycles(trace: Trace) -> float:
    """Cycles of L1's data pipe for one warp's accesses of shared memory, mean of the traced warps.

    Approximation: an access of 8 or 16 bytes per lane takes at least 2 or 4 cycles, and conflicts count by its own width.
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
    return total * len(rows) / len(taken) / warps


def _count_shared(addresses: Integers, width: int) -> int:
    unit = max(4, width)
    conflicts = count_bank_conflicts(addresses // unit, max(1, LINE_BYTES // unit))
    return int(np.maximum(conflicts, 1).sum())


def _count_pairs(of_whom: Integers, values: Integers) -> int:
    """Distinct pairs."""
    order = np.lexsort((values, of_whom))
    first, second = of_whom[order], values[order]
    return 1 + int(np.count_nonzero((first[1:] != first[:-1]) | (second[1:] != second[:-1])))
