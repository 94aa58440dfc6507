"""Who is blamed when a queue is full: whatever fills it, and the stalled instruction with its own part.

The queues in front of the shared units of an SM take the instructions of all its warps in turn. A load of one address that stands behind loads
of twenty lines each waits for them, not for itself, and is sampled all the same. So the samples of a throttle are divided among the
instructions of that queue around the stalled one (its innermost loop, inner loops included; outside loops its routine), each by the passes
it made through the unit: how often it issued times its passes per execution. The stalled instruction is one of them, whatever its kind: it
was seen in front of that queue. What weighs its own passes stays with it, on an edge to itself.

All of them fill the queue together, so they are one group: the shares are a convention, and the sums over a loop are what can be relied on.

A stall names no more than :data:`MOST_CAUSES` others, and no more than it has samples: the heaviest, and of equally heavy ones those near by
address. The part of those left out goes to those named, by their weights. Without executions nobody knows what fills a queue: then samples
stay with their instruction.

Source: conv2d of published reports, where 62 % of all samples sit on a load of one address per warp, behind one of 20 sectors per request.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.blame.causes import Causes, build_cause_edges, cause_themselves
from gpa_lsp.diagnosis.blame.model import BlameEdges, Dependency
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.instruction_kinds import find_kind
from gpa_lsp.kernel.dataflow.queues import QUEUES

MOST_CAUSES = 16  # Instructions beside itself that one stall is divided among

LEAST_CAUSES = 4  # The same in the largest functions

# Edges of one reason in a function, from which on stalls name fewer causes; more than that only by :data:`LEAST_CAUSES` for each stall
MOST_EDGES = 50_000

# Reason → the counter of what an access of its queue takes the unit: lines of global memory, wavefronts of shared memory
_PASSES = {
    "lg_throttle": "global_tag_requests",
    "mio_throttle": "shared_wavefronts",
    "tex_throttle": "global_tag_requests",
}

_Rows = npt.NDArray[np.int64]
_Weights = npt.NDArray[np.float64]


class _Queue(ColumnRecord, frozen=True, kw_only=True):
    """Who stands in a queue, in one function."""

    weights: _Weights  # float64[n], passes of each instruction through the unit, in any unit
    members: _Rows  # int64[m], its instructions that executed, ordered by scope, then address
    scopes: _Rows  # int64[m], of the members


def blame_queue(view: FunctionView, reason: int, executions: _Rows, budget: WorkBudget) -> BlameEdges:
    """The edges of the samples of one throttle.

    Args:
        executions: int64[n], of its instructions.
    """
    uses = np.flatnonzero(view.all_samples[:, reason])
    queue = _find_queue(view, view.reasons[reason], executions)
    most = min(MOST_CAUSES, max(LEAST_CAUSES, MOST_EDGES // len(uses)))
    samples = view.all_samples[:, reason]
    causes = _join(
        [
            _divide(inside, _choose(inside, members, samples, queue.weights, most), members, queue.weights)
            if budget.spend(len(members))
            else cause_themselves(inside)
            for inside, members in _list_scopes(view, uses, queue)
        ]
    )
    is_own = causes.use_row == causes.def_row
    dependency = np.where(is_own, Dependency.ITSELF, Dependency.QUEUE).astype(np.uint8)
    return build_cause_edges(view, reason, causes, dependency, is_together=True)


def _find_queue(view: FunctionView, reason: str, executions: _Rows) -> _Queue:
    kinds = QUEUES[reason]
    is_member = np.array([find_kind(name) in kinds for name in view.instructions.mnemonics], dtype=np.bool_)
    weights = np.where(executions > 0, view.issue_counts, 0.0)
    passes = view.counters.get(_PASSES[reason])
    if passes is not None:
        weights = weights * np.where((passes > 0) & (executions > 0), passes / np.maximum(executions, 1), 1.0)
    members = np.flatnonzero(is_member[view.instructions.mnemonic_index] & (weights > 0))
    scopes = _number_scopes(view)[members]
    order = np.argsort(scopes, kind="stable")
    return _Queue(weights=weights, members=members[order], scopes=scopes[order])


def _number_scopes(view: FunctionView) -> _Rows:
    """int64[n]: the innermost loop around each instruction; outside loops -1 and below, one number for each routine."""
    graph = view.graph
    of_block = np.where(graph.innermost_loop >= 0, graph.innermost_loop, -1 - graph.procedure_of_block)
    return of_block[graph.block_of_instruction].astype(np.int64)


def _list_scopes(view: FunctionView, uses: _Rows, queue: _Queue) -> Iterator[tuple[_Rows, _Rows]]:
    """The stalled instructions of each scope, and the members of the queue around them, both by address."""
    of_use = _number_scopes(view)[uses]
    routine_of = view.graph.procedure_of_block[view.graph.block_of_instruction]
    for scope in find_distinct(of_use).tolist():
        if scope >= 0:
            low, high = np.searchsorted(queue.scopes, (scope, view.graph.loops[scope].last_inner + 1)).tolist()
            around = np.sort(queue.members[low:high])
        else:
            around = np.sort(queue.members[routine_of[queue.members] == -1 - scope])
        yield uses[of_use == scope], around


def _divide(uses: _Rows, named: _Rows, members: _Rows, weights: _Weights) -> Causes:
    """Each stall's own part, by its weight among all members, and those of the members it names, by theirs."""
    own = weights[uses]
    belongs = np.zeros(len(weights), dtype=np.bool_)
    belongs[members] = True
    is_member = belongs[uses]
    total = float(weights[members].sum()) + np.where(is_member, 0.0, own)
    parts = np.where((named == uses[:, None]) | (named < 0), 0.0, weights[named])
    others = parts.sum(axis=1)
    own_ratio = np.where(others > 0, own / np.where(total > 0, total, 1.0), 1.0)
    shares = parts * ((1.0 - own_ratio) / np.where(others > 0, others, 1.0))[:, None]
    use, place = np.nonzero(shares > 0)
    unknown = np.full(len(use), -1, dtype=np.int64)
    moved = Causes(
        use_row=uses[use],
        def_row=named[use, place],
        share_ratio=shares[use, place],
        cycles=unknown,
        instructions=unknown,
    )
    themselves = cause_themselves(uses[own_ratio > 0])
    return _join([moved, themselves.share(own_ratio[own_ratio > 0])])


