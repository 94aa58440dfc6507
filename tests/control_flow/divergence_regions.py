"""The BSSY of a function and the BSYNC at which the threads that parted after each meet again."""

from typing import NamedTuple

import numpy as np

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Flow, Instructions, ResourceKind
from gpa_lsp.code.control_flow.model import FlowGraph


class DivergenceRegion(NamedTuple):
    """One BSSY.

    Source: in 4,566 of 4,566 BSSY of sm_70 to sm_120 code the instruction before the target is a BSYNC of the same barrier, and no BSYNC
    belongs to two BSSY; so the threads that leave a BSYNC always go on with the next instruction.
    """

    barrier: int | None  # number of the convergence barrier, 0..15; None when the listing does not name it
    set_instruction: int  # index of the BSSY
    set_block: int  # its block
    target_block: int  # the block the BSSY names: where execution goes on together
    # index of the BSYNC of the same barrier right before the target; None when there is none (damaged code)
    wait_instruction: int | None


def list_divergence_regions(instructions: Instructions, graph: FlowGraph) -> tuple[DivergenceRegion, ...]:
    """One region per BSSY that names a target in the section, by address."""
    never = (instructions.guard < 0) & instructions.guard_negated
    flow = np.where(never, np.uint8(Flow.NONE), instructions.flow)
    blocks = graph.block_of_instruction
    found = []
    for index in np.flatnonzero(flow == Flow.BARRIER_SET).tolist():
        target, rest = divmod(int(instructions.target[index]), INSTRUCTION_BYTES)
        if rest or not 0 <= target < len(instructions):
            continue
        barrier = _find_barrier(instructions, index)
        wait = target - 1 if target > 0 and flow[target - 1] == Flow.BARRIER_WAIT else None
        if wait is not None and barrier not in (None, _find_barrier(instructions, wait)):
            wait = None
        found.append(DivergenceRegion(barrier, index, int(blocks[index]), int(blocks[target]), wait))
    return tuple(found)


def _find_barrier(instructions: Instructions, index: int) -> int | None:
    """Number of the convergence barrier an instruction names, written before read."""
    numbers = (*instructions.writes.of(index), *instructions.reads.of(index))
    return next((one & 0xFF for one in numbers if one >> 8 == ResourceKind.CONVERGENCE_BARRIER), None)
