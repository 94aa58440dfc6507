"""Who is blamed for ``wait``: the stall count of the instruction just before, and the result that forced it.

From compute capability 7.0 on a result of fixed latency is waited for by time alone: the compiler gives the instructions between its def and
its use stall counts that add up to the latency. A ``wait`` sample sits on the instruction whose predecessor *in address order* has the stall
count: the program counter moves on to the next address when an instruction issues, also when that is a branch that will be taken (what
follows at its target is ``branch_resolving``).

Source: for the cause, "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025), stall counters. For the place, the kernels
of real reports with 100,000 samples: in the first instructions of basic blocks ``wait`` has a correlation of .89 to 1.00 with issues × (stall
count - 1) of the address before, and of -.2 to .5 with that of the predecessors in the flow graph; of 535,791 samples of all kernels 6 lie
behind an instruction that never executed.
"""

from typing import NamedTuple

import numpy as np

from gpa_lsp.blame.causes import Causes, build_cause_edges
from gpa_lsp.blame.edge_list import build_edges
from gpa_lsp.blame.model import BlameEdges, Dependency
from gpa_lsp.blame.operands import NO_RESOURCE
from gpa_lsp.blame.stall_window import StallWindow
from gpa_lsp.blame.view import FunctionView
from gpa_lsp.blame.work import WorkBudget

REASON = "wait"


def find_wait_causes(view: FunctionView, budget: WorkBudget) -> BlameEdges:
    """The causes of all ``wait`` samples, one for each instruction.

    The cause is the producer whose latency forced the stall count of the instruction at the address before; where there is none, that
    instruction itself, by its issue cost; and the sampled instruction where nothing issues before it (the first of a routine).

    Args:
        view: the function.
        budget: pays for the search of producers; without it the instruction before is blamed.

    Returns:
        The edges by use, groups counting from 0.
    """
    reason = view.reason_index(REASON)
    if reason is None:
        return build_edges([])
    window = StallWindow(view, budget)
    found = [_find_cause(view, window, row) for row in np.flatnonzero(view.all_samples[:, reason]).tolist()]
    columns = np.array(found, dtype=np.int64).reshape(-1, len(_Found._fields))
    use_row, def_row, dependency, resource, cycles, instructions = columns.T
    causes = Causes(
        use_row=use_row, def_row=def_row, share_ratio=np.ones(len(found)), cycles=cycles, instructions=instructions
    )
    return build_cause_edges(view, reason, causes, dependency.astype(np.uint8), resource=resource)


class _Found(NamedTuple):
    """A cause; fields as in an edge."""

    use_row: int
    def_row: int
    dependency: Dependency
    resource: int
    cycles: int
    instructions: int


def _find_cause(view: FunctionView, window: StallWindow, row: int) -> _Found:
    if not window.has_issuer(row):
        return _Found(row, row, Dependency.ITSELF, NO_RESOURCE, 0, 0)
    producer = window.find_producer(row)
    if producer is None:
        return _Found(row, row - 1, Dependency.ISSUE, NO_RESOURCE, int(view.stall_cycles[row - 1]), 1)
    is_guard = producer.resource == view.instructions.guard[row]
    dependency = Dependency.GUARD if is_guard else Dependency.READ_AFTER_WRITE
    return _Found(row, producer.row, dependency, producer.resource, producer.cycles, producer.instructions)
