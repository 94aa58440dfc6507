"""How often each instruction was executed: :func:`count_executions`."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.emulator.engine.machine import Machine


def count_executions(count: int, machine: Machine | None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Executions by warps and by lanes, int64[n] each.

    Segments are counted as a whole; instructions with a guard count the lanes for which it held.

    Args:
        count: static instructions.
        machine: what ran; None when nothing did.
    """
    warps = np.zeros(count, np.int64)
    lanes = np.zeros(count, np.int64)
    if machine is None:
        return warps, lanes
    for function in machine.bound_functions:
        source = machine.module.functions[function.name]
        first = machine.first_statics[function.name]
        for segment in function.segments:
            for static in segment.instructions:
                warps[static] = segment.warp_executions
                has_guard = source.instructions[static - first].guard is not None
                lanes[static] = machine.guarded[static] if has_guard else segment.lane_executions
    return warps, lanes
