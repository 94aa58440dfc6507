"""Shortest paths between instructions, in instructions and in encoded cycles: how close a use can follow its def."""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.diagnosis.blame.graph_search import STEPS_PER_BLOCK, BlockLists, charge
from gpa_lsp.diagnosis.blame.work import WorkBudget


class Distance(NamedTuple):
    """A path from a def to a use."""

    instructions: int  # from after the def up to and including the use; 1 where the use follows directly
    cycles: int  # sum of the stall counts of the def and of what lies between: from the def's issue to the use's at the earliest


class _Search(Struct):
    """A search from the end of one block, kept so that it can go on for a use farther away."""

    # (instructions, cycles, block, block before it) of blocks seen from the end of the first one, up to their first instruction
    heap: list[tuple[int, int, int, int]] = field(default_factory=list)
    # block → (instructions, cycles, block before it)
    settled: dict[int, tuple[int, int, int]] = field(default_factory=dict)


class ShortestPaths:
    """Shortest paths of one function: fewest instructions, and of those fewest encoded cycles.

    Calls are stepped over: what runs in the callee does not count.

    Args:
        blocks: of the function.
        stall_cycles: int64[n], encoded stall counts.
        budget: pays for the searches.

    Source: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1 (1959), 269-271, over blocks.
    """

    __slots__ = ("_blocks", "_budget", "_cycles_before", "_searches")

    def __init__(self, blocks: BlockLists, stall_cycles: npt.NDArray[np.int64], budget: WorkBudget) -> None:
        self._blocks = blocks
        self._budget = budget
        self._cycles_before = [0, *np.cumsum(stall_cycles).tolist()]
        self._searches: dict[int, _Search] = {}

    def find(self, def_row: int, use_row: int, limit: float = float("inf")) -> Distance | None:
        """The shortest path from a def to a use, which may be the same instruction one turn of a loop later.

        Returns:
            None when there is no path, or only longer ones.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        blocks, before = self._blocks, self._cycles_before
        source, target = blocks.block_of[def_row], blocks.block_of[use_row]
        if source == target and def_row < use_row:
            straight = Distance(use_row - def_row, before[use_row] - before[def_row])
            return straight if straight.instructions <= limit else None
        ends = blocks.last[source] - def_row + use_row - blocks.first[target] + 1
        between = self._settle(source, target, limit - ends) if ends <= limit else None
        if between is None:
            return None
        cycles = before[blocks.last[source] + 1] - before[def_row] + before[use_row] - before[blocks.first[target]]
        return Distance(ends + between[0], cycles + between[1])

    def find_blocks_between(self, def_row: int, use_row: int) -> list[int]:
        """The blocks that a path found before passes from end to end, in its order; empty within one block.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        source, target = self._blocks.block_of[def_row], self._blocks.block_of[use_row]
        if source == target and def_row < use_row:
            return []
        settled = self._searches[source].settled
        passed: list[int] = []
        block = settled[target][2]
        while block != source:
            charge(self._budget, 1)
            passed.append(block)
            block = settled[block][2]
        return passed[::-1]

    def _settle(self, source: int, target: int, limit: float) -> tuple[int, int, int] | None:
        search = self._searches.get(source)
        if search is None:
            search = self._searches[source] = _Search()
            for block in self._blocks.successors[source]:
                heappush(search.heap, (0, 0, block, source))
        found = search.settled.get(target)
        if found is not None:
            return found if found[0] <= limit else None
        while search.heap and search.heap[0][0] <= limit:
            charge(self._budget, STEPS_PER_BLOCK + len(self._blocks.successors[search.heap[0][2]]))
            instructions, cycles, block, before = heappop(search.heap)
            if block in search.settled:
                continue
            search.settled[block] = (instructions, cycles, before)
            self._expand(search, source, block)
            if block == target:
                return search.settled[block]
        return None

    def _expand(self, search: _Search, source: int, block: int) -> None:
        """Paths that come back to the first block end there: going through it again leads nowhere new."""
        if block == source:
            return
        instructions, cycles, _ = search.settled[block]
        first, last = self._blocks.first[block], self._blocks.last[block]
        instructions += last - first + 1
        cycles += self._cycles_before[last + 1] - self._cycles_before[first]
        for successor in self._blocks.successors[block]:
            if successor not in search.settled:
                heappush(search.heap, (instructions, cycles, successor, block))


class DominatorDistances:
    """How far blocks of one function are from the blocks that dominate them: every way to a block leads past all of them, one after the other.

    Args:
        blocks: of the function.
        dominator: immediate dominator of each block; -1 for entries.
        paths: of the function.
    """

    __slots__ = ("_blocks", "_depth", "_dominator", "_paths")

    def __init__(self, blocks: BlockLists, dominator: Sequence[int], paths: ShortestPaths) -> None:
        self._blocks = blocks
        self._dominator = dominator
        self._paths = paths
        self._depth = {-1: 0}

    def measure(self, block: int, above: int) -> int:
        """Instructions on the shortest way from the end of a dominator to the end of a block; 0 for the block itself.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        return self._find_depth(block) - self._find_depth(above)

    def _find_depth(self, block: int) -> int:
        """Instructions on the shortest way through all dominators of a block, up to its end."""
        passed = []
        while block not in self._depth:
            passed.append(block)
            block = self._dominator[block]
        for one in reversed(passed):
            self._depth[one] = self._depth[block] + self._find_gap(block, one) + self._blocks.count_instructions(one)
            block = one
        return self._depth[block]

    def _find_gap(self, dominator: int, block: int) -> int:
        """Instructions on the shortest way between a block and its immediate dominator."""
        if dominator < 0 or self._blocks.predecessors[block] == [dominator]:
            return 0
        found = self._paths.find(self._blocks.last[dominator], self._blocks.first[block])
        return 0 if found is None else found.instructions - 1
