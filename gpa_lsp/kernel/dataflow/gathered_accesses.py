"""Accesses at addresses that were loaded, as of ``x[column[i]]``: :func:`mark_gathered`."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.code.binary.uses import parse_operand
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, MOVES, mark_accesses
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow
from gpa_lsp.kernel.model import KernelRows

_MOST_STEPS = 32  # Instructions of address arithmetic that are looked at for one access


def mark_gathered(kernel: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: global accesses whose address is made of a value that the same turn of their loop loads from global memory.

    A value that was loaded before the loop is where a row begins, and its elements lie side by side.
    """
    found = np.zeros(len(kernel), dtype=np.bool_)
    accesses, loads = (mark_accesses(kernel, GLOBAL_SPACES, kinds).tolist() for kinds in (MOVES, (Access.LOAD,)))
    for index, function in enumerate(kernel.functions):
        flow, graph = build_flow(kernel, index), function.graph
        if flow is None or graph is None:
            continue
        loops = graph.innermost_loop[graph.block_of_instruction].tolist()
        for row in range(len(flow)):
            if accesses[flow.first_row + row]:
                found[flow.first_row + row] = _is_gathered(flow, row, loops, loads)
    return found


def _is_gathered(flow: FunctionFlow, row: int, loops: list[int], loads: list[bool]) -> bool:
    address = next((one for one in flow.operands(row) if one.startswith(("[", "desc["))), None)
    if address is None:
        return False
    window = flow.rows_before(row)
    waiting = [(row, register) for register in parse_operand(address).expand(2)]
    seen = set(waiting)
    for _ in range(_MOST_STEPS):
        if not waiting:
            return False
        reader, register = waiting.pop()
        made = flow.find_def(reader, register, window)
        if made is None or loops[made] != loops[row]:
            continue
        if loads[flow.first_row + made]:
            return True
        if flow.opcode(made).memory is None:
            more = {(made, one) for one in flow.reads(made)} - seen
            seen |= more
            waiting += sorted(more)
    return False
