"""Divergence regions: which BSYNC brings together the threads that part after which BSSY."""

import numpy as np

from gpa_lsp.binary.model import INSTRUCTION_BYTES, Flow, Instructions, ResourceKind
from gpa_lsp.program.cfg import Blocks, InstructionFlow
from gpa_lsp.program.model import DivergenceRegion


def find_divergence_regions(
    instructions: Instructions, flow: InstructionFlow, blocks: Blocks
) -> tuple[DivergenceRegion, ...]:
    """One region per BSSY that names a target in the section, by address.

    The BSYNC that belongs to it is the instruction right before the target, if it waits at the same convergence barrier.
    """
    found = []
    for index in np.flatnonzero(flow.flow == Flow.BARRIER_SET).tolist():
        target, rest = divmod(int(instructions.target[index]), INSTRUCTION_BYTES)
        if rest or not 0 <= target < len(instructions):
            continue
        barrier = _find_barrier(instructions, index)
        wait = target - 1 if target > 0 and flow.flow[target - 1] == Flow.BARRIER_WAIT else None
        if wait is not None and barrier not in (None, _find_barrier(instructions, wait)):
            wait = None
        found.append(
            DivergenceRegion(
                barrier=barrier,
                set_instruction=index,
                set_block=int(blocks.block_of_instruction[index]),
                target_block=int(blocks.block_of_instruction[target]),
                wait_instruction=wait,
                wait_block=None if wait is None else int(blocks.block_of_instruction[wait]),
            )
        )
    return tuple(found)


def _find_barrier(instructions: Instructions, index: int) -> int | None:
    """Number of the convergence barrier an instruction names; None when it names none."""
    for number in (*instructions.writes.of(index), *instructions.reads.of(index)):
        if number >> 8 == ResourceKind.CONVERGENCE_BARRIER:
            return number & 0xFF
    return None
