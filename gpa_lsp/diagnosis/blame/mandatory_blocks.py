"""Blocks that every path between two blocks passes."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.diagnosis.blame.graph_search import STEPS_PER_BLOCK, BlockLists, charge, find_components
from gpa_lsp.diagnosis.blame.work import WorkBudget


class MandatoryBlocks:
    """Answers for one function which blocks cannot be avoided on the way from one block to another.

    Dominators and post-dominators of the function decide most questions at once. Where they do not (within loops, mostly), two searches from
    both ends try to meet without the blocks asked for; the one that comes to its end first decides.

    Args:
        graph: the function.
        blocks: its blocks.
        budget: pays for the searches.
    """

    __slots__ = ("_blocks", "_budget", "_dominators", "_known", "_order", "_post_dominators")

    def __init__(self, graph: FlowGraph, blocks: BlockLists, budget: WorkBudget) -> None:
        self._blocks = blocks
        self._budget = budget
        self._known: dict[tuple[int, int, frozenset[int]], bool] = {}
        self._dominators = _Tree(graph.immediate_dominator, graph.is_reachable)
        self._post_dominators = _Tree(graph.immediate_post_dominator, graph.reaches_end)
        self._order = [0] * graph.block_count
        parts = find_components(range(graph.block_count), blocks.successors.__getitem__)
        for place, part in enumerate(parts):
            for block in part:
                self._order[block] = -place

    def is_separated(self, source: int, target: int, key: int, asked: Collection[int]) -> bool:
        """Whether one of some blocks dominates the target but not the source, or post-dominates the source but not the target.

        A way from an entry to the source that avoids such a block, and on to the target, must meet it after the source. It is enough to
        look at the nearest one: those farther up dominate it.

        Args:
            key: names ``asked``, so that what was found is remembered.
        """
        return self._dominators.separates(source, target, key, asked) or self._post_dominators.separates(
            target, source, key, asked
        )

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
            charge(self._budget, 2 * STEPS_PER_BLOCK)
            if forwards.advance(backwards.met, target) or backwards.advance(forwards.met, source):
                return True
        return False


class _Flood:
    """A search that spreads from a block over its neighbours, level by level, one block at a time."""

    __slots__ = ("_is_allowed", "_neighbours", "_place", "_start", "met", "order")

    def __init__(self, neighbours: Sequence[Sequence[int]], start: int, is_allowed: Callable[[int], bool]) -> None:
        self._neighbours = neighbours
        self._is_allowed = is_allowed
        self._start = start
        self._place = 0
        self.met: set[int] = set()
        self.order = [start]

    @property
    def waiting(self) -> bool:
        """There are blocks left to look at."""
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


class _Tree:
    """A dominator tree, in which one question costs two comparisons."""

    __slots__ = ("_end", "_is_member", "_nearest", "_parent", "_start")

    def __init__(self, parent: npt.NDArray[np.int32], is_member: npt.NDArray[np.bool_]) -> None:
        self._is_member: list[bool] = is_member.tolist()
        self._parent: list[int] = parent.tolist()
        self._nearest: dict[int, dict[int, int]] = {}
        children: list[list[int]] = [[] for _ in range(len(parent) + 1)]
        for block, above in enumerate(self._parent):
            children[above].append(block)  # the last list is that of -1, the virtual root
        self._start = [0] * len(children)
        self._end = [0] * len(children)
        clock = 0
        stack = [(len(parent), False)]
        while stack:
            block, is_done = stack.pop()
            if is_done:
                self._end[block] = clock
                continue
            self._start[block] = clock = clock + 1
            stack.append((block, True))
            stack.extend((child, False) for child in children[block])

    def separates(self, lower: int, upper: int, key: int, asked: Collection[int]) -> bool:
        """Whether one of some blocks is above ``upper``, but not above ``lower``; neither of the two counts."""
        if not self._is_member[lower] or not self._is_member[upper]:
            return False
        nearest = self._find_nearest(self._parent[upper], key, asked)
        return nearest >= 0 and not self._start[nearest] <= self._start[lower] <= self._end[nearest]

    def _find_nearest(self, block: int, key: int, asked: Collection[int]) -> int:
        """The first of some blocks on the way up from a block, itself included; -1 when there is none."""
        known = self._nearest.setdefault(key, {-1: -1})
        passed = []
        while block not in known:
            if block in asked:
                known[block] = block
            else:
                passed.append(block)
                block = self._parent[block]
        known.update(dict.fromkeys(passed, known[block]))
        return known[block]
