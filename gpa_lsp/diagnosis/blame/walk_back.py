"""Causes of the stalls that depend on neither a result nor a latency.

The sampled instruction is the *next* one a warp will issue, so the cause lies before it: the barrier it has arrived at, the branch that is being
resolved, the EXIT whose stores are still on their way. A full queue is caused by the instructions that fill it. All other reasons (a busy pipe,
instruction fetch, constant misses, issue) and unknown reasons stay with the instruction.

Source: GPA section IV ("Attribute stalls") and what 42 launches of real reports show: ``barrier`` sits right behind the BAR in .977 of the
samples, at most six instructions behind it in .9995; ``branch_resolving`` right behind or at the target of a control instruction in .99;
``drain`` right behind an EXIT in all; ``misc`` right behind a BSSY or BSYNC in .81; ``dispatch_stall`` behind a wide or constant operand in
.61. There were no samples of ``membar``, ``warpgroup_arrive`` and ``sleeping`` in code at hand: those rules follow the first.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, Synchronisation
from gpa_lsp.code.binary.sass import read_operands
from gpa_lsp.code.binary.uses import OperandKind, parse_operand
from gpa_lsp.diagnosis.blame.categories import DEPENDENCY_REASONS
from gpa_lsp.diagnosis.blame.edges import (
    Causes,
    blame_themselves,
    build_edges,
    cause_themselves,
    join_edges,
    lose_samples,
)
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency, Unattributed, UnattributedCause
from gpa_lsp.diagnosis.blame.view import FunctionView, WorkBudget
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.kernel.dataflow.instruction_kinds import QUEUES, find_kind

MOST_CAUSES = 16  # Other instructions that one stall is divided among

LEAST_CAUSES = 4  # The same in the largest functions

# Edges of one reason in a function from which on stalls name fewer causes, down to :data:`LEAST_CAUSES` each
MOST_EDGES = 50_000

# Reason → the counter of an access's passes through the unit: lines of global memory, wavefronts of shared memory
_PASSES = {
    "lg_throttle": "global_tag_requests",
    "mio_throttle": "shared_wavefronts",
    "tex_throttle": "global_tag_requests",
}

_Rows = npt.NDArray[np.int64]
_Weights = npt.NDArray[np.float64]


def blame_queue(view: FunctionView, reason: int, executions: _Rows, budget: WorkBudget) -> BlameEdges:
    """Build the edges of one throttle's samples: to the instructions that fill the queue, the stalled one included.

    The queues in front of the shared units of an SM take the instructions of all its warps in turn. A load of one address that stands behind loads
    of twenty lines each stalls on them. So the samples of a throttle are divided among the instructions of that queue around the stalled one (its
    innermost loop, inner loops included; outside loops its routine), each by its passes through the unit: how often it issued times its passes per
    execution. The stalled instruction is one of them, of any kind, and keeps the share of its own passes on an edge to itself.

    All of them fill the queue together, so they are one group: the shares are a convention, while the sums over a loop are reliable.

    A stall names no more than :data:`MOST_CAUSES` others, and no more than it has samples: the heaviest, and of equally heavy ones those near by
    address. The part of those left out goes to those named, by their weights. Without executions the contents of a queue are unknown, and samples
    stay with their instruction.

    Source: conv2d of published reports, where 62 % of all samples sit on a load of one address per warp, behind one of 20 sectors per request.

    ``executions``: int64[n], of its instructions.
    """
    samples = view.all_samples[:, reason]
    uses = np.flatnonzero(samples)
    weights, members = _find_queue(view, view.reasons[reason], executions)
    most = min(MOST_CAUSES, max(LEAST_CAUSES, MOST_EDGES // len(uses)))
    causes = Causes.join(
        _divide(inside, _choose(inside, around, samples, weights, most), around, weights)
        if budget.spend(len(around))
        else cause_themselves(inside)
        for inside, around in _list_scopes(view, uses, members)
    )
    is_own = causes.use_row == causes.def_row
    dependency = np.where(is_own, Dependency.ITSELF, Dependency.QUEUE).astype(np.uint8)
    return build_edges(view, reason, causes, dependency, is_together=True)


def _find_queue(view: FunctionView, reason: str, executions: _Rows) -> tuple[_Weights, _Rows]:
    """float64[n], passes of each instruction through the unit, in any unit; and int64[m], the queue's instructions that executed."""
    kinds = QUEUES[reason]
    is_member = np.array([find_kind(name) in kinds for name in view.instructions.mnemonics], dtype=np.bool_)
    weights = np.where(executions > 0, view.issue_counts, 0.0)
    passes = view.counters.get(_PASSES[reason])
    if passes is not None:
        weights = weights * np.where((passes > 0) & (executions > 0), passes / np.maximum(executions, 1), 1.0)
    return weights, np.flatnonzero(is_member[view.instructions.mnemonic_index] & (weights > 0))


