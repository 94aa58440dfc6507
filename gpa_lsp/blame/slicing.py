"""Backward slices: the instructions whose results an instruction uses directly, on whatever path it was reached.

A def ends the search on its path only when the conditions (guards) of the defs met on that path cover the condition of the use: together they
are that condition, or a predicate and its negation, or one def has no guard. So a use behind a guarded load still sees the value from before.

A condition is the *value* of a predicate. Where a predicate is written between two guards that name it, the guards are different conditions:
what was collected under the later value does not cover the earlier one. A def under a condition that is already covered is overwritten on
that path, and is no def of the use.

Searches run within the function: calls are stepped over, entries end the path. What is found above a block is remembered per resource, so
that many uses of one value cost little more than one.

Source: GPA section IV, "Backward slicing", "Virtual barrier registers", "Predicated instructions".
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence

from gpa_lsp.blame.def_use import UNCONDITIONAL, DefUse
from gpa_lsp.blame.graph_search import (
    STEPS_PER_BLOCK,
    STEPS_PER_EDGE,
    STEPS_PER_MEMBER,
    BlockLists,
    charge,
    find_components,
)
from gpa_lsp.blame.work import WorkBudget

_Covered = frozenset[int]
_Node = tuple[int, int, _Covered]
"""A search that goes on above a block: the block, the condition still to be covered, the conditions covered so far.

