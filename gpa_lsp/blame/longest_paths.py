"""Longest paths between instructions: the path length of the published apportioning.

The longest *simple* path of a graph with cycles cannot be found in reasonable time, and the longest path of all is endless. So:

* A path from a def to a use is over when it comes to either of them: it neither returns to the def's block nor goes on behind the use's.
  That cuts every loop that leads through one of the two, and leaves the turn of the loop on which the value travels.
* A loop that lies between the two counts each of its instructions once, as if its body ran one time from its first to its last instruction:
  strongly connected parts of what is left become one node, of as many instructions as they hold.

What remains has no cycle, and its longest path is found in one pass. It is never shorter than the longest simple path.

Source: GPA section IV, "Attribute stalls", heuristic 2 ("if an instruction i has multiple paths to instruction j we use the longest one").
"""

from collections.abc import Collection, Iterable, Sequence

from gpa_lsp.blame.graph_search import STEPS_PER_BLOCK, BlockLists, charge, find_components
from gpa_lsp.blame.work import WorkBudget


class LongestPaths:
    """Longest paths of one function, in instructions; calls are stepped over.

    Args:
        blocks: of the function.
        budget: pays for the searches.
    """

    __slots__ = ("_between", "_blocks", "_budget")

    def __init__(self, blocks: BlockLists, budget: WorkBudget) -> None:
        self._blocks = blocks
        self._budget = budget
        self._between: dict[tuple[int, int], int] = {}

    def find(self, def_row: int, use_row: int) -> int:
        """Instructions on the longest path from after a def up to and including a use that it reaches.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        blocks = self._blocks
        source, target = blocks.block_of[def_row], blocks.block_of[use_row]
        if source == target and def_row < use_row:
            return use_row - def_row
        between = self._between.get((source, target))
        if between is None:
            between = self._between[source, target] = self._measure(source, target)
        return blocks.last[source] - def_row + between + use_row - blocks.first[target] + 1

    def _measure(self, source: int, target: int) -> int:
        """Instructions in the blocks that a longest path passes between two blocks."""
        blocks = self._blocks
        inside = self._find_blocks_between(source, target)

        def follow(block: int) -> Iterable[int]:
            charge(self._budget, STEPS_PER_BLOCK)
            return (one for one in blocks.successors[block] if one in inside)

        roots = [block for block in blocks.successors[source] if block in inside]
        longest: dict[int, int] = {}
        for component in find_components(roots, follow):
            onwards = max((longest.get(one, 0) for block in component for one in follow(block)), default=0)
            length = onwards + sum(map(blocks.count_instructions, component))
            longest.update(dict.fromkeys(component, length))
        return max((longest[block] for block in roots), default=0)

    def _find_blocks_between(self, source: int, target: int) -> Collection[int]:
        """The blocks on paths from ``source`` to ``target`` that pass neither of the two.

        Searches from both ends take turns; the one that is done first bounds the other.
        """
        blocks = self._blocks
        ends = {source, target}
        forwards = _Flood(blocks.successors, source, ends)
        backwards = _Flood(blocks.predecessors, target, ends)
        while forwards.waiting and backwards.waiting:
            charge(self._budget, 2 * STEPS_PER_BLOCK)
            forwards.advance()
            backwards.advance()
        done, other = (backwards, forwards) if forwards.waiting else (forwards, backwards)
        restarted = _Flood(other.neighbours, other.start, ends, done.met)
        while restarted.waiting:
            charge(self._budget, STEPS_PER_BLOCK)
            restarted.advance()
        return restarted.met


class _Flood:
    """A search that spreads from a block over its neighbours, one block at a time."""

    __slots__ = ("_allowed", "_ends", "met", "neighbours", "start", "waiting")

    def __init__(
        self,
        neighbours: Sequence[Sequence[int]],
        start: int,
        ends: Collection[int],
        allowed: Collection[int] | None = None,
    ) -> None:
        self.neighbours = neighbours
        self.start = start
        self.met: set[int] = set()
        self.waiting: list[int] = []
        self._ends = ends
        self._allowed = allowed
        self._spread(start)

    def advance(self) -> None:
        """Look at one more block."""
        self._spread(self.waiting.pop())

    def _spread(self, block: int) -> None:
        for one in self.neighbours[block]:
            if one in self._ends or one in self.met or (self._allowed is not None and one not in self._allowed):
                continue
            self.met.add(one)
            self.waiting.append(one)
