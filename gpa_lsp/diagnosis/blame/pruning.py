"""The three published rules that take "cold" edges out of the dependency graph: opcode, dominator, latency.

Source: GPA section IV, "Prune cold edges", rules 1 to 3 (Figure 4c), and Figure 5 for what kinds of stalls an opcode can cause.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import product
from typing import NamedTuple

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.code.control_flow.graph import DominatorTree
from gpa_lsp.diagnosis.blame.categories import is_far_memory
from gpa_lsp.diagnosis.blame.def_use import DefUse, is_scoreboard
from gpa_lsp.diagnosis.blame.paths import ShortestPaths, find_components
from gpa_lsp.diagnosis.blame.view import STEPS_PER_BLOCK, Distance, FunctionView, WorkBudget
from gpa_lsp.gpu.arch.hazards import CycleBounds, ProducerGroup
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Producer, ScoreboardKind

UNBOUNDED = float("inf")

_Kinds = frozenset[tuple[int, bool]]  # Kinds of resources, each with whether it is the guard
_BEHIND_SCOREBOARD = (ScoreboardKind.LONG, ScoreboardKind.SHORT)


def bound_latency(architecture: Architecture | None, writer: str, reader: str, kinds: _Kinds) -> float:
    """Upper bound, in cycles, of the time a consumer waits for a result on an otherwise idle GPU.

    * Fixed latencies are those of the architecture's hazard tables, for the pair of opcodes; the longest of a pair's cases.
    * Variable ones are the upper bounds of the producer table: a global access that misses the TLB, as published; an access to another
      memory that has no figure of its own takes no longer.
    * An instruction of the memory input/output unit without a figure (shuffles, conversions, special registers) is taken to be answered
      within what the unit needs for a shared load with bank conflicts, its slowest.

    ``architecture``: its tables; None: nothing is bounded.

    Source: GPA section IV, rule 3.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> ampere = find_architecture((8, 6))
    >>> bound_latency(ampere, "IADD3", "FFMA", frozenset({(ResourceKind.REGISTER, False)}))
    5
    >>> bound_latency(ampere, "ISETP.LT.AND", "BRA", frozenset({(ResourceKind.PREDICATE, True)}))
    13
    >>> bound_latency(ampere, "LDG.E", "FFMA", frozenset()), bound_latency(ampere, "STG.E", "FFMA", frozenset())
    (1400.0, 1400.0)
    """
    if architecture is None:
        return UNBOUNDED
    producer = architecture.find_producer(writer)
    if producer is not None and producer.scoreboard.value in _BEHIND_SCOREBOARD:
        return _bound_variable(architecture, writer, producer)
    fixed = [
        bounds.high_cycles
        for kind, is_guard in kinds
        for bounds in _list_fixed(architecture, writer, reader, kind, is_guard)
    ]
    if producer is not None and producer.unloaded_max_cycles.value is not None:
        fixed.append(int(producer.unloaded_max_cycles.value))
    return max(fixed, default=UNBOUNDED)


def _bound_variable(architecture: Architecture, writer: str, producer: Producer) -> float:
    if producer.unloaded_max_cycles.value is not None:
        return producer.unloaded_max_cycles.value
    is_short = producer.scoreboard.value is ScoreboardKind.SHORT
    group = ProducerGroup.SHARED_LOAD if is_short else ProducerGroup.GLOBAL_LOAD
    if describe_mnemonic(writer).memory is None and not is_short:
        return UNBOUNDED
    bound = architecture.producers[group].unloaded_max_cycles.value
    return UNBOUNDED if bound is None else bound


def _list_fixed(
    architecture: Architecture, writer: str, reader: str, kind: int, is_guard: bool
) -> Iterator[CycleBounds]:
    """The bounds of all cases in which the reader can read a resource of this kind."""
    found: Iterable[CycleBounds | None]
    if kind == ResourceKind.REGISTER:
        found = (
            architecture.find_register_latency(
                writer, reader, result_register=result, source_operand=operand, source_register=register
            )
            for result, operand, register in product((0, 1), (0, 2), (0, 1))
        )
    elif kind == ResourceKind.PREDICATE:
        found = (architecture.find_predicate_latency(writer, reader, is_guard=is_guard),)
    elif kind == ResourceKind.UNIFORM_REGISTER:
        found = (architecture.find_uniform_latency(writer, reader, is_bindless=one) for one in (False, True))
    else:
        found = (architecture.find_uniform_predicate_latency(writer, reader, is_guard=is_guard),)
    return (bounds for bounds in found if bounds is not None)


class StallClass(IntEnum):
    """The published classes of stalls that another instruction causes."""

    MEMORY = 0
    EXECUTION = 1
    SYNCHRONISATION = 2


_CLASS_OF_REASON = {
    "long_scoreboard": StallClass.MEMORY,
    "short_scoreboard": StallClass.EXECUTION,
    "wait": StallClass.EXECUTION,
    "barrier": StallClass.SYNCHRONISATION,
    "membar": StallClass.SYNCHRONISATION,
    "warpgroup_arrive": StallClass.SYNCHRONISATION,
    "gmma": StallClass.SYNCHRONISATION,
}


def classify_reason(reason: str) -> StallClass | None:
    """The class of a stall reason in Nsight Compute's spelling; None where the sampled instruction itself is to blame.

    >>> classify_reason("wait").name, classify_reason("lg_throttle") is None
    ('EXECUTION', True)
    """
    return _CLASS_OF_REASON.get(reason)


class DependencyEdge(NamedTuple):
    """An edge of the dependency graph: a def, its use, and what of the def the use depends on."""

    def_row: int  # the def
    use_row: int  # the use
    # what the use needs of the def's results: registers, predicates, the scoreboard they release
    by_result: tuple[int, ...]
    # the scoreboard the def releases when it has read its operands; empty where the use does not wait for it
    by_operands: tuple[int, ...] = ()


def build_edge(def_use: DefUse, def_row: int, use_row: int, resources: tuple[int, ...]) -> DependencyEdge:
    """The edge of a def-use pair."""
    only_operands = def_use.operand_scoreboard[def_row]
    if only_operands not in resources:
        return DependencyEdge(def_row, use_row, resources)
    return DependencyEdge(def_row, use_row, tuple(one for one in resources if one != only_operands), (only_operands,))


def can_cause(opcode: Opcode, stall_class: StallClass, *, waits_for_operands: bool = False) -> bool:
    """Rule 1: whether an instruction can cause a stall of this class.

    Memory stalls come from instructions that access memory, synchronisation stalls from those that synchronise. Execution stalls come from
    all others, and from the reading of operands by any (write after read). A load of constants counts as either: newer hardware answers it
    elsewhere than the published one.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> [can_cause(describe_mnemonic(name), StallClass.MEMORY) for name in ("LDG.E", "LDC", "IMAD", "LDS")]
    [True, True, False, False]
    """
    if stall_class is StallClass.MEMORY:
        return is_far_memory(opcode)
    if stall_class is StallClass.EXECUTION:
        return waits_for_operands or not is_far_memory(opcode) or opcode.memory is MemorySpace.CONSTANT
    return opcode.synchronises is not None


class _MandatoryBlocks:
    """Answers for one function which blocks cannot be avoided on the way from one block to another.

    Dominators and post-dominators of the function decide most questions at once. Where they do not (within loops, mostly), two searches from
    both ends try to meet without the blocks asked for; the one that comes to its end first decides.
    """

    def __init__(self, view: FunctionView, budget: WorkBudget) -> None:
        graph = view.graph
        self._blocks, self._budget = view.blocks, budget
        self._known: dict[tuple[int, int, frozenset[int]], bool] = {}
        self._dominators = DominatorTree(graph.immediate_dominator.tolist())
        self._post_dominators = DominatorTree(graph.immediate_post_dominator.tolist())
        self._is_reachable: list[bool] = graph.is_reachable.tolist()
        self._reaches_end: list[bool] = graph.reaches_end.tolist()
        self._order = [0] * graph.block_count
        parts = find_components(range(graph.block_count), self._blocks.successors.__getitem__)
        for place, part in enumerate(parts):
            for block in part:
                self._order[block] = -place

    def is_separated(self, source: int, target: int, key: int, asked: Collection[int]) -> bool:
        """Whether one of some blocks dominates the target but not the source, or post-dominates the source but not the target.

        A way from an entry to the source that avoids such a block, and on to the target, must meet it after the source. It is enough to look at the
        nearest one: those farther up dominate it. ``key``: names ``asked``, so that what was found is remembered.
        """
        if self._is_reachable[source] and self._is_reachable[target]:
            nearest = self._dominators.find_nearest(key, self._dominators.parent[target], asked)
            if nearest >= 0 and not self._dominators.is_above(nearest, source):
                return True
        if self._reaches_end[source] and self._reaches_end[target]:
            nearest = self._post_dominators.find_nearest(key, self._post_dominators.parent[source], asked)
            return nearest >= 0 and not self._post_dominators.is_above(nearest, target)
        return False

    def has_any(self, source: int, target: int, path: Sequence[int], asked: Collection[int]) -> bool:
        """Whether one of some blocks lies on every path from the end of ``source`` to the start of ``target``.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        candidates = frozenset(block for block in path if block in asked)
        if not candidates or self._is_avoidable(source, target, candidates):
            return False
        return len(candidates) == 1 or any(
            not self._is_avoidable(source, target, frozenset([block])) for block in candidates
        )

    def _is_avoidable(self, source: int, target: int, asked: frozenset[int]) -> bool:
        """Whether some path avoids all of some blocks."""
        key = (source, target, asked)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._search(source, target, asked)
        return found

    def _search(self, source: int, target: int, asked: frozenset[int]) -> bool:
        """Two floods that take turns. A path from one cycle of the function to another only passes those that lie between in flow order."""
        order = self._order
        first, last = order[source], order[target]
        forwards = _Flood(self._blocks.successors, source, lambda block: order[block] <= last and block not in asked)
        backwards = _Flood(
            self._blocks.predecessors, target, lambda block: order[block] >= first and block not in asked
        )
        if target in self._blocks.successors[source]:
            return True
        while forwards.waiting and backwards.waiting:
            self._budget.charge(2 * STEPS_PER_BLOCK)
            if forwards.advance(backwards.met, target) or backwards.advance(forwards.met, source):
                return True
        return False


