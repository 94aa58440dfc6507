"""Who is blamed for ``wait``: the stall count of the instruction just before, and the result that forced it.

From compute capability 7.0 on a result of fixed latency is waited for by time alone: the compiler gives the instructions between its def and
its use stall counts that add up to the latency. A ``wait`` sample sits on the instruction whose predecessor *in address order* has the stall
count: the program counter moves on to the next address when an instruction issues, also when that is a branch that will be taken (what
follows at its target is ``branch_resolving``).

Source: for the cause, "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025), stall counters; for the place, 32 kernels
of real reports: wait = issues × (stall count - 1) of the address before has a correlation of .92 to 1.00 in the first instructions of
basic blocks, of the predecessors in the flow graph one of -.3 to .7; of 535,791 samples 6 lie behind an instruction that never executed.
"""

from dataclasses import dataclass

import numpy as np

from gpa_lsp.blame.causes import Causes, build_cause_edges, list_edges
from gpa_lsp.blame.edge_list import Edge, Lost, build_edges
from gpa_lsp.blame.model import BlameEdges, Dependency
from gpa_lsp.blame.operands import NO_RESOURCE
from gpa_lsp.blame.stall_window import Producer, StallWindow
from gpa_lsp.blame.view import FunctionView
from gpa_lsp.blame.work import WorkBudget

REASON = "wait"


def blame_wait(view: FunctionView, budget: WorkBudget) -> tuple[list[Edge], list[Lost]]:
    """The causes of ``wait``, as objects; see :func:`find_wait_causes`. Nothing is ever lost."""
    return list(list_edges(find_wait_causes(view, budget))), []


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
    return build_cause_edges(
        view,
        reason,
        _gather(found),
        np.array([one.dependency for one in found], dtype=np.uint8),
        resource=np.array([one.producer.resource for one in found], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    use_row: int
    producer: Producer
    dependency: Dependency


def _find_cause(view: FunctionView, window: StallWindow, row: int) -> _Found:
    if not window.has_issuer(row):
        return _Found(row, Producer(row, NO_RESOURCE, 0, 0), Dependency.ITSELF)
    producer = window.find_producer(row)
    if producer is None:
        issuer = row - 1
        return _Found(row, Producer(issuer, NO_RESOURCE, int(view.stall_cycles[issuer]), 1), Dependency.ISSUE)
    is_guard = producer.resource == view.instructions.guard[row]
    return _Found(row, producer, Dependency.GUARD if is_guard else Dependency.READ_AFTER_WRITE)


def _gather(found: list[_Found]) -> Causes:
    return Causes(
        use_row=np.array([one.use_row for one in found], dtype=np.int64),
        def_row=np.array([one.producer.row for one in found], dtype=np.int64),
        share_ratio=np.ones(len(found)),
        cycles=np.array([one.producer.cycles for one in found], dtype=np.int64),
        instructions=np.array([one.producer.instructions for one in found], dtype=np.int64),
    )
