"""Control flow between the blocks of a function section, calls inside the section followed: in at the callee's entry, back from its returns."""

from collections import defaultdict
from itertools import pairwise

import numpy as np

from gpa_lsp.code.binary.model import Flow, Instructions
from gpa_lsp.code.control_flow.model import EdgeKind, FlowGraph


class CallFlow:
    """Steps between blocks.

    A call whose callee is a routine of the section is no step to the next address, unless it is guarded; the callee's returns lead there.
    Calls of unknown or outside routines, and of routines that never return, are stepped over.

    Attributes:
        successors: per block, the blocks that can follow it other than by a call or a return.
        callee_of: block that ends in a followed call → number of the procedure called.
        callers_of: procedure → blocks that call it.
        return_sites_of: procedure → blocks that its returns lead to.
        site_of: block that ends in a followed call → the block its callee returns to.
        returns_from: block that ends in RET → number of a procedure that is called.

    Approximation: a RET belongs to the procedure it stands in, by address.
    """

    __slots__ = ("callee_of", "callers_of", "return_sites_of", "returns_from", "site_of", "successors")

    def __init__(self, graph: FlowGraph, instructions: Instructions) -> None:
        starts, targets = graph.successor_starts.tolist(), graph.edge_target.tolist()
        self.successors: list[list[int]] = [targets[low:high] for low, high in pairwise(starts)]
        self.callee_of: dict[int, int] = {}
        self.callers_of: dict[int, list[int]] = defaultdict(list)
        self.return_sites_of: dict[int, list[int]] = defaultdict(list)
        self.site_of: dict[int, int] = {}
        self.returns_from: dict[int, int] = {}
        if any(call.callee_procedure is not None for call in graph.calls):
            self._follow_calls(graph, instructions)

    def _follow_calls(self, graph: FlowGraph, instructions: Instructions) -> None:
        returns = np.flatnonzero(graph.terminator == Flow.RETURN)
        procedure_of = dict(zip(returns.tolist(), graph.procedure_of_block[returns].tolist(), strict=True))
        returning = set(procedure_of.values())
        sites = {
            int(graph.edge_source[edge]): int(graph.edge_target[edge])
            for edge in np.flatnonzero(graph.edge_kind == EdgeKind.CALL_RETURN).tolist()
        }
        for call in graph.calls:
            callee, block = call.callee_procedure, int(graph.block_of_instruction[call.instruction])
            if callee is None or callee not in returning or block not in sites:
                continue
            site = self.site_of[block] = sites[block]
            self.callee_of[block] = callee
            self.callers_of[callee].append(block)
            self.return_sites_of[callee].append(site)
            if instructions.guard[call.instruction] < 0:
                self.successors[block] = [other for other in self.successors[block] if other != site]
        self.returns_from = {block: callee for block, callee in procedure_of.items() if callee in self.callers_of}

    def steps_from(self, graph: FlowGraph, block: int) -> list[int]:
        """The blocks that can follow ``block``; a return leads back to every call of its routine."""
        steps = self.successors[block]
        if block in self.callee_of:
            steps = [*steps, graph.procedures[self.callee_of[block]].entry_block]
        if block in self.returns_from:
            steps = [*steps, *self.return_sites_of[self.returns_from[block]]]
        return steps