def _number_scopes(view: FunctionView) -> _Rows:
    """int64[n]: the innermost loop around each instruction; outside loops -1 and below, one number for each routine."""
    graph = view.graph
    of_block = np.where(graph.innermost_loop >= 0, graph.innermost_loop, -1 - graph.procedure_of_block)
    return of_block[graph.block_of_instruction].astype(np.int64)


def _list_scopes(view: FunctionView, uses: _Rows, members: _Rows) -> Iterator[tuple[_Rows, _Rows]]:
    """The stalled instructions of each scope, and the members of the queue around them, both by address."""
    scope_of = _number_scopes(view)
    of_member = scope_of[members]
    order = np.argsort(of_member, kind="stable")
    ordered = of_member[order]
    routine_of = view.graph.procedure_of_block[view.graph.block_of_instruction]
    for scope in find_distinct(scope_of[uses]).tolist():
        if scope >= 0:
            low, high = np.searchsorted(ordered, (scope, view.graph.loops[scope].last_inner + 1)).tolist()
            around = np.sort(members[order[low:high]])
        else:
            around = members[routine_of[members] == -1 - scope]
        yield uses[scope_of[uses] == scope], around


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
    return Causes.join([moved, cause_themselves(uses[own_ratio > 0], own_ratio[own_ratio > 0])])


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


MOST_CANDIDATES = 4  # Candidates that are kept for one place: the nearest ones, each on a path of its own

_DRAIN, _DISPATCH = "drain", "dispatch_stall"

# A warp may issue this many instructions behind a deferred barrier, so candidates on several paths that differ by no more are equally near
_SPREAD = 6

_Bools = npt.NDArray[np.bool_]
_Kind = Callable[[Opcode], bool]
_Lost = list[tuple[int, int, UnattributedCause]]  # row, reason, and why the samples have no cause


class _Rule(Struct, frozen=True, kw_only=True):
    """Rule that finds the causes of one reason."""

    is_cause: _Kind  # what can be the cause
    dependency: Dependency = Dependency.SYNCHRONISATION  # of use and cause
    spread: int = _SPREAD  # see :class:`_NearestBefore`
    reach: int | None = None  # see :class:`_NearestBefore`
    # instructions without such a cause keep the samples; otherwise only those that synchronise themselves do, and other samples have no cause
    keeps: bool = False
    # places that no control flow reaches (filler behind an EXIT or RET) have the cause before them in address order
    by_address: bool = False


