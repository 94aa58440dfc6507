"""GPA as published: backward slices through registers, predicates and virtual barrier registers, three pruning rules, Equation 1.

The published numbers came from this method, and the blamer that follows the scoreboards is measured against it. Differences from the text of
the paper:

* Stalls without a source are not dropped: memory and synchronisation stalls become samples without a cause; execution stalls stay with
  their instruction, as scheduling, which the published code does too.
* Rule 3 takes its bounds from the tables of the GPU at hand; the published code has one table for all, with 1,024 cycles for a TLB miss.
* A predicate that was written in between is another condition, see :mod:`gpa_lsp.diagnosis.blame.slicing`.
* A synchronisation stall is caused by the instruction itself where it synchronises, as in the published code, and otherwise by the last
  synchronising instructions before it in control flow; the code takes the preceding address.

Source: GPA section IV.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import count, repeat

import numpy as np

from gpa_lsp.code.binary.opcodes import Synchronisation
from gpa_lsp.diagnosis.blame.blamers import Blamer, FunctionBlame
from gpa_lsp.diagnosis.blame.categories import find_category
from gpa_lsp.diagnosis.blame.def_use import find_def_use, is_scoreboard, number_synchronisation
from gpa_lsp.diagnosis.blame.edges import NO_RESOURCE, Connection, blame_themselves, connect, join_edges, lose_samples
from gpa_lsp.diagnosis.blame.issue_counts import LEAST_ISSUES_SAMPLES, count_issued_samples
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency, UnattributedCause
from gpa_lsp.diagnosis.blame.paths import LongestPaths, ShortestPaths
from gpa_lsp.diagnosis.blame.pruning import DependencyEdge, Pruner, StallClass, build_edge, can_cause, classify_reason
from gpa_lsp.diagnosis.blame.slicing import Slicer
from gpa_lsp.diagnosis.blame.view import NOWHERE, Distance, FunctionView, OutOfWorkError, WorkBudget

_ITSELF = Connection(Dependency.ITSELF, NO_RESOURCE)
_SYNCHRONISATION = Connection(Dependency.SYNCHRONISATION, NO_RESOURCE)
_BY_DEF_USE = (StallClass.MEMORY, StallClass.EXECUTION)
_WAITS_AT = {
    "barrier": Synchronisation.BLOCK,
    "membar": Synchronisation.FENCE,
    "warpgroup_arrive": Synchronisation.WARPGROUP,
    "gmma": Synchronisation.WARPGROUP,
}


def apportion(issue_counts: Sequence[float], path_lengths: Sequence[int]) -> tuple[float, ...]:
    """The share of each source in the stalls of one use: issues times 1 / path length, as ratios of their sums.

    ``path_lengths``: instructions on the longest path from each source to the use, at least 1.

    Source: GPA section IV, "Attribute stalls", Equation 1 (Figure 4d).

    The published example: a load that issued twice as often as another, twice as far away, causes half of the stalls.

    >>> apportion([2.0, 1.0], [8, 4])
    (0.5, 0.5)
    """
    weights = [
        max(issues, LEAST_ISSUES_SAMPLES) / length for issues, length in zip(issue_counts, path_lengths, strict=True)
    ]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def _blame(view: FunctionView, budget: WorkBudget) -> FunctionBlame:
    """Find the causes of all samples of a function; conservation holds per row and reason with any budget."""
    classes = [classify_reason(reason) for reason in view.reasons]
    staying = [column for column, stall_class in enumerate(classes) if stall_class is None]
    moving = [column for column, stall_class in enumerate(classes) if stall_class is not None]
    function = _Function(view, budget)
    samples = view.all_samples[:, moving].sum(axis=1)
    sampled = np.flatnonzero(view.is_sampled)
    hottest_first = sampled[np.argsort(-samples[sampled], kind="stable")]  # the budget serves them best
    for row in hottest_first.tolist():
        function.blame_row(row)
    moved = BlameEdges.from_rows(function.edges).sort()
    return FunctionBlame(
        edges=join_edges([(moved, 0), (blame_themselves(view, staying), 0)]).sort(),
        unattributed=lose_samples(view, function.lost).sort_by("row", "reason"),
        before=np.array(sorted(function.before), dtype=np.int64).reshape(-1, 2),
        after=np.array(sorted(function.after), dtype=np.int64).reshape(-1, 2),
    )


class _Function:
    """Edges and dependency graph of one function, while they are collected."""

    def __init__(self, view: FunctionView, budget: WorkBudget) -> None:
        self.edges: list[tuple[float, ...]] = []
        self.lost: list[tuple[int, int, UnattributedCause]] = []
        self.before: list[tuple[int, int]] = []
        self.after: set[tuple[int, int]] = set()
        self._view = view
        self._def_use = find_def_use(view)
        self._shortest = ShortestPaths(view.blocks, budget)
        self._longest = LongestPaths(view.graph, view.blocks, budget)
        self._pruner = Pruner(view, self._def_use, self._shortest, budget)
        self._slicer = Slicer(
            view, self._def_use, paths=self._shortest, find_reach=self._pruner.find_reach, budget=budget
        )
        self._next_group = 0
        self._all_samples: list[list[float]] = view.all_samples.astype(np.float64).tolist()
        self._latency_samples: list[list[float]] = view.latency_samples.astype(np.float64).tolist()
        self._issue_counts: list[float] = view.issue_counts.tolist()
        self._causes = [
            [
                frozenset(one for one in _BY_DEF_USE if can_cause(opcode, one, waits_for_operands=waits))
                for opcode in view.flow.opcodes
            ]
            for waits in (False, True)
        ]
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
        left = self._prune(row, sources, wanted.keys()) if wanted else ()
        found = {
            stall_class: self._apportion(row, [one for one in left if stall_class in self._find_causes(one[0])])
            for stall_class in wanted
        }
        groups = dict(zip(sorted(sources), count(self._next_group), strict=False))
        self._next_group += len(groups)
        self.before.extend(zip(repeat(row), groups, strict=False))
        for stall_class, divided in found.items():
            if not divided:
                self._keep_without_source(row, stall_class, wanted[stall_class])
            for edge, distance, share in divided:
                self.after.add((row, edge.def_row))
                self._add(edge, distance, wanted[stall_class], share, groups[edge.def_row])

    def _prune(
        self, row: int, sources: Mapping[int, tuple[int, ...]], wanted: AbstractSet[StallClass]
    ) -> list[tuple[DependencyEdge, Distance]]:
        """The edges of a slice that none of the three rules takes out."""
        left = []
        for definition, resources in sorted(sources.items()):
            edge = build_edge(self._def_use, definition, row, resources)
            if not self._find_causes(edge).isdisjoint(wanted):
                pruned = self._pruner.prune(edge)
                if pruned is not None:
                    left.append(pruned)
        return left

    def _find_causes(self, edge: DependencyEdge) -> frozenset[StallClass]:
        """Classes of stalls that an edge can cause, by rule 1."""
        return self._causes[bool(edge.by_operands)][self._view.flow.mnemonic_of[edge.def_row]]

    def _apportion(
        self, row: int, left: Sequence[tuple[DependencyEdge, Distance]]
    ) -> list[tuple[DependencyEdge, Distance, float]]:
        shares = self._share(row, [edge.def_row for edge, _ in left])
        return [(edge, distance, share) for (edge, distance), share in zip(left, shares, strict=True)]

    def _share(self, row: int, definitions: Sequence[int]) -> tuple[float, ...]:
        """The share of each source by Equation 1; one source needs no path measured."""
        if len(definitions) <= 1:
            return (1.0,) * len(definitions)
        return apportion(
            [self._issue_counts[definition] for definition in definitions],
            [self._longest.find(definition, row) for definition in definitions],
        )

    def _keep_without_source(self, row: int, stall_class: StallClass, columns: Sequence[int]) -> None:
        """Settle stalls without a source: execution stalls stay as scheduling, memory stalls have no cause."""
        if stall_class is not StallClass.EXECUTION:
            self._lose(row, columns, UnattributedCause.NO_PRODUCER)
            return
        for column in columns:
            self._append(row, row, column, BlameCategory.ISSUE, _ITSELF)

    def _blame_synchronisation(self, row: int, column: int) -> None:
        """Blame one instruction's samples of a synchronisation stall. Everything that costs work comes before anything is kept."""
        view = self._view
        reason = view.reasons[column]
        kind = _WAITS_AT[reason]
        if view.opcode(row).synchronises is kind:
            self._append(row, row, column, BlameCategory.SYNCHRONISATION, _ITSELF)
            return
        condition = self._def_use.condition[row]
        definitions = sorted(self._slicer.find_definitions(row, number_synchronisation(kind), condition))
        if not definitions:
            self._lose(row, (column,), UnattributedCause.NO_PRODUCER)
            return
        distances = [self._shortest.find(definition, row) or NOWHERE for definition in definitions]
        for definition, distance, share in zip(definitions, distances, self._share(row, definitions), strict=True):
            category = find_category(view.opcode(definition), Dependency.SYNCHRONISATION, reason)
            self._append(row, definition, column, category, _SYNCHRONISATION, distance=distance, share=share)

    def _add(self, edge: DependencyEdge, distance: Distance, columns: Sequence[int], share: float, group: int) -> None:
        connection, waits = self._connect(edge), not edge.by_result
        opcode = self._view.opcode(edge.def_row)
        for column in columns:
            reason = self._view.reasons[column]
            category = find_category(opcode, connection.dependency, reason, waits_for_operands=waits)
            pair = edge.use_row, edge.def_row
            self._append(*pair, column, category, connection, distance=distance, share=share, group=group)

    def _connect(self, edge: DependencyEdge) -> Connection:
        """Connect a def and its use: by a register of the slice, or by a scoreboard and what it protects."""
        registers = [one for one in edge.by_result if not is_scoreboard(one)]
        values = [one for one in registers if one != self._view.flow.guard_of[edge.use_row]]
        if values:
            return Connection(Dependency.READ_AFTER_WRITE, min(values))
        if registers:
            return Connection(Dependency.GUARD, registers[0])
        found = connect(
            self._view, edge.def_row, edge.use_row, by_result=bool(edge.by_result), by_operands=bool(edge.by_operands)
        )
        if found.dependency in (Dependency.READ_AFTER_WRITE, Dependency.GUARD):  # that value is another def's by now
            return Connection(Dependency.SCOREBOARD, NO_RESOURCE)
        return found

    def _append(
        self,
        row: int,
        def_row: int,
        column: int,
        category: BlameCategory,
        connection: Connection,
        *,
        distance: Distance = NOWHERE,
        share: float = 1.0,
        group: int | None = None,
    ) -> None:
        """One more edge; without a group it is one of its own."""
        if group is None:
            group, self._next_group = self._next_group, self._next_group + 1
        samples, latency = self._all_samples[row][column], self._latency_samples[row][column]
        blamed = (row, def_row, column, share * samples, share * latency, category)
        self.edges.append((*blamed, *connection, group, *distance))

    def _lose(self, row: int, columns: Sequence[int], cause: UnattributedCause) -> None:
        self.lost.extend((row, column, cause) for column in columns)


def _list_sampled(view: FunctionView, stall_class: StallClass) -> dict[int, list[int]]:
    """Row → the columns of the reasons of a class that it has samples of; rows without any are missing."""
    columns = [column for column, reason in enumerate(view.reasons) if classify_reason(reason) is stall_class]
    found: dict[int, list[int]] = {}
    for row, place in np.argwhere(view.all_samples[:, columns]).tolist():
        found.setdefault(row, []).append(columns[place])
    return found


BLAMER = Blamer(
    name="paper",
    description="GPA as published: def-use slices through registers, predicates and barriers, pruned and apportioned by Equation 1.",
    blame=_blame,
    count_issues=count_issued_samples,
    follows_calls=False,  # section IV slices within a function
)