def _choose(uses: _Rows, members: _Rows, samples: _Rows, weights: _Weights, most: int) -> _Rows:
    """The members that each stall names, the heaviest first; see :func:`_divide`. The stall itself can be one of them."""
    near = _find_near(uses, members, weights[members], min(most, len(members)))
    named = np.take_along_axis(near, np.argsort(-weights[near], axis=1, kind="stable"), axis=1)
    return np.where(np.arange(named.shape[1]) < samples[uses][:, None], named, -1)


def _find_near(uses: _Rows, members: _Rows, weights: _Weights, wanted: int) -> _Rows:
    """int64[u, wanted]: for each use the heaviest members, of those that are equally heavy with the last a stretch of addresses around it."""
    if wanted == len(members):
        return np.broadcast_to(members, (len(uses), wanted))
    least = np.partition(weights, len(weights) - wanted)[len(weights) - wanted]
    sure, equal = members[weights > least], members[weights == least]
    places = wanted - len(sure)
    first = np.clip(np.searchsorted(equal, uses) - places // 2, 0, len(equal) - places)
    around = equal[first[:, None] + np.arange(places)]
    return np.concatenate([np.broadcast_to(sure, (len(uses), len(sure))), around], axis=1)


def _join(parts: list[Causes]) -> Causes:
    return Causes(
        use_row=np.concatenate([one.use_row for one in parts]),
        def_row=np.concatenate([one.def_row for one in parts]),
        share_ratio=np.concatenate([one.share_ratio for one in parts]),
        cycles=np.concatenate([one.cycles for one in parts]),
        instructions=np.concatenate([one.instructions for one in parts]),
    )
