"""The three published rules that take "cold" edges out of the dependency graph: opcode, dominator, latency.

Source: GPA section IV, "Prune cold edges", rules 1 to 3 (Figure 4c), and Figure 5 for what kinds of stalls an opcode can cause.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import product
from typing import NamedTuple

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.diagnosis.blame.def_use import DefUse, is_scoreboard
from gpa_lsp.diagnosis.blame.graph_search import BlockLists
from gpa_lsp.diagnosis.blame.mandatory_blocks import MandatoryBlocks
from gpa_lsp.diagnosis.blame.shortest_paths import Distance, ShortestPaths
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.gpu.arch.hazards import CycleBounds, ProducerGroup
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Producer, ScoreboardKind

UNBOUNDED = float("inf")

_Kinds = frozenset[tuple[ResourceKind, bool]]
_BEHIND_SCOREBOARD = (ScoreboardKind.LONG, ScoreboardKind.SHORT)


class LatencyBounds:
    """How long the consumer of a result may have to wait for it, at most, with nothing else going on.

    * Fixed latencies are those of the architecture's hazard tables, for the pair of opcodes; the longest of a pair's cases.
    * Variable ones are the upper bounds of the producer table: a global access that misses the TLB, as published; an access to another
      memory that has no figure of its own takes no longer.
    * An instruction of the memory input/output unit without a figure (shuffles, conversions, special registers) is taken to be answered
      within what the unit needs for a shared load with bank conflicts, its slowest.

    Args:
        architecture: its tables; None: nothing is bounded.

    Source: GPA section IV, rule 3.
    """

    __slots__ = ("_architecture", "_known")

    def __init__(self, architecture: Architecture | None) -> None:
        self._architecture = architecture
        self._known: dict[tuple[str, str, _Kinds], float] = {}

    def find(self, writer: str, reader: str, kinds: _Kinds) -> float:
        """The bound for a pair of mnemonics, in cycles.

        >>> from gpa_lsp.gpu.arch.lookup import find_architecture
        >>> bounds = LatencyBounds(find_architecture((8, 6)))
        >>> bounds.find("IADD3", "FFMA", frozenset({(ResourceKind.REGISTER, False)}))
        5
        >>> bounds.find("ISETP.LT.AND", "BRA", frozenset({(ResourceKind.PREDICATE, True)}))
        13
        >>> bounds.find("LDG.E", "FFMA", frozenset()), bounds.find("STG.E", "FFMA", frozenset())
        (1400.0, 1400.0)
        """
        key = (writer, reader, kinds)
        bound = self._known.get(key)
        if bound is None:
            bound = self._known[key] = UNBOUNDED if self._architecture is None else self._find(self._architecture, *key)
        return bound

    def _find(self, architecture: Architecture, writer: str, reader: str, kinds: _Kinds) -> float:
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
    architecture: Architecture, writer: str, reader: str, kind: ResourceKind, is_guard: bool
) -> Iterator[CycleBounds]:
    """The bounds of all cases in which the reader can read a resource of this kind."""
    found: Iterable[CycleBounds | None]
    if kind is ResourceKind.REGISTER:
        found = (
            architecture.find_register_latency(
                writer, reader, result_register=result, source_operand=operand, source_register=register
            )
            for result, operand, register in product((0, 1), (0, 2), (0, 1))
        )
    elif kind is ResourceKind.PREDICATE:
        found = (architecture.find_predicate_latency(writer, reader, is_guard=is_guard),)
    elif kind is ResourceKind.UNIFORM_REGISTER:
        found = (architecture.find_uniform_latency(writer, reader, is_bindless=one) for one in (False, True))
    else:
        found = (architecture.find_uniform_predicate_latency(writer, reader, is_guard=is_guard),)
    return (bounds for bounds in found if bounds is not None)


# Memories behind memory dependencies. Shared memory is an execution dependency, as Figure 5 has it.
FAR_MEMORY = frozenset(
    {
        MemorySpace.GLOBAL,
        MemorySpace.GENERIC,
        MemorySpace.LOCAL,
        MemorySpace.CONSTANT,
        MemorySpace.TEXTURE,
        MemorySpace.SURFACE,
    }
)


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


def is_far_memory(opcode: Opcode) -> bool:
    """Whether an instruction accesses memory other than shared memory.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> [is_far_memory(describe_mnemonic(name)) for name in ("LDG.E", "LDS", "SHFL.BFLY", "FFMA")]
    [True, False, False, False]
    """
    return opcode.memory in FAR_MEMORY


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


class Pruner:
    """Rules 2 and 3 for one function.

    Args:
        view: the function.
        blocks: its blocks.
        def_use: its defs and uses.
        paths: its shortest paths.
        budget: pays for the searches.
    """

    __slots__ = (
        "_blocks",
        "_def_use",
        "_known_latencies",
        "_latencies",
        "_mandatory",
        "_paths",
        "_using",
        "_view",
        "_writers",
    )

    def __init__(
        self, view: FunctionView, blocks: BlockLists, def_use: DefUse, paths: ShortestPaths, budget: WorkBudget
    ) -> None:
        self._view = view
        self._blocks = blocks
        self._def_use = def_use
        self._paths = paths
        self._mandatory = MandatoryBlocks(view.graph, blocks, budget)
        self._latencies = LatencyBounds(view.architecture)
        self._known_latencies: dict[tuple[str, str, int, tuple[int, ...]], float] = {}
        self._using: dict[int, frozenset[int]] = {}
        self._writers: dict[int, tuple[int, ...]] = {}

    def prune(self, edge: DependencyEdge) -> tuple[DependencyEdge, Distance] | None:
        """What is left of an edge, with the length of its shortest path; None when it is cold.

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
        """Upper bound of the latency of an edge's def, in cycles; infinite where nobody knows one."""
        guard = self._def_use.guard[edge.use_row]
        writer, reader = self._view.mnemonic(edge.def_row), self._view.mnemonic(edge.use_row)
        key = (writer, reader, guard, edge.by_result)
        bound = self._known_latencies.get(key)
        if bound is None:
            kinds = frozenset(
                (ResourceKind(resource >> 8), resource == guard)
                for resource in edge.by_result
                if not is_scoreboard(resource)
            )
            bound = self._known_latencies[key] = self._latencies.find(writer, reader, kinds)
        return bound

    def find_reach(self, use_row: int, resource: int) -> float:
        """How many instructions before a use a def of a resource may lie and still cause stalls, by rule 3."""
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

        Whoever got past an instruction that used one of the def's results had them all; and its operands had been read before.

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
