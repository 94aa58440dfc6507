"""Where defs of one resource can meet: the blocks above which a search has to look into more than one block.

A block that is no meeting place sees what the end of its immediate dominator sees, however many blocks lie between.

Source: R. Cytron et al., "Efficiently computing static single assignment form and the control dependence graph", TOPLAS 13 (1991), 451-490:
meeting places are the iterated dominance frontier of the blocks with defs.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.diagnosis.blame.graph_search import BlockLists

# Longest total way up the dominator tree, per block of the function. Deep nests of loops need the square of their depth; for them every block with
# several predecessors is taken for a meeting place.
MOST_FRONTIER_STEPS_PER_BLOCK = 64


class Joins:
    """Meeting places in one function.

    Blocks that cannot be reached from an entry, and those that such blocks lead to, count as meeting places always: dominators do not know
    of them.

    Args:
        graph: the function.
        blocks: its blocks.
    """

    __slots__ = ("_always", "_frontier", "_nearest", "dominator")

    def __init__(self, graph: FlowGraph, blocks: BlockLists) -> None:
        self.dominator: list[int] = graph.immediate_dominator.tolist()
        self._nearest: dict[int, dict[int, int]] = {}
        lost = set(np.flatnonzero(~graph.is_reachable).tolist())
        always = lost.union(*(blocks.successors[block] for block in lost))
        frontier = self._find_frontier(blocks)
        if frontier is None:
            always.update(block for block, before in enumerate(blocks.predecessors) if self._is_split(block, before))
        self._frontier = frontier or {}
        self._always = frozenset(always)
        self._always = self.find(always)

    def find(self, definitions: Iterable[int]) -> frozenset[int]:
        """The meeting places of defs."""
        found = set(self._always)
        waiting = list(definitions)
        while waiting:
            for block in self._frontier.get(waiting.pop(), ()):
                if block not in found:
                    found.add(block)
                    waiting.append(block)
        return frozenset(found)

    def find_nearest(self, key: int, block: int, stops: Mapping[int, object] | frozenset[int]) -> int:
        """The first block of some on the way up the dominators from a block, itself included; -1 when there is none.

        Args:
            key: names ``stops``, so that what was found is remembered.
        """
        known = self._nearest.get(key)
        if known is None:
            known = self._nearest[key] = {-1: -1}
        passed = []
        while block not in known:
            passed.append(block)
            if block in stops:
                known[block] = block
                break
            block = self.dominator[block]
        known.update(dict.fromkeys(passed, known[block]))
        return known[block]

    def _is_split(self, block: int, before: Sequence[int]) -> bool:
        """Whether a block can be entered in several ways; an entry can from outside."""
        return len(before) > 1 or self.dominator[block] < 0

    def _find_frontier(self, blocks: BlockLists) -> dict[int, list[int]] | None:
        """Block → the blocks where its dominance ends; None when that takes too long."""
        left = MOST_FRONTIER_STEPS_PER_BLOCK * len(blocks.first)
        frontier: dict[int, list[int]] = {}
        for block, before in enumerate(blocks.predecessors):
            if not self._is_split(block, before):
                continue
            top = self.dominator[block]
            for one in before:
                above = one
                while above not in (top, -1):
                    frontier.setdefault(above, []).append(block)
                    above = self.dominator[above]
                    left -= 1
                if left < 0:
                    return None
        return frontier
