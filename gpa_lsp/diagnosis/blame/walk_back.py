"""Who is blamed for the stalls that have to do with neither a result nor a latency.

The sampled instruction is the *next* one a warp will issue, so what keeps it lies before it: the barrier it has arrived at, the branch that
is being resolved, the EXIT whose stores are still on their way. A full queue has those who fill it
(:mod:`~gpa_lsp.diagnosis.blame.queue_stalls`). All other reasons (a busy pipe, instruction fetch, constant misses, issue) and reasons this version
does
not know stay with the instruction.

Source: GPA section IV ("Attribute stalls") and what 42 launches of real reports show: ``barrier`` sits right behind the BAR in .977 of the
samples, at most six instructions behind it in .9995; ``branch_resolving`` right behind or at the target of a control instruction in .99;
``drain`` right behind an EXIT in all; ``misc`` right behind a BSSY or BSYNC in .81; ``dispatch_stall`` behind a wide or constant operand in
.61. There were no samples of ``membar``, ``warpgroup_arrive`` and ``sleeping`` in code at hand: those rules follow the first.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, Synchronisation
from gpa_lsp.code.binary.operands import OperandKind, parse_operand
from gpa_lsp.code.binary.sass import read_operands
from gpa_lsp.diagnosis.blame.causes import Causes, build_cause_edges, cause_themselves
from gpa_lsp.diagnosis.blame.edges import blame_themselves, join_edges, lose_samples
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency, Unattributed, UnattributedCause
from gpa_lsp.diagnosis.blame.nearest import NearestBefore
from gpa_lsp.diagnosis.blame.queue_stalls import blame_queue
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.kernel.dataflow.queues import QUEUES

# Reasons that depend on scoreboards and stall counts
BLAMED_ELSEWHERE = ("long_scoreboard", "short_scoreboard", "wait")

_DRAIN, _DISPATCH = "drain", "dispatch_stall"

# A warp may run on this many instructions behind a deferred barrier, so candidates on several ways that differ by no more are as near
_SPREAD = 6

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_Kind = Callable[[Opcode], bool]
_Lost = list[tuple[int, int, UnattributedCause]]  # (row, reason, why its samples have no cause)


class _Rule(Struct, frozen=True, kw_only=True):
    """Where the cause of a reason is looked for."""

    is_cause: _Kind  # what can be the cause
    dependency: Dependency = Dependency.SYNCHRONISATION  # of use and cause
    spread: int = _SPREAD  # see :class:`NearestBefore`
    reach: int | None = None  # see :class:`NearestBefore`
    keeps: bool = False  # instructions without such a cause keep the samples; otherwise nobody has them
    # places that no control flow reaches (filler behind an EXIT or RET) have the cause before them in address order
    by_address: bool = False


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
        if name not in (*BLAMED_ELSEWHERE, *_RULES, _DRAIN, _DISPATCH)
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
    found, missing = NearestBefore(view, wanted, budget, spread=rule.spread, reach=rule.reach).find(rows)
    causes.append(found)
    edges = [build_cause_edges(view, reason, one, rule.dependency) for one in causes if len(one)]
    return [*edges, *_settle_missing(view, reason, missing, budget, None if rule.keeps else lost)]


def _settle_missing(
    view: FunctionView, reason: int, rows: _Rows, budget: WorkBudget, lost: _Lost | None
) -> list[BlameEdges]:
    """Rows without a cause keep their samples, or lose them where there is a list for those."""
    if lost is None:
        return [build_cause_edges(view, reason, cause_themselves(rows), Dependency.ITSELF)] if len(rows) else []
    cause = UnattributedCause.WORK_BOUND if budget.is_exhausted else UnattributedCause.NO_PRODUCER
    lost += [(row, reason, cause) for row in rows.tolist()]
    return []


def _mark(view: FunctionView, is_wanted: _Kind) -> _Bools:
    """bool[n], the instructions whose opcode is of a kind."""
    by_mnemonic = np.array([is_wanted(opcode) for opcode in view.opcodes], dtype=np.bool_)
    marked: _Bools = by_mnemonic[view.instructions.mnemonic_index]
    return marked


def _find_by_address(view: FunctionView, rows: _Rows, wanted: _Bools) -> tuple[Causes, _Rows]:
    """The last wanted instruction before each row by address, and the rows without one.

    No control flow leads from one to the other, so distances are known for neighbours only.
    """
    latest = np.maximum.accumulate(np.where(wanted, np.arange(len(wanted)), -1))
    before = np.concatenate([[-1], latest])[rows]
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
    stores, alone = NearestBefore(view, _mark(view, changes_outer_memory), budget).find(find_distinct(exits.def_row))
    edges = [
        build_cause_edges(view, reason, causes, Dependency.SYNCHRONISATION)
        for causes in (_chain(exits, stores), exits.select(np.isin(exits.def_row, alone)))
        if len(causes)
    ]
    return [*edges, *_settle_missing(view, reason, missing, budget, lost)]


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
    wanted = _mark(view, _is_wide) | _mark_constant_operands(view)
    found, missing = NearestBefore(view, wanted, budget, reach=1).find(rows)
    return [
        build_cause_edges(view, reason, causes, dependency, category=BlameCategory.DISPATCH)
        for causes, dependency in ((found, Dependency.ISSUE), (cause_themselves(missing), Dependency.ITSELF))
        if len(causes)
    ]


def _is_wide(opcode: Opcode) -> bool:
    """Whether its result is several registers and comes from arithmetic."""
    width = opcode.widths[0] if opcode.widths and opcode.results else 1
    return opcode.memory is None and isinstance(width, int) and width > 1


def _mark_constant_operands(view: FunctionView) -> _Bools:
    """bool[n], instructions that name a place in constant memory as an operand."""
    return _mark(view, _is_no_access) & np.array([_names_constant(text) for text in view.instructions.texts], np.bool_)


def _is_no_access(opcode: Opcode) -> bool:
    return opcode.memory is None


@lru_cache(maxsize=1 << 13)
def _names_constant(text: str) -> bool:
    return any(parse_operand(token).kind == OperandKind.INDIRECT for token in read_operands(text))
