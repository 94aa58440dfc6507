"""An order to run blocks in, so that lanes that parted meet again as early as they can."""

from collections.abc import Sequence

from gpa_lsp.control_flow.depth_first import DepthFirstTree, walk_depth_first
from gpa_lsp.control_flow.loops import LoopForest, find_loops

_DEEPEST = 64
"""Loops nested deeper are ranked as if they were one."""


def rank_blocks(successors: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The rank of each block, 0 first; block 0 is where the function begins.

    Reverse post order of a depth-first walk alone would let what follows a loop run before the loop's last blocks. So each loop is ordered by
    itself, an inner loop standing for one block in it: a loop's blocks are together, its header first, and every jump but those back to
    headers (and into the middle of irreducible loops) goes to a higher rank.

    >>> rank_blocks([[1], [4, 2], [3, 1], [1], []])
    (0, 1, 2, 3, 4)
    """
    if not successors:
        return ()
    count = len(successors)
    graph = [*successors, [0]]
    tree = walk_depth_first(graph, count)
    forest = find_loops(tree, tree.predecessor_ranks(graph))
    order = _Orderer(graph, tree, forest).order()
    ranks = [-1] * count
    for rank, block in enumerate(order):
        ranks[block] = rank
    place = len(order)
    for block in range(count):
        if ranks[block] < 0:
            ranks[block] = place
            place += 1
    return tuple(ranks)


class _Orderer:
    """Orders the nodes of each loop by themselves.

    A node of a *level* is a block directly in a loop (or in none), or an inner loop as a whole: number of blocks + its number.
    """

    def __init__(self, graph: Sequence[Sequence[int]], tree: DepthFirstTree, forest: LoopForest) -> None:
        self._count = len(graph) - 1
        self._loops = forest.loops
        self._chains: dict[int, tuple[int, ...]] = {-1: ()}
        for number, loop in enumerate(forest.loops):
            above = self._chains[-1 if loop.parent is None else loop.parent]
            self._chains[number] = (*above, number) if len(above) < _DEEPEST else above
        self._innermost = forest.innermost
        self._reached = [rank >= 0 for rank in tree.rank_of_node[: self._count]]
        self._edges: dict[int, dict[int, list[int]]] = {}
        """Level (loop's number, -1 for none) → node → following nodes of that level."""
        for block in range(self._count):
            if self._reached[block]:
                for other in graph[block]:
                    self._add_edge(block, other)

    def _add_edge(self, block: int, other: int) -> None:
        """Put an edge into the innermost loop that holds both ends, each represented by what it is there."""
        left, right = (self._chains[self._innermost[end]] for end in (block, other))
        shared = 0
        while shared < min(len(left), len(right)) and left[shared] == right[shared]:
            shared += 1
        level = left[shared - 1] if shared else -1
        ends = [
            self._count + chain[shared] if len(chain) > shared else end
            for chain, end in ((left, block), (right, other))
        ]
        if ends[0] == ends[1] or (level >= 0 and other == self._loops[level].header):
            return
        self._edges.setdefault(level, {}).setdefault(ends[0], []).append(ends[1])

    def order(self) -> list[int]:
        """All reached blocks, in the order to run them."""
        found: list[int] = []
        waiting = [iter(self._order_level(-1, 0))]
        while waiting:
            for node in waiting[-1]:
                if node < self._count:
                    found.append(node)
                    continue
                loop = node - self._count
                waiting.append(iter(self._order_level(loop, self._loops[loop].header)))
                break
            else:
                waiting.pop()
        return found

    def _order_level(self, level: int, start: int) -> list[int]:
        """Reverse post order of one level, from the node that holds ``start``."""
        chain = self._chains[self._innermost[start]]
        depth = 0 if level < 0 else len(self._chains[level])
        root = self._count + chain[depth] if len(chain) > depth else start
        edges = self._edges.get(level, {})
        # Headers of inner loops and blocks of irreducible ones may be entered from several sides, but all are reached from the root.
        met = {root}
        done: list[int] = []
        stack = [(root, iter(edges.get(root, ())))]
        while stack:
            node, rest = stack[-1]
            for other in rest:
                if other not in met:
                    met.add(other)
                    stack.append((other, iter(edges.get(other, ()))))
                    break
            else:
                done.append(node)
                stack.pop()
        return done[::-1]
