"""Loads that one warp has in flight at once, by the scoreboards that its instructions set and wait for."""

import re
from collections.abc import Sequence

from gpa_lsp.code.binary.control_code import NO_BARRIER
from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, mark_accesses
from gpa_lsp.kernel.model import KernelRows

_BARRIERS = 6
_COUNTED_WAIT = re.compile(r"DEPBAR\.LE SB(\d), 0x([0-9a-f]+)")
_TURNS = 2  # A load may be waited for in the next pass through a loop


def count_loads_in_flight(kernel: KernelRows, rows: Sequence[int]) -> int:
    """The most loads from global memory that a warp has issued and not waited for, on its way through some rows.

    Args:
        kernel: its rows.
        rows: of a loop, or of a whole kernel, ascending. They are passed in this order: an approximation where they branch.
    """
    is_load = mark_accesses(kernel, GLOBAL_SPACES, (Access.LOAD,))
    control = kernel.control
    pending = [0] * _BARRIERS
    most = 0
    for row in [*rows] * _TURNS:
        mask = int(control.wait_mask[row])
        for barrier in range(_BARRIERS):
            if mask >> barrier & 1:
                pending[barrier] = 0
        counted = _COUNTED_WAIT.search(kernel.texts[row])
        if counted is not None and int(counted[1]) < _BARRIERS:
            barrier = int(counted[1])
            pending[barrier] = min(pending[barrier], int(counted[2], 16))
        barrier = int(control.write_barrier[row])
        if is_load[row] and barrier != NO_BARRIER and barrier < _BARRIERS:
            pending[barrier] += 1
            most = max(most, sum(pending))
    return most
