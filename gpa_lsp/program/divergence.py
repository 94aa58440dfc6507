"""Divergence regions: which BSYNC brings together the threads that part after which BSSY."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.model import INSTRUCTION_BYTES, Flow, Instructions, ResourceKind
from gpa_lsp.program.cfg import Blocks, InstructionFlow
from gpa_lsp.program.model import DivergenceRegion

_UNNAMED = -1


def find_divergence_regions(
    instructions: Instructions, flow: InstructionFlow, blocks: Blocks
) -> tuple[DivergenceRegion, ...]:
    """One region per BSSY that names a target in the section, by address.

    The BSYNC that belongs to it is the instruction right before the target, if it waits at the same convergence barrier.
    """
    barrier_of = _list_barriers(instructions)
    found = []
    for index in np.flatnonzero(flow.flow == Flow.BARRIER_SET).tolist():
        target, rest = divmod(int(instructions.target[index]), INSTRUCTION_BYTES)
        if rest or not 0 <= target < len(instructions):
            continue
        barrier = int(barrier_of[index])
        wait = target - 1 if target > 0 and flow.flow[target - 1] == Flow.BARRIER_WAIT else None
        if wait is not None and barrier not in (_UNNAMED, barrier_of[wait]):
            wait = None
        found.append(
            DivergenceRegion(
                barrier=barrier if barrier != _UNNAMED else None,
                set_instruction=index,
                set_block=int(blocks.block_of_instruction[index]),
                target_block=int(blocks.block_of_instruction[target]),
                wait_instruction=wait,
                wait_block=None if wait is None else int(blocks.block_of_instruction[wait]),
            )
        )
    return tuple(found)


def _list_barriers(instructions: Instructions) -> npt.NDArray[np.int16]:
    """Number of the convergence barrier each instruction names, written before read; int16[n]."""
    barriers = np.full(len(instructions), _UNNAMED, dtype=np.int16)
    for resources in (instructions.reads, instructions.writes):
        places = np.flatnonzero(resources.numbers >> 8 == ResourceKind.CONVERGENCE_BARRIER)
        rows = np.searchsorted(resources.starts, places, side="right") - 1
        barriers[rows] = resources.numbers[places] & 0xFF
    return barriers
