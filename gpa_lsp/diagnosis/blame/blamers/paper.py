"""GPA as published: backward slices through registers, predicates and virtual barrier registers, three pruning rules, Equation 1.

It is what the published numbers came from, and the yardstick for the blamer that follows the scoreboards. Where it differs from the text of
the paper:

* What is left without a source is not dropped: memory and synchronisation stalls become samples without a cause; execution stalls stay with
  their instruction, as scheduling, which the published code does too.
* The two halves of a 64-bit value are one dependency.
* A predicate that was written in between is another condition, see :mod:`gpa_lsp.diagnosis.blame.slicing`.
* A synchronisation stall is caused by the instruction itself where it synchronises, as in the published code, and otherwise by the last
  synchronising instructions before it in control flow; the code takes the preceding address.

Source: GPA section IV.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import count, repeat
from typing import NamedTuple

import numpy as np

from gpa_lsp.code.binary.opcodes import Synchronisation
from gpa_lsp.diagnosis.blame.apportioning import apportion
from gpa_lsp.diagnosis.blame.blamers import DependencyGraph, FunctionBlame
from gpa_lsp.diagnosis.blame.categories import find_category
from gpa_lsp.diagnosis.blame.def_use import PairFinder, find_def_use, is_scoreboard, number_synchronisation
from gpa_lsp.diagnosis.blame.edges import EdgeBuilder, blame_themselves, join_edges, lose_samples
from gpa_lsp.diagnosis.blame.graph_search import OutOfWorkError, list_blocks
from gpa_lsp.diagnosis.blame.joins import Joins
from gpa_lsp.diagnosis.blame.longest_paths import LongestPaths
from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency, UnattributedCause
from gpa_lsp.diagnosis.blame.operands import NO_RESOURCE, Connection, RegisterUses
from gpa_lsp.diagnosis.blame.pruning import (
    DependencyEdge,
    Pruner,
    StallClass,
    build_edge,
    can_cause,
    classify_reason,
    is_far_memory,
)
from gpa_lsp.diagnosis.blame.shortest_paths import Distance, ShortestPaths
from gpa_lsp.diagnosis.blame.slicing import Slicer
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget

_ITSELF = Connection(Dependency.ITSELF, NO_RESOURCE)
_SYNCHRONISATION = Connection(Dependency.SYNCHRONISATION, NO_RESOURCE)
_NO_DISTANCE = Distance(0, 0)
_BY_DEF_USE = (StallClass.MEMORY, StallClass.EXECUTION)
_WAITS_AT = {
    "barrier": Synchronisation.BLOCK,
    "membar": Synchronisation.FENCE,
    "warpgroup_arrive": Synchronisation.WARPGROUP,
    "gmma": Synchronisation.WARPGROUP,
}


class _Blame(NamedTuple):
    """Who is blamed for what part of the samples of a use and reason."""

    def_row: int
    category: BlameCategory
    connection: Connection
    distance: Distance = _NO_DISTANCE
    share: float = 1.0
    group: int = 0


class PaperBlamer:
    """The published blamer."""

    name = "paper"
    description = "GPA as published: def-use slices through registers, predicates and barriers, pruned and apportioned by Equation 1."

    def blame(self, view: FunctionView, budget: WorkBudget) -> FunctionBlame:
        """Find the causes of all samples of a function; conservation holds per row and reason, whatever the budget."""
        classes = [classify_reason(reason) for reason in view.reasons]
        staying = [column for column, stall_class in enumerate(classes) if stall_class is None]
        moving = [column for column, stall_class in enumerate(classes) if stall_class is not None]
        function = _Function(view, budget)
        samples = view.all_samples[:, moving].sum(axis=1)
        sampled = np.flatnonzero(view.all_samples.any(axis=1))
        hottest_first = sampled[np.argsort(-samples[sampled], kind="stable")]  # the budget serves them best
        for row in hottest_first.tolist():
            function.blame_row(row)
        edges = join_edges([(function.edges.build(), 0), (blame_themselves(view, staying), 0)])
        graph = DependencyGraph(before=tuple(sorted(function.before)), after=tuple(sorted(function.after)))
        return FunctionBlame(
            edges=edges.sort(),
            unattributed=lose_samples(view, function.lost).sort_by("row", "reason"),
            dependencies=graph,
        )


class _Function:
    """One function on its way: what was found so far."""

    def __init__(self, view: FunctionView, budget: WorkBudget) -> None:
        blocks = list_blocks(view.graph)
        self.edges = EdgeBuilder()
        self.lost: list[tuple[int, int, UnattributedCause]] = []
        self.before: list[tuple[int, int]] = []
        self.after: set[tuple[int, int]] = set()
        self._view = view
        self._def_use = find_def_use(view)
        self._shortest = ShortestPaths(blocks, view.stall_cycles, budget)
        self._longest = LongestPaths(view.graph, blocks, budget)
        self._pruner = Pruner(view, blocks, self._def_use, self._shortest, budget)
        self._slicer = Slicer(
            blocks,
            Joins(view.graph, blocks),
            self._def_use,
            paths=self._shortest,
            find_reach=self._pruner.find_reach,
            budget=budget,
        )
        self._uses = RegisterUses(view.instructions)
        self._pairs = PairFinder()
        self._next_group = 0
        self._all_samples: list[list[float]] = view.all_samples.astype(np.float64).tolist()
        self._latency_samples: list[list[float]] = view.latency_samples.astype(np.float64).tolist()
        self._issue_counts: list[float] = view.issue_counts.tolist()
        self._mnemonic_of: list[int] = view.instructions.mnemonic_index.tolist()
        self._causes = [
            [
                frozenset(one for one in _BY_DEF_USE if can_cause(opcode, one, waits_for_operands=waits))
                for opcode in view.opcodes
            ]
            for waits in (False, True)
        ]
        self._categories: dict[tuple[int, Dependency, int, bool], BlameCategory] = {}
        self._sampled = {one: _list_sampled(view, one) for one in StallClass}

    def blame_row(self, row: int) -> None:
        """Blame the memory, execution and synchronisation samples of one instruction, and put it into the dependency graph."""
        for column in self._sampled[StallClass.SYNCHRONISATION].get(row, ()):
            try:
                self._blame_synchronisation(row, column)
            except OutOfWorkError:
                self._lose(row, (column,), UnattributedCause.WORK_BOUND)
        wanted = {one: self._sampled[one][row] for one in _BY_DEF_USE if row in self._sampled[one]}
        try:
            self._blame_dependencies(row, wanted)
        except OutOfWorkError:
            self._lose(row, [one for columns in wanted.values() for one in columns], UnattributedCause.WORK_BOUND)

    def _blame_dependencies(self, row: int, wanted: Mapping[StallClass, Sequence[int]]) -> None:
        """Slice, prune, apportion. Everything that costs work comes before anything is kept."""
        sources = self._slicer.find_sources(row)
        stands_for = self._join_halves(row, sources)
        left = self._prune(row, sources, wanted.keys()) if wanted else ()
        found = {
            stall_class: self._divide(
                row, [one for one in left if stall_class in self._find_causes(one[0])], stands_for
            )
            for stall_class in wanted
        }
        dependencies = sorted(set(stands_for.values()))
        groups = dict(zip(dependencies, count(self._next_group), strict=False))
        self._next_group += len(groups)
        self.before.extend(zip(repeat(row), dependencies, strict=False))
        for stall_class, divided in found.items():
            if not divided:
                self._keep_without_source(row, stall_class, wanted[stall_class])
            for edge, distance, share in divided:
                one = stands_for[edge.def_row]
                self.after.add((row, one))
                self._add(edge, distance, wanted[stall_class], share, groups[one])

    def _join_halves(self, row: int, sources: Mapping[int, tuple[int, ...]]) -> Mapping[int, int]:
        view = self._view
        may_have = len(sources) > 1 and self._def_use.has_neighbours[row]
        pairs = self._pairs.find(view, row) if may_have else ()
        if not pairs:
            return dict(zip(sources, sources, strict=True))
        return join_halves(sources, pairs, lambda definition: is_far_memory(view.opcode(definition)))

    def _prune(
        self, row: int, sources: Mapping[int, tuple[int, ...]], wanted: AbstractSet[StallClass]
    ) -> list[tuple[DependencyEdge, Distance]]:
        """The edges that are left of a slice, by all three rules."""
        left = []
        for definition, resources in sorted(sources.items()):
            edge = build_edge(self._def_use, definition, row, resources)
            if not self._find_causes(edge).isdisjoint(wanted):
                pruned = self._pruner.prune(edge)
                if pruned is not None:
                    left.append(pruned)
        return left

    def _find_causes(self, edge: DependencyEdge) -> frozenset[StallClass]:
        """What kinds of stalls an edge can cause, by rule 1."""
        return self._causes[bool(edge.by_operands)][self._mnemonic_of[edge.def_row]]

    def _divide(
        self, row: int, left: Sequence[tuple[DependencyEdge, Distance]], stands_for: Mapping[int, int]
    ) -> list[tuple[DependencyEdge, Distance, float]]:
        """The share of each edge."""
        definitions = [edge.def_row for edge, _ in left]
        shares = self._share(row, definitions, [stands_for[one] for one in definitions])
        return [(edge, distance, share) for (edge, distance), share in zip(left, shares, strict=True)]

    def _share(
        self, row: int, definitions: Sequence[int], dependencies: Sequence[int] | None = None
    ) -> tuple[float, ...]:
        """The share of each source by Equation 1; one source needs no path measured."""
        if len(definitions) <= 1:
            return (1.0,) * len(definitions)
        return apportion(
            [self._issue_counts[definition] for definition in definitions],
            [self._longest.find(definition, row) for definition in definitions],
            definitions if dependencies is None else dependencies,
        )

    def _keep_without_source(self, row: int, stall_class: StallClass, columns: Sequence[int]) -> None:
        """What nothing else can be blamed for: execution stalls are scheduling, memory stalls have no cause."""
        if stall_class is not StallClass.EXECUTION:
            self._lose(row, columns, UnattributedCause.NO_PRODUCER)
            return
        for column in columns:
            self._append(row, column, _Blame(row, BlameCategory.ISSUE, _ITSELF, group=self._take_group()))

    def _blame_synchronisation(self, row: int, column: int) -> None:
        """Everything that costs work comes before anything is kept here, too."""
        view = self._view
        reason = view.reasons[column]
        kind = _WAITS_AT[reason]
        if view.opcode(row).synchronises is kind:
            self._append(row, column, _Blame(row, BlameCategory.SYNCHRONISATION, _ITSELF, group=self._take_group()))
            return
        condition = self._def_use.condition[row]
        definitions = sorted(self._slicer.find_definitions(row, number_synchronisation(kind), condition))
        if not definitions:
            self._lose(row, (column,), UnattributedCause.NO_PRODUCER)
            return
        distances = [self._shortest.find(definition, row) or _NO_DISTANCE for definition in definitions]
        for definition, distance, share in zip(definitions, distances, self._share(row, definitions), strict=True):
            category = find_category(view.opcode(definition), Dependency.SYNCHRONISATION, reason)
            blame = _Blame(definition, category, _SYNCHRONISATION, distance, share, self._take_group())
            self._append(row, column, blame)

    def _take_group(self) -> int:
        self._next_group += 1
        return self._next_group - 1

    def _add(self, edge: DependencyEdge, distance: Distance, columns: Sequence[int], share: float, group: int) -> None:
        connection, waits = self._connect(edge), not edge.by_result
        for column in columns:
            category = self._find_category(edge.def_row, connection.dependency, column, waits_for_operands=waits)
            self._append(edge.use_row, column, _Blame(edge.def_row, category, connection, distance, share, group))

    def _find_category(
        self, def_row: int, dependency: Dependency, column: int, *, waits_for_operands: bool
    ) -> BlameCategory:
        key = (self._mnemonic_of[def_row], dependency, column, waits_for_operands)
        if key not in self._categories:
            opcode, reason = self._view.opcode(def_row), self._view.reasons[column]
            self._categories[key] = find_category(opcode, dependency, reason, waits_for_operands=waits_for_operands)
        return self._categories[key]

    def _connect(self, edge: DependencyEdge) -> Connection:
        """What connects the two: a register of the slice, or a scoreboard and what it protects."""
        registers = [one for one in edge.by_result if not is_scoreboard(one)]
        values = [one for one in registers if one != self._def_use.guard[edge.use_row]]
        if values:
            return Connection(Dependency.READ_AFTER_WRITE, min(values))
        if registers:
            return Connection(Dependency.GUARD, registers[0])
        found = self._uses.connect(
            edge.def_row, edge.use_row, by_result=bool(edge.by_result), by_operands=bool(edge.by_operands)
        )
        if found.dependency in (Dependency.READ_AFTER_WRITE, Dependency.GUARD):  # that value is another def's by now
            return Connection(Dependency.SCOREBOARD, NO_RESOURCE)
        return found

    def _append(self, row: int, column: int, blame: _Blame) -> None:
        self.edges.add(
            use_row=row,
            def_row=blame.def_row,
            reason=column,
            all_samples=blame.share * self._all_samples[row][column],
            latency_samples=blame.share * self._latency_samples[row][column],
            category=blame.category,
            dependency=blame.connection.dependency,
            resource=blame.connection.resource,
            group=blame.group,
            distance_cycles=blame.distance.cycles,
            distance_instructions=blame.distance.instructions,
        )

    def _lose(self, row: int, columns: Sequence[int], cause: UnattributedCause) -> None:
        self.lost.extend((row, column, cause) for column in columns)


def _list_sampled(view: FunctionView, stall_class: StallClass) -> dict[int, list[int]]:
    """Row → the columns of the reasons of a class that it has samples of; rows without any are missing."""
    columns = [column for column, reason in enumerate(view.reasons) if classify_reason(reason) is stall_class]
    found: dict[int, list[int]] = {}
    for row, place in np.argwhere(view.all_samples[:, columns]).tolist():
        found.setdefault(row, []).append(columns[place])
    return found


def join_halves(
    sources: Mapping[int, Sequence[int]], pairs: Iterable[tuple[int, int]], is_far_memory: Callable[[int], bool]
) -> dict[int, int]:
    """Which sources of one use are one dependency: an address whose halves two instructions write is waited for once.

    Defs of the low half and of the high half are matched in address order, where there are several of each: one pair per path. A load and
    an instruction that is none stay apart, because they stall under different reasons.

    Source: GPA section VI-C, which names them as the reason for the low coverage of the bfs benchmark, where they count as two.

    >>> join_halves({3: (4,), 5: (5,), 8: (9,)}, [(4, 5)], lambda row: False)
    {3: 5, 5: 5, 8: 8}
    """
    stands_for = {definition: definition for definition in sources}
    if len(sources) == 1:
        return stands_for
    for low, high in pairs:
        lows = {definition for definition, resources in sources.items() if low in resources}
        highs = {definition for definition, resources in sources.items() if high in resources}
        for one, other in zip(sorted(lows - highs), sorted(highs - lows), strict=False):
            if is_far_memory(one) == is_far_memory(other):
                _join(stands_for, one, other)
    return {definition: _find(stands_for, definition) for definition in sources}


def _join(stands_for: dict[int, int], one: int, other: int) -> None:
    first, second = sorted((_find(stands_for, one), _find(stands_for, other)))
    stands_for[first] = second


def _find(stands_for: Mapping[int, int], definition: int) -> int:
    while stands_for[definition] != definition:
        definition = stands_for[definition]
    return definition


BLAMER = PaperBlamer()