class _NearestBefore:
    """The instructions of a kind that precede a row of a function nearest in flow.

    Distances are in instructions, and of equally near ways the one with the fewest encoded cycles counts. A call is stepped over, and a local
    routine is entered from the calls in its section.

    Args:
        wanted: bool[n], the kind.
        spread: candidates on other ways count as near when they are at most so many instructions farther than the nearest.
        reach: candidates farther than this do not count; None for no limit.
        budget: pays a step per block and candidate.
    """

    def __init__(
        self, view: FunctionView, wanted: _Bools, budget: WorkBudget, *, spread: int = 0, reach: int | None = None
    ) -> None:
        self._view, self._blocks, self._budget = view, view.blocks, budget
        self._spread, self._reach = spread, len(view) + 1 if reach is None else reach
        self._before = _find_last_before(wanted)
        self._first = view.graph.first_instruction.astype(np.int64)
        self._block_of = view.graph.block_of_instruction.astype(np.int64)
        self._cycles_before: _Rows = np.array(self._blocks.cycles_before)

    def find(self, rows: _Rows) -> tuple[Causes, _Rows]:
        """The nearest candidates before some rows, sharing by their issue counts, and the rows without any.

        ``rows``: int64[r], unique.
        """
        before = self._before[rows]
        is_inside = before >= self._first[self._block_of[rows]]
        is_near = is_inside & (rows - before <= self._reach)
        use_row, def_row = rows[is_near], before[is_near]
        inside = Causes(
            use_row=use_row,
            def_row=def_row,
            share_ratio=np.ones(len(use_row)),
            cycles=self._cycles_before[use_row] - self._cycles_before[def_row],
            instructions=use_row - def_row,
        )
        if is_inside.all():
            return inside, rows[~is_near]
        found, missing = self._find_across(rows[~is_inside])
        return Causes.join([inside, found]), np.concatenate([rows[is_inside & ~is_near], missing])

    def _find_across(self, rows: _Rows) -> tuple[Causes, _Rows]:
        """Find causes of rows with no candidate before them in their block."""
        reaching = self._spread_from_blocks()
        blocks = self._block_of[rows]
        found = [(place, *one) for place, block in enumerate(blocks.tolist()) for one in reaching[block]]
        place, instructions, cycles, def_row = np.array(found, dtype=np.int64).reshape(-1, 4).T
        starts = self._first[blocks]
        instructions = instructions + (rows - starts)[place]
        cycles = cycles + (self._cycles_before[rows] - self._cycles_before[starts])[place]
        is_near = instructions <= self._reach
        place, def_row = place[is_near], def_row[is_near]
        weights = self._view.issue_counts[def_row]
        total = np.bincount(place, weights=weights, minlength=len(rows))[place]
        count = np.bincount(place, minlength=len(rows))
        causes = Causes(
            use_row=rows[place],
            def_row=def_row,
            share_ratio=np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1.0 / count[place]),
            cycles=cycles[is_near],
            instructions=instructions[is_near],
        )
        return causes, rows[count == 0]

    def _spread_from_blocks(self) -> list[list[tuple[int, int, int]]]:
        """Find for each block the candidates that reach its first instruction, nearest first: a search from all of them at once.

        Each with the instructions and cycles to there, and its row.
        """
        first, last, cycles_before = self._blocks.first, self._blocks.last, self._blocks.cycles_before
        successors, before = _list_successors(self._view), self._before.tolist()
        reaching: list[list[tuple[int, int, int]]] = [[] for _ in first]
        heap: list[tuple[int, int, int, int]] = []
        for block, end in enumerate(last):
            row = before[end + 1]
            if row >= first[block] and end - row < self._reach:
                cycles = cycles_before[end + 1] - cycles_before[row]
                heap += [(end - row + 1, cycles, row, successor) for successor in successors[block]]
        heapify(heap)
        while heap and self._budget.spend(1):
            instructions, cycles, row, block = heappop(heap)
            known = reaching[block]
            if known and (
                len(known) >= MOST_CANDIDATES
                or instructions > known[0][0] + self._spread
                or any(row == one[2] for one in known)
            ):
                continue
            known.append((instructions, cycles, row))
            length = last[block] + 1 - first[block]
            if before[last[block] + 1] >= first[block] or instructions + length > self._reach:
                continue
            cycles += cycles_before[last[block] + 1] - cycles_before[first[block]]
            for successor in successors[block]:
                heappush(heap, (instructions + length, cycles, row, successor))
        return reaching


def _list_successors(view: FunctionView) -> list[list[int]]:
    """List for each block the blocks that can follow it, and the routine of this section that it calls."""
    successors = [*map(list, view.blocks.successors)]
    for call in view.graph.calls:
        if call.callee_procedure is not None:
            entry = view.graph.procedures[call.callee_procedure].entry_block
            successors[view.blocks.block_of[call.instruction]].append(entry)
    return successors


def _waits_for(*kinds: Synchronisation) -> _Kind:
    return lambda opcode: opcode.synchronises in kinds


def is_control(opcode: Opcode) -> bool:
    """Whether threads can part, meet or go elsewhere at this instruction."""
    return opcode.flow != Flow.NONE or opcode.synchronises in (Synchronisation.SLEEP, Synchronisation.WARP)


