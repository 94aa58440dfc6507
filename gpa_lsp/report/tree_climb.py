"""Climbing a dominator tree past everything that does not matter to a question, in logarithmic time."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


class ClimbingTree:
    """A forest of t nodes whose subtrees are ranges of numbers, with a second link per node that leads further up.

    Where a block dominates another one, every path to the second one ends with a part that stays among the blocks the first one dominates. What
    the second one dominates can be on that part only if a loop leads back from it, and then so is the header of a loop around the second one. So
    a question about paths that meets nothing of interest in between can go on from the first block at once.

    Args:
        parents: of each node; -1 for roots.

    Source: the second links are Myers' (*An applicative random-access stack*, 1983): a climb takes O(log t) steps.
    """

    __slots__ = ("_jump", "_last", "_parent", "number")

    def __init__(self, parents: Sequence[int]) -> None:
        count = len(parents)
        children: list[list[int]] = [[] for _ in range(count)]
        roots: list[int] = []
        for node, parent in enumerate(parents):
            (children[parent] if parent >= 0 else roots).append(node)
        self._parent = [node if parent < 0 else parent for node, parent in enumerate(parents)]
        self._jump = list(range(count))
        self.number = [0] * count
        order = self._number_nodes(roots, children)
        self._last = list(self.number)
        for node in reversed(order):
            parent = self._parent[node]
            self._last[parent] = max(self._last[parent], self._last[node])

    def _number_nodes(self, roots: Sequence[int], children: Sequence[Sequence[int]]) -> list[int]:
        """Nodes before what is below them; ``number`` is a node's place in that order."""
        depth = [0] * len(children)
        order: list[int] = []
        waiting = list(reversed(roots))
        while waiting:
            node = waiting.pop()
            self.number[node] = len(order)
            order.append(node)
            parent = self._parent[node]
            if parent != node:
                depth[node] = depth[parent] + 1
                over = self._jump[parent]
                is_even = depth[parent] - depth[over] == depth[over] - depth[self._jump[over]]
                self._jump[node] = self._jump[over] if is_even else parent
            waiting.extend(children[node])
        return order

    def climb(self, node: int, stops: Sequence[int], header: int = -1) -> int:
        """The highest node that can be gone on from in the place of a node: no stop is below it that is not below the node as well.

        Stops below the node itself matter only where paths come back from them, around a loop. Then the climb ends at the loop's header; and does
        not begin where the header is the node, or is not above it (in loops with several entries).

        Args:
            node: where to begin.
            stops: numbers (``number``) of nodes, ascending.
            header: of the innermost loop around the node; -1 outside loops.

        >>> tree = ClimbingTree([-1, 0, 1, 1, 3])
        >>> [tree.climb(4, [tree.number[stop] for stop in stops]) for stops in ((), (0,), (2,), (4,))]
        [0, 1, 3, 0]
        >>> tree.climb(4, [tree.number[4]], header=1)
        1
        """
        number, last, parent, jump = self.number, self._last, self._parent, self._jump
        place = bisect_left(stops, number[node])
        low = stops[place - 1] if place else -1
        if place < len(stops) and stops[place] <= last[node]:
            if header >= 0:
                if header == node or not number[header] < number[node] <= last[header]:
                    return node
                low = max(low, number[header] - 1)
            place = bisect_right(stops, last[node])
        high = stops[place] if place < len(stops) else len(number)
        while True:
            above = jump[node]
            if above == node or number[above] <= low or last[above] >= high:
                above = parent[node]
                if above == node or number[above] <= low or last[above] >= high:
                    return node
            node = above
