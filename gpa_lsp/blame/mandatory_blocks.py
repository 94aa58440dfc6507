"""Blocks that every path between two blocks passes."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.blame.graph_search import STEPS_PER_BLOCK, BlockLists, charge
from gpa_lsp.blame.work import WorkBudget
from gpa_lsp.program.model import FlowGraph


class MandatoryBlocks:
    """Answers for one function which blocks cannot be avoided on the way from one block to another.

    Dominators and post-dominators of the function decide most questions at once; where they do not (within loops, mostly), one pass over the
    blocks around a path does.

    Args:
        graph: the function.
        blocks: its blocks.
        budget: pays for the searches.
    """

    __slots__ = ("_blocks", "_budget", "_dominators", "_known", "_post_dominators")

    def __init__(self, graph: FlowGraph, blocks: BlockLists, budget: WorkBudget) -> None:
        self._blocks = blocks
        self._budget = budget
        self._known: dict[tuple[int, int], frozenset[int]] = {}
        self._dominators = _Tree(graph.immediate_dominator, graph.is_reachable)
        self._post_dominators = _Tree(graph.immediate_post_dominator, graph.reaches_end)

    def is_separated(self, source: int, target: int, key: int, asked: Collection[int]) -> bool:
        """Whether one of some blocks dominates the target but not the source, or post-dominates the source but not the target.

        A way from an entry to the source that avoids such a block, and on to the target, must meet it after the source. It is enough to
        look at the nearest one: those farther up dominate it.

        Args:
            source: where paths start.
            target: where they end.
            key: names ``asked``, so that what was found is remembered.
            asked: the blocks.
        """
        return self._dominators.separates(source, target, key, asked) or self._post_dominators.separates(
            target, source, key, asked
        )

    def has_any(self, source: int, target: int, path: Sequence[int], asked: Collection[int]) -> bool:
        """Whether one of some blocks lies on every path from the end of ``source`` to the start of ``target``.

        Args:
            source: where paths start; they do not come back to it.
            target: where they end, at their first arrival.
            path: the blocks between the two on one path.
            asked: the blocks.

        Raises:
            OutOfWorkError: the budget is spent.
        """
        found = self._known.get((source, target))
        if found is None:
            found = self._known[source, target] = frozenset(self._walk(source, target, path))
        return not found.isdisjoint(asked)

    def _walk(self, source: int, target: int, path: Sequence[int]) -> list[int]:
        """The blocks of a path that no detour leads round.

        A detour leaves the path at one place and comes back to it farther on, through blocks beside the path. Going along the path and
        keeping how far any detour so far has led, a block is mandatory when none led past it.
        """
        place = {block: index for index, block in enumerate(path, start=1)}
        place[target] = len(path) + 1
        if source != target:
            place[source] = 0
        seen: set[int] = set()
        mandatory = []
        farthest = self._follow_detours(source, place, seen)
        for index, block in enumerate(path, start=1):
            if farthest <= index:
                mandatory.append(block)
            farthest = max(farthest, self._follow_detours(block, place, seen))
        return mandatory

    def _follow_detours(self, start: int, place: dict[int, int], seen: set[int]) -> int:
        """The farthest place on the path that is reached from a block on it, through blocks not seen yet beside it."""
        farthest = 0
        waiting = [start]
        while waiting:
            charge(self._budget, STEPS_PER_BLOCK)
            for block in self._blocks.successors[waiting.pop()]:
                if block in place:
                    farthest = max(farthest, place[block])
                elif block not in seen:
                    seen.add(block)
                    waiting.append(block)
        return farthest


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