class _Flood:
    """A search that spreads from a block over its neighbours, level by level, one block at a time."""

    def __init__(self, neighbours: Sequence[Sequence[int]], start: int, is_allowed: Callable[[int], bool]) -> None:
        self._neighbours = neighbours
        self._is_allowed = is_allowed
        self._start = start
        self._place = 0
        self.met: set[int] = set()
        self.order = [start]

    @property
    def waiting(self) -> bool:
        """Blocks are left to look at."""
        return self._place < len(self.order)

    def advance(self, others: Collection[int], goal: int) -> bool:
        """Look at one more block; whether the search has met another one, or its goal."""
        block = self.order[self._place]
        self._place += 1
        for one in self._neighbours[block]:
            if one == goal or one in others:
                return True
            if one != self._start and one not in self.met and self._is_allowed(one):
                self.met.add(one)
                self.order.append(one)
        return False


class Pruner:
    """Rules 2 and 3 for one function.

    Args:
        paths: its shortest paths.
        budget: pays for the searches.
    """

    def __init__(self, view: FunctionView, def_use: DefUse, paths: ShortestPaths, budget: WorkBudget) -> None:
        self._view, self._blocks, self._def_use, self._paths = view, view.blocks, def_use, paths
        self._mandatory = _MandatoryBlocks(view, budget)
        self._latencies: dict[tuple[str, str, _Kinds], float] = {}
        self._using: dict[int, frozenset[int]] = {}
        self._writers: dict[int, tuple[int, ...]] = {}

    def prune(self, edge: DependencyEdge) -> tuple[DependencyEdge, Distance] | None:
        """Prune an edge: what is left of it, and the length of its shortest path; None when it is cold.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        for resource in edge.by_result:  # what dominators decide is known at once
            if self._is_separated(edge, resource):
                return None
        distance = self._paths.find(edge.def_row, edge.use_row, self.find_latency(edge))
        if distance is None:
            return None
        for resource in edge.by_result:
            if self._is_unavoidable(edge, resource):
                return None
        kept = self._drop_waits(edge)
        return None if kept is None else (kept, distance)

    def find_latency(self, edge: DependencyEdge) -> float:
        """Upper bound of the latency of an edge's def, in cycles; infinite where none is known."""
        guard = self._view.flow.guard_of[edge.use_row]
        kinds = frozenset(
            (resource >> 8, resource == guard) for resource in edge.by_result if not is_scoreboard(resource)
        )
        key = (self._view.mnemonic(edge.def_row), self._view.mnemonic(edge.use_row), kinds)
        bound = self._latencies.get(key)
        if bound is None:
            bound = self._latencies[key] = bound_latency(self._view.architecture, *key)
        return bound

    def find_reach(self, use_row: int, resource: int) -> float:
        """Largest number of instructions between a def of a resource and a use that it can still stall, by rule 3."""
        mnemonics = self._writers.get(resource)
        if mnemonics is None:
            rows = self._def_use.definitions.get(resource, ())
            mnemonics = self._writers[resource] = tuple({self._view.mnemonic(row): row for row in rows}.values())
        bounds = [self.find_latency(DependencyEdge(row, use_row, (resource,))) for row in mnemonics]
        return max(bounds, default=0)

    def _drop_waits(self, edge: DependencyEdge) -> DependencyEdge | None:
        """An edge without the operands whose reading another instruction on every path would have waited for."""
        if not edge.by_operands:
            return edge
        waits = tuple(one for one in edge.by_operands if not self.is_used_on_every_path(edge, one))
        if not edge.by_result and not waits:
            return None
        if waits == edge.by_operands:
            return edge
        return edge._replace(by_operands=waits)

    def is_used_on_every_path(self, edge: DependencyEdge, resource: int) -> bool:
        """Rule 2: whether one instruction without a guard uses a resource on every path from an edge's def to its use.

        What got past an instruction that used one of the def's results had them all; and its operands had been read before.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        return self._is_separated(edge, resource) or self._is_unavoidable(edge, resource)

    def _is_unavoidable(self, edge: DependencyEdge, resource: int) -> bool:
        """The same, where :meth:`_is_separated` says no."""
        blocks, def_row, use_row = self._blocks, edge.def_row, edge.use_row
        source, target = blocks.block_of[def_row], blocks.block_of[use_row]
        if (source == target and def_row < use_row) or resource not in self._def_use.plain_uses:
            return False
        if self._paths.find(def_row, use_row) is None:
            return False
        using = self._list_using_blocks(resource)
        between = self._paths.find_blocks_between(def_row, use_row)
        return not using.isdisjoint(between) and self._mandatory.has_any(source, target, between, using)

    def _is_separated(self, edge: DependencyEdge, resource: int) -> bool:
        """The same, as far as the blocks of def and use and the dominators show it."""
        users = self._def_use.plain_uses.get(resource)
        if users is None:
            return False
        blocks, def_row, use_row = self._blocks, edge.def_row, edge.use_row
        source, target = blocks.block_of[def_row], blocks.block_of[use_row]
        if source == target and def_row < use_row:
            return _has_any(users, def_row + 1, use_row)
        if _has_any(users, def_row + 1, blocks.last[source] + 1) or _has_any(users, blocks.first[target], use_row):
            return True
        return self._mandatory.is_separated(source, target, resource, self._list_using_blocks(resource))

    def _list_using_blocks(self, resource: int) -> frozenset[int]:
        """The blocks in which an instruction without a guard uses a resource."""
        found = self._using.get(resource)
        if found is None:
            users = self._def_use.plain_uses[resource]
            found = self._using[resource] = frozenset(map(self._blocks.block_of.__getitem__, users))
        return found


def _has_any(rows: Sequence[int], start: int, end: int) -> bool:
    place = bisect_left(rows, start)
    return place < len(rows) and rows[place] < end