def changes_outer_memory(opcode: Opcode) -> bool:
    """Whether the instruction writes to memory outside the SM, which an exiting warp waits for."""
    return opcode.access in (Access.STORE, Access.REDUCTION, Access.ATOMIC) and opcode.memory in (
        MemorySpace.GLOBAL,
        MemorySpace.GENERIC,
        MemorySpace.LOCAL,
        MemorySpace.SURFACE,
    )


_RULES = {
    "barrier": _Rule(is_cause=_waits_for(Synchronisation.BLOCK)),
    "membar": _Rule(is_cause=_waits_for(Synchronisation.FENCE)),
    "warpgroup_arrive": _Rule(is_cause=_waits_for(Synchronisation.WARPGROUP)),
    "gmma": _Rule(is_cause=_waits_for(Synchronisation.WARPGROUP)),
    "sleeping": _Rule(is_cause=_waits_for(Synchronisation.SLEEP), keeps=True),
    "branch_resolving": _Rule(is_cause=is_control, dependency=Dependency.CONTROL, spread=0, by_address=True),
    "misc": _Rule(is_cause=is_control, dependency=Dependency.CONTROL, spread=0, reach=1, keeps=True, by_address=True),
}


def find_other_causes(view: FunctionView, budget: WorkBudget) -> tuple[BlameEdges, Unattributed]:
    """The causes of all samples but those of scoreboards and ``wait``.

    Where control can have come from several causes that are about equally near, they share by their issue counts.
    """
    lost: _Lost = []
    staying = [
        reason
        for reason, name in enumerate(view.reasons)
        if name not in (*DEPENDENCY_REASONS, *_RULES, _DRAIN, _DISPATCH)
        and (name not in QUEUES or view.executions is None)
    ]
    parts = [blame_themselves(view, staying)]
    for reason, name in enumerate(view.reasons):
        rows = np.flatnonzero(view.all_samples[:, reason])
        if len(rows) == 0:
            continue
        if name in _RULES:
            parts += _blame_by_rule(view, reason, rows, budget, lost)
        elif name in QUEUES and view.executions is not None:
            parts.append(blame_queue(view, reason, view.executions, budget))
        elif name == _DRAIN:
            parts += _blame_drain(view, reason, rows, budget, lost)
        elif name == _DISPATCH:
            parts += _blame_dispatch(view, reason, rows, budget)
    return join_edges((part, 0) for part in parts), lose_samples(view, lost)


def _blame_by_rule(view: FunctionView, reason: int, rows: _Rows, budget: WorkBudget, lost: _Lost) -> list[BlameEdges]:
    rule = _RULES[view.reasons[reason]]
    wanted = _mark(view, rule.is_cause)
    causes: list[Causes] = []
    if rule.by_address:
        is_filler = ~view.graph.is_reachable[view.graph.block_of_instruction[rows]]
        behind, others = _find_by_address(view, rows[is_filler], wanted)
        causes.append(behind)
        rows = np.concatenate([rows[~is_filler], others])
    found, missing = _NearestBefore(view, wanted, budget, spread=rule.spread, reach=rule.reach).find(rows)
    causes.append(found)
    # No barrier leads to the first one: a warp that is sampled there waits at it.
    keeps = np.full(len(missing), rule.keeps) | (wanted[missing] & (rule.dependency is Dependency.SYNCHRONISATION))
    lost += _lose(missing[~keeps], reason, budget)
    edges = [build_edges(view, reason, one, rule.dependency) for one in causes]
    return [*edges, build_edges(view, reason, cause_themselves(missing[keeps]), Dependency.ITSELF)]


def _lose(rows: _Rows, reason: int, budget: WorkBudget) -> _Lost:
    cause = UnattributedCause.WORK_BOUND if budget.is_exhausted else UnattributedCause.NO_PRODUCER
    return [(row, reason, cause) for row in rows.tolist()]


def _mark(view: FunctionView, is_wanted: _Kind) -> _Bools:
    """bool[n], the instructions whose opcode is of a kind."""
    by_mnemonic = np.array([is_wanted(opcode) for opcode in view.flow.opcodes], dtype=np.bool_)
    marked: _Bools = by_mnemonic[view.instructions.mnemonic_index]
    return marked