A condition of :data:`UNCONDITIONAL` asks for all cases; so does a guard whose predicate was written since.
"""

_NOTHING: frozenset[int] = frozenset()


class Slicer:
    """Slices the instructions of one function.

    Args:
        blocks: of the function.
        def_use: of the function.
        budget: pays for the searches.
    """

    __slots__ = ("_above", "_blocks", "_budget", "_def_use", "_last_def")

    def __init__(self, blocks: BlockLists, def_use: DefUse, budget: WorkBudget) -> None:
        self._blocks = blocks
        self._def_use = def_use
        self._budget = budget
        self._above: dict[int, dict[_Node, frozenset[int]]] = {}
        self._last_def: dict[int, Mapping[int, int]] = {}

    def find_sources(self, row: int) -> dict[int, tuple[int, ...]]:
        """The immediate sources of an instruction: def → what the instruction uses of it, in the order of ``DefUse.uses``.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        guard, condition = self._def_use.guard[row], self._def_use.condition[row]
        sources: dict[int, tuple[int, ...]] = {}
        for resource in self._def_use.uses[row]:
            asked = UNCONDITIONAL if resource == guard else condition
            found = self.find_definitions(row, resource, asked)
            if len(found) > 1:  # one def each is paid for by the size of the function
                charge(self._budget, STEPS_PER_EDGE * len(found))
            for definition in found:
                sources[definition] = (*sources.get(definition, ()), resource)
        return sources

    def find_definitions(self, row: int, resource: int, condition: int) -> Collection[int]:
        """The defs of one resource that an instruction can see.

        Args:
            row: the instruction; its own defs are those of an earlier turn of a loop.
            resource: what it uses.
            condition: under which it does.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        definitions = self._def_use.definitions.get(resource)
        if definitions is None:
            return ()
        block = self._blocks.block_of[row]
        if resource not in self._def_use.guarded:
            place = bisect_left(definitions, row) - 1
            if place >= 0 and definitions[place] >= self._blocks.first[block]:
                return definitions[place : place + 1]
            return self._find_above(resource, (block, UNCONDITIONAL, _NOTHING))
        found, left = self._scan(resource, row, (block, condition, _NOTHING))
        if left is None:
            return found
        return self._find_above(resource, left).union(found) if found else self._find_above(resource, left)

    def _find_above(self, resource: int, start: _Node) -> frozenset[int]:
        """The defs that a search sees from the start of a block upwards."""
        known = self._above.setdefault(resource, {})
        if start in known:
            return known[start]
        steps: dict[_Node, tuple[Sequence[int], Sequence[_Node]]] = {}

        def climb(node: _Node) -> Iterator[_Node]:
            steps[node] = self._climb(resource, node)
            return iter(steps[node][1])

        for component in find_components((start,), climb, known):
            found = self._merge(component, steps, known)
            for node in component:
                known[node] = found
                del steps[node]
        return known[start]

    def _merge(
        self,
        component: Sequence[_Node],
        steps: Mapping[_Node, tuple[Sequence[int], Sequence[_Node]]],
        known: Mapping[_Node, frozenset[int]],
    ) -> frozenset[int]:
        """What the nodes of a cycle see: all the same. Sets are shared where nothing is added, so that long chains cost no memory."""
        local: set[int] = set()
        inherited: dict[int, frozenset[int]] = {}
        for node in component:
            found, above = steps[node]
            local.update(found)
            inherited.update((id(known[one]), known[one]) for one in above if known.get(one))
        sets = list(inherited.values())
        if len(sets) == 1 and local <= sets[0]:
            return sets[0]
        charge(self._budget, STEPS_PER_MEMBER * sum(map(len, sets)))
        return frozenset(local).union(*sets)

    def _climb(self, resource: int, node: _Node) -> tuple[Sequence[int], Sequence[_Node]]:
        """The defs in the blocks before a block, and where the search goes on above them."""
        block, condition, covered = node
        before = self._blocks.predecessors[block]
        charge(self._budget, STEPS_PER_BLOCK * (1 + len(before)))
        if resource not in self._def_use.guarded:
            last_def = self._find_last_defs(resource)
            found = [last_def[one] for one in before if one in last_def]
            return found, [(one, condition, covered) for one in before if one not in last_def]
        found, above = [], []
        for one in before:
            in_block, left = self._scan(resource, self._blocks.last[one] + 1, (one, condition, covered))
            found += in_block
            if left is not None:
                above.append(left)
        return found, above

    def _find_last_defs(self, resource: int) -> Mapping[int, int]:
        """Block → its last def of a resource."""
        found = self._last_def.get(resource)
        if found is None:
            rows = self._def_use.definitions[resource]
            found = self._last_def[resource] = {self._blocks.block_of[row]: row for row in rows}
        return found

    def _scan(self, resource: int, end: int, node: _Node) -> tuple[list[int], _Node | None]:
        """The defs in a block before instruction ``end``, and what is left to find above the block; None when all is covered."""
        block, condition, covered = node
        definitions = self._def_use.definitions[resource]
        first = self._blocks.first[block]
        place = bisect_left(definitions, end) - 1
        found: list[int] = []
        while place >= 0 and definitions[place] >= first:
            row = definitions[place]
            condition, covered = self._pass_writes(row, end, condition, covered)
            of_def = self._def_use.condition[row]
            if of_def not in covered:
                found.append(row)
                if of_def in (UNCONDITIONAL, condition) or of_def ^ 1 in covered:
                    return found, None
                covered |= {of_def}
            charge(self._budget, 1)
            end = row
            place -= 1
        condition, covered = self._pass_writes(first, end, condition, covered)
        return found, (block, condition, covered)

    def _pass_writes(self, start: int, end: int, condition: int, covered: _Covered) -> tuple[int, _Covered]:
        """What stays comparable above the instructions ``start..end - 1``: nothing that is about a predicate written there."""
        if condition != UNCONDITIONAL and self._is_written(condition >> 1, start, end):
            condition = UNCONDITIONAL
        if covered:
            stale = {one for one in covered if self._is_written(one >> 1, start, end)}
            covered = covered - stale if stale else covered
        return condition, covered

    def _is_written(self, predicate: int, start: int, end: int) -> bool:
        rows = self._def_use.definitions.get(predicate, ())
        place = bisect_left(rows, start)
        return place < len(rows) and rows[place] < end
