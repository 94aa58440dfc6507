"""Backward slices: the instructions whose results an instruction uses directly, on any path that reaches it.

A def ends the search on its path only when the conditions (guards) of the defs met on that path cover the condition of the use: together they
are that condition, or a predicate and its negation, or one def has no guard. So a use behind a guarded load still sees the value from before.

A condition is the *value* of a predicate. Where a predicate is written between two guards that name it, the guards are different conditions:
what was collected under the later value does not cover the earlier one. A def under a condition that is already covered is overwritten on
that path, and is no def of the use.

Searches run within the function: calls are stepped over, entries end the path. What is found above a block is remembered per resource, so
that many uses of one value cost little more than one. A use that can see more than :data:`MOST_SOURCES` defs of one resource is given those
that are near enough to matter, and as many of the others.

Blocks in which different defs of one resource can meet are *joins*. A block that is none sees what the end of its immediate dominator sees,
however many blocks lie between.

Source: GPA section IV, "Backward slicing", "Virtual barrier registers", "Predicated instructions" (Figure 4a). R. Cytron et al., "Efficiently
computing static single assignment form and the control dependence graph", TOPLAS 13 (1991), 451-490: joins are the iterated dominance frontier of
the blocks with defs.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from gpa_lsp.code.binary.model import PREDICATE_KINDS
from gpa_lsp.code.control_flow.graph import DominatorTree
from gpa_lsp.diagnosis.blame.def_use import UNCONDITIONAL, DefUse
from gpa_lsp.diagnosis.blame.paths import DominatorDistances, ShortestPaths, find_components
from gpa_lsp.diagnosis.blame.view import STEPS_PER_BLOCK, STEPS_PER_EDGE, FunctionView, WorkBudget

MOST_SOURCES = 16  # Defs of one resource that are remembered above a block

# Longest total way up the dominator tree, per block of the function. Deep nests of loops need the square of their depth; for them every block with
# several predecessors is taken for a join.
MOST_FRONTIER_STEPS_PER_BLOCK = 64

_STEPS_TO_PASS = 4  # What passing a block costs in which there is nothing to look at

_CROWD = -1  # Stands in a set of defs for those beyond :data:`MOST_SOURCES`


class _Node(NamedTuple):
    """A search that goes on in a block, from its end upwards, or above it."""

    block: int  # the block
    condition: int  # still to be covered; :data:`UNCONDITIONAL` asks for all cases, as does a guard whose predicate was written since
    covered: frozenset[int]  # conditions that are covered so far

    @property
    def is_plain(self) -> bool:
        """Every case is asked for, and no def was met yet."""
        return self.condition == UNCONDITIONAL and not self.covered


_NOTHING: frozenset[int] = frozenset()


class Joins:
    """The joins of one function.

    Blocks that cannot be reached from an entry, and those that such blocks lead to, count as joins always: dominators do not know of them.
    """

    def __init__(self, view: FunctionView, dominator: Sequence[int]) -> None:
        self._dominator, blocks = dominator, view.blocks
        lost = set(np.flatnonzero(~view.graph.is_reachable).tolist())
        always = lost.union(*(blocks.successors[block] for block in lost))
        # blocks that can be entered in several ways; an entry can from outside
        split = [
            (block, before)
            for block, before in enumerate(blocks.predecessors)
            if len(before) > 1 or dominator[block] < 0
        ]
        frontier = self._find_frontier(split)
        if frontier is None:
            always.update(block for block, _ in split)
        self._frontier = frontier or {}
        self._always = frozenset(always)
        self._always = self.find(always)

    def find(self, definitions: Iterable[int]) -> frozenset[int]:
        """The joins of defs in some blocks."""
        found = set(self._always)
        waiting = list(definitions)
        while waiting:
            for block in self._frontier.get(waiting.pop(), ()):
                if block not in found:
                    found.add(block)
                    waiting.append(block)
        return frozenset(found)

    def _find_frontier(self, split: Iterable[tuple[int, Sequence[int]]]) -> dict[int, list[int]] | None:
        """Block → the blocks where its dominance ends; None when that takes too long."""
        left = MOST_FRONTIER_STEPS_PER_BLOCK * len(self._dominator)
        frontier: dict[int, list[int]] = {}
        for block, before in split:
            for one in before:
                above = one
                while above not in (self._dominator[block], -1):
                    frontier.setdefault(above, []).append(block)
                    above = self._dominator[above]
                    left -= 1
                if left < 0:
                    return None
        return frontier


class Slicer:
    """Slices the instructions of one function.

    Args:
        paths: shortest paths of the function.
        find_reach: (use, resource) → how many instructions before a use a def of the resource may lie and still matter.
        budget: pays for the searches.
    """

    def __init__(
        self,
        view: FunctionView,
        def_use: DefUse,
        *,
        paths: ShortestPaths,
        find_reach: Callable[[int, int], float],
        budget: WorkBudget,
    ) -> None:
        self._view, self._blocks, self._def_use = view, view.blocks, def_use
        self._dominators = DominatorTree(view.graph.immediate_dominator.tolist())
        self._joins = Joins(view, self._dominators.parent)
        self._distances = DominatorDistances(view.blocks, self._dominators.parent, paths)
        self._find_reach = find_reach
        self._budget = budget
        self._above: dict[int, dict[_Node, frozenset[int]]] = {}
        self._places: dict[int, tuple[Mapping[int, int], frozenset[int], frozenset[int]]] = {}
        self._ways_up: dict[int, dict[int, list[tuple[int, int, int]]]] = {}
        self._writes_predicates = [False] * len(self._blocks.first)
        for resource, rows in def_use.definitions.items():
            if resource >> 8 in PREDICATE_KINDS:
                for row in rows:
                    self._writes_predicates[self._blocks.block_of[row]] = True

    def find_sources(self, row: int) -> dict[int, tuple[int, ...]]:
        """The immediate sources of an instruction: def → what the instruction uses of it, in the order of ``DefUse.uses``.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        guard, condition = self._view.flow.guard_of[row], self._def_use.condition[row]
        sources: dict[int, tuple[int, ...]] = {}
        for resource, near in zip(self._def_use.uses[row], self._def_use.near[row], strict=True):
            if near >= 0:
                sources[near] = (*sources.get(near, ()), resource)
                continue
            asked = UNCONDITIONAL if resource == guard else condition
            found = self.find_definitions(row, resource, asked)
            if len(found) > 1:  # one def each is paid for by the size of the function
                self._budget.charge(STEPS_PER_EDGE * len(found))
            for definition in found:
                sources[definition] = (*sources.get(definition, ()), resource)
        return sources

    def find_definitions(self, row: int, resource: int, condition: int) -> Collection[int]:
        """The defs of one resource that an instruction can see.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        definitions = self._def_use.definitions.get(resource)
        if definitions is None:
            return ()
        node = _Node(self._blocks.block_of[row], condition, _NOTHING)
        if resource not in self._def_use.guarded:
            place = bisect_left(definitions, row) - 1
            if place >= 0 and definitions[place] >= self._blocks.first[node.block]:
                return definitions[place : place + 1]
            node = node._replace(condition=UNCONDITIONAL)  # the first def covers every condition
            found = self._find_above(resource, node)
        else:
            local, left = self._scan(resource, row, node)
            found = frozenset(local) if left is None else self._find_above(resource, left).union(local)
        return found if _CROWD not in found else found - {_CROWD} | self._find_near(row, resource, node)

    def _find_above(self, resource: int, start: _Node) -> frozenset[int]:
        """The defs that a search sees from the start of a block upwards."""
        passed, node = self._pass_up(resource, start)
        if node is None:
            return frozenset(passed)
        known = self._above.setdefault(resource, {})
        if node not in known:
            self._explore(resource, node, known)
        return known[node].union(passed) if passed else known[node]

    def _explore(self, resource: int, start: _Node, known: dict[_Node, frozenset[int]]) -> None:
        """Fill in what ``start``, and all searches it leads to, see."""
        steps: dict[_Node, tuple[Sequence[int], Sequence[_Node]]] = {}

        def climb(node: _Node) -> Iterator[_Node]:
            steps[node] = self._climb(resource, node)
            return iter(steps[node][1])

        for component in find_components((start,), climb, known):
            found = _merge([steps[node] for node in component], known)
            for node in component:
                known[node] = found
                del steps[node]

    def _climb(self, resource: int, node: _Node) -> tuple[Sequence[int], Sequence[_Node]]:
        """The defs that a search sees through the blocks before a block, up to where it has to be split again."""
        before = self._blocks.predecessors[node.block]
        is_plain = node.is_plain
        self._budget.charge((STEPS_PER_BLOCK + 2 * len(before)) * (1 if is_plain else 2))
        found: list[int] = []
        above: list[_Node] = []
        for one in before:
            if is_plain:
                passed, left = self._pass_dominators(resource, one)
            else:
                passed, left = self._pass_block(resource, _Node(one, node.condition, node.covered))
            if passed:
                found += passed
            if left is not None:
                above.append(left)
        return found, above

    def _pass_block(self, resource: int, node: _Node) -> tuple[list[int], _Node | None]:
        """Follow a search from the end of a block up to the first block where it has to be split."""
        block = node.block
        if block not in self._find_places(resource)[0] and not self._writes_predicates[block]:
            return [], node
        found, left = self._scan(resource, self._blocks.last[block] + 1, node)
        if left is None:
            return found, None
        passed, left = self._pass_up(resource, left)
        return found + passed, left

    def _pass_up(self, resource: int, node: _Node) -> tuple[list[int], _Node | None]:
        """Follow a search from the start of a block up to where it has to be split: the defs on the way, and the search that is left."""
        if not node.is_plain or node.block in self._find_places(resource)[1]:
            return [], node
        return self._pass_dominators(resource, self._dominators.parent[node.block])

    def _pass_dominators(self, resource: int, block: int) -> tuple[list[int], _Node | None]:
        """The same from the end of a block (-1: an entry), for a search that asks for all cases and has met nothing."""
        last_defs, joins, stops = self._find_places(resource)
        found: list[int] = []
        while block >= 0:
            block = self._dominators.find_nearest(resource, block, stops)
            if block < 0:
                break
            last_def = last_defs.get(block)
            if last_def is not None and resource not in self._def_use.guarded:
                return [*found, last_def], None
            left: _Node | None = _Node(block, UNCONDITIONAL, _NOTHING)
            if last_def is not None:
                local, left = self._scan(resource, self._blocks.last[block] + 1, _Node(block, UNCONDITIONAL, _NOTHING))
                found += local
            if left is None or not left.is_plain or block in joins:
                return found, left
            block = self._dominators.parent[block]
        return found, None

    def _find_places(self, resource: int) -> tuple[Mapping[int, int], frozenset[int], frozenset[int]]:
        """Index the defs of a resource: block → its last def, the blocks where different defs can meet, and both kinds of blocks."""
        places = self._places.get(resource)
        if places is None:
            rows = self._def_use.definitions[resource]
            last_def = {self._blocks.block_of[row]: row for row in rows}
            joins = self._joins.find(last_def)
            places = self._places[resource] = (last_def, joins, joins.union(last_def))
            self._budget.charge(len(rows) + len(joins))  # paid behind, so that it is not done again for nothing
        return places

    def _find_near(self, row: int, resource: int, start: _Node) -> frozenset[int]:
        """The defs within reach of an instruction, nearest blocks first."""
        reach = self._find_reach(row, resource)
        blocks = self._blocks
        last_def, writes_predicates = self._find_places(resource)[0], self._writes_predicates
        found: set[int] = set()
        seen: set[int | tuple[int, int, frozenset[int]]] = set()
        heap = [(0, row, *start)]  # instructions passed, the end of what is to be looked at, and the node
        while heap:
            passed, end, block, condition, covered = heappop(heap)
            is_plain = condition == UNCONDITIONAL and not covered
            key = block if is_plain else (block, condition, covered)
            if key in seen:
                continue
            if passed:
                seen.add(key)
            if passed >= reach:
                break
            if block in last_def or (writes_predicates[block] and not is_plain):
                self._budget.charge(STEPS_PER_BLOCK)
                local, left = self._scan(resource, end, _Node(block, condition, covered), end - (reach - passed))
                found.update(local)
                if left is None:
                    continue
                _, condition, covered = left
            else:
                self._budget.charge(_STEPS_TO_PASS)
            passed += end - blocks.first[block]
            if passed >= reach:
                continue
            if condition == UNCONDITIONAL and not covered:
                for above, above_end, skipped in self._list_ways_up(resource, block):
                    heappush(heap, (passed + skipped, above_end, above, condition, covered))
            else:
                for one in blocks.predecessors[block]:
                    heappush(heap, (passed, blocks.last[one] + 1, one, condition, covered))
        return frozenset(found)

    def _list_ways_up(self, resource: int, block: int) -> list[tuple[int, int, int]]:
        """List the next blocks above a block in which defs are or can meet, for a search that asks for all cases."""
        ways = self._ways_up.setdefault(resource, {})
        if block not in ways:
            before = self._blocks.predecessors[block]
            self._budget.charge(STEPS_PER_BLOCK + len(before))
            stops = self._find_places(resource)[2]
            found = [(one, self._dominators.find_nearest(resource, one, stops)) for one in before]
            ways[block] = [
                (above, self._blocks.last[above] + 1, self._distances.measure(one, above))
                for one, above in found
                if above >= 0
            ]
        return ways[block]

    def _scan(self, resource: int, end: int, node: _Node, floor: float | None = None) -> tuple[list[int], _Node | None]:
        """The defs in a block before instruction ``end``, and what is left to find above the block; None when all is covered."""
        block, condition, covered = node
        definitions = self._def_use.definitions[resource]
        first = self._blocks.first[block]
        lowest = first if floor is None else max(first, floor)
        place = bisect_left(definitions, end) - 1
        found: list[int] = []
        while place >= 0 and definitions[place] >= lowest:
            if floor is None and len(found) == MOST_SOURCES:
                return [*found, _CROWD], None
            row = definitions[place]
            condition, covered = self._pass_writes(row, end, condition, covered)
            of_def = self._def_use.condition[row]
            if of_def not in covered:
                found.append(row)
                if of_def in (UNCONDITIONAL, condition) or of_def ^ 1 in covered:
                    return found, None
                covered |= {of_def}
            self._budget.charge(1)
            end = row
            place -= 1
        if lowest > first:
            return found, None
        condition, covered = self._pass_writes(first, end, condition, covered)
        return found, _Node(block, condition, covered)

    def _pass_writes(self, start: int, end: int, condition: int, covered: frozenset[int]) -> tuple[int, frozenset[int]]:
        """Drop conditions that cannot be compared above the instructions ``start..end - 1``: those on predicates written there."""
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


def _merge(
    steps: Sequence[tuple[Sequence[int], Sequence[_Node]]], known: Mapping[_Node, frozenset[int]]
) -> frozenset[int]:
    """Defs that all nodes of a cycle see. Sets are shared where nothing is added, so that long chains cost no memory."""
    local: set[int] = set()
    inherited: dict[int, frozenset[int]] = {}
    for found, above in steps:
        local.update(found)
        inherited.update((id(known[one]), known[one]) for one in above if known.get(one))
    sets = list(inherited.values())
    if len(sets) == 1 and local <= sets[0]:
        return sets[0]
    merged = frozenset(local).union(*sets)
    if len(merged - {_CROWD}) <= MOST_SOURCES:
        return merged
    return frozenset([*sorted(merged)[-MOST_SOURCES:], _CROWD])