def _find_last_before(wanted: _Bools) -> _Rows:
    """int64[n + 1], the last wanted row by address before each row; -1 where there is none."""
    return np.concatenate([[-1], np.maximum.accumulate(np.where(wanted, np.arange(len(wanted)), -1))])


def _find_by_address(view: FunctionView, rows: _Rows, wanted: _Bools) -> tuple[Causes, _Rows]:
    """The last wanted instruction before each row by address, and the rows without one.

    No control flow leads from one to the other, so distances are known for neighbours only.
    """
    before = _find_last_before(wanted)[rows]
    has_one = before >= 0
    use_row, def_row = rows[has_one], before[has_one]
    is_next = use_row - def_row == 1
    causes = Causes(
        use_row=use_row,
        def_row=def_row,
        share_ratio=np.ones(len(use_row)),
        cycles=np.where(is_next, view.stall_cycles[def_row], -1),
        instructions=np.where(is_next, 1, -1),
    )
    return causes, rows[~has_one]


def _blame_drain(view: FunctionView, reason: int, rows: _Rows, budget: WorkBudget, lost: _Lost) -> list[BlameEdges]:
    """The EXIT before each row by address, and of that the last stores in flow; an EXIT without one is the cause itself."""
    exits, missing = _find_by_address(view, rows, _mark(view, lambda opcode: opcode.flow == Flow.EXIT))
    stores, alone = _NearestBefore(view, _mark(view, changes_outer_memory), budget).find(find_distinct(exits.def_row))
    lost += _lose(missing, reason, budget)
    return [
        build_edges(view, reason, causes, Dependency.SYNCHRONISATION)
        for causes in (_chain(exits, stores), exits.select(np.isin(exits.def_row, alone)))
    ]


def _chain(causes: Causes, earlier: Causes) -> Causes:
    """The causes of the causes: uses of the first, defs of the second. A use whose cause has none is left out."""
    order = np.argsort(earlier.use_row, kind="stable")
    low = np.searchsorted(earlier.use_row[order], causes.def_row, side="left")
    count = np.searchsorted(earlier.use_row[order], causes.def_row, side="right") - low
    use = np.repeat(np.arange(len(causes)), count)
    picked = order[np.arange(len(use)) - np.repeat(np.cumsum(count) - count - low, count)]
    is_known = causes.instructions[use] >= 0
    return Causes(
        use_row=causes.use_row[use],
        def_row=earlier.def_row[picked],
        share_ratio=causes.share_ratio[use] * earlier.share_ratio[picked],
        cycles=np.where(is_known, causes.cycles[use] + earlier.cycles[picked], -1),
        instructions=np.where(is_known, causes.instructions[use] + earlier.instructions[picked], -1),
    )


def _blame_dispatch(view: FunctionView, reason: int, rows: _Rows, budget: WorkBudget) -> list[BlameEdges]:
    """A hint: the instruction just before, where it is wide or has a constant operand; else the instruction itself."""
    wanted = _mark(view, _is_wide)
    no_access = _mark(view, lambda opcode: opcode.memory is None)
    wanted |= no_access & np.array([_names_constant(text) for text in view.instructions.texts], dtype=np.bool_)
    found, missing = _NearestBefore(view, wanted, budget, reach=1).find(rows)
    return [
        build_edges(view, reason, causes, dependency, category=BlameCategory.DISPATCH)
        for causes, dependency in ((found, Dependency.ISSUE), (cause_themselves(missing), Dependency.ITSELF))
    ]


def _is_wide(opcode: Opcode) -> bool:
    """Whether its result is several registers and comes from arithmetic."""
    width = opcode.widths[0] if opcode.widths and opcode.results else 1
    return opcode.memory is None and isinstance(width, int) and width > 1


@lru_cache(maxsize=1 << 13)
def _names_constant(text: str) -> bool:
    """Whether an instruction names a place in constant memory as an operand."""
    return any(parse_operand(token).kind == OperandKind.INDIRECT for token in read_operands(text))
