"""``elect.sync``: one lane of those that meet."""

import numpy as np

from gpa_lsp.emulator.engine.binder import Binder, flatten, read_as
from gpa_lsp.emulator.engine.fragments import Fragment
from gpa_lsp.emulator.engine.lane_steps import guarded_mask
from gpa_lsp.emulator.engine.values import U32
from gpa_lsp.emulator.ptx.scalar_types import ScalarType


def bind_elect(binder: Binder) -> None:
    """The lowest lane named in the mask is the leader, as the hardware chooses today.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    instruction = binder.instruction
    members = binder.read(instruction.sources[0], ScalarType.U32)
    results = flatten(instruction.destinations)
    leader = binder.write(results[0], ScalarType.U32)
    elected = binder.write(results[1], ScalarType.PRED) if len(results) > 1 else None
    guard = binder.guard

    def step(fragment: Fragment) -> None:
        bits = np.broadcast_to(fragment.warps.column("lanemask_eq"), (fragment.warps.lanes,))
        named = guarded_mask(fragment, guard) & ((read_as(fragment, members, U32) & bits) != 0)
        first = np.repeat(named.reshape(-1, 32).argmax(axis=1).astype(np.uint32), 32)
        fragment.registers[leader] = first
        if elected is not None:
            fragment.registers[elected] = first == fragment.warps.column("laneid")

    binder.steps.append(step)
    binder.finish()
