"""Graphs entered at roots: reachability, dominators, nested loops, and backward data-flow equations.

Graphs come as successor lists: ``successors[node]`` are the nodes that can follow ``node``. Nothing here recurses, so a chain of a hundred
thousand blocks is no deeper than any other graph. Everything takes nearly linear time, on graphs made to hurt too.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import TypeVar

from msgspec import Struct

from gpa_lsp.code.control_flow.model import Loop, list_loops_outward

Adjacency = Sequence[Sequence[int]]  # For each node the neighbouring nodes
_Value = TypeVar("_Value")


def reverse_edges(successors: Adjacency) -> list[list[int]]:
    """Predecessors of each node, ascending.

    >>> reverse_edges([[1, 2], [2], []])
    [[], [0], [0, 1]]
    """
    found: list[list[int]] = [[] for _ in successors]
    for node, following in enumerate(successors):
        for other in following:
            found[other].append(node)
    return found


class LoopForest(Struct, frozen=True, kw_only=True):
    """All loops of a graph."""

    loops: tuple[Loop, ...]  # outer before inner, siblings by header; without source lines
    innermost: list[int]  # for each node the number of the innermost loop around it; -1 outside loops
    # the nodes in loops, by innermost loop, then number; a loop's nodes are ``block_count`` of them from ``order_start`` on
    order: list[int]

    def list_around(self, node: int) -> tuple[int, ...]:
        """Numbers of the loops that hold a node, innermost first."""
        return list_loops_outward(self.loops, self.innermost[node])

    def list_members(self) -> tuple[frozenset[int], ...]:
        """Nodes of each loop, those of inner loops included."""
        return tuple(
            frozenset(self.order[loop.order_start : loop.order_start + loop.block_count]) for loop in self.loops
        )


class RootedGraph:
    """The part of a graph that its roots reach, by its depth-first spanning tree, successors taken in the order given.

    The tree starts at a virtual root that leads to all roots. *Ranks* number the nodes it reaches in the order they are first met.

    Attributes:
        is_reached: for each node whether a root leads to it.

    Args:
        successors: for each node the nodes that can follow it.
        roots: where paths start.

    >>> graph = RootedGraph([[1, 3], [2], [1, 2], [], [0]], [0])
    >>> graph.is_reached
    [True, True, True, True, False]
    >>> graph.find_dominators()
    [-1, 0, 1, 0, -1]
    >>> forest = graph.find_loops()
    >>> [(loop.header, loop.depth, loop.block_count) for loop in forest.loops], forest.innermost, forest.order
    ([(1, 1, 2), (2, 2, 1)], [-1, 0, 1, -1, -1], [1, 2])
    """

    def __init__(self, successors: Adjacency, roots: Sequence[int]) -> None:
        virtual = len(successors)
        rooted = [*successors, roots]
        self._rank_of_node = [-1] * len(rooted)
        self._rank_of_node[virtual] = 0
        self._node_of_rank = [virtual]
        self._parent = [0]
        stack = [(0, iter(roots))]
        while stack:
            rank, rest = stack[-1]
            for node in rest:
                if self._rank_of_node[node] < 0:
                    self._rank_of_node[node] = len(self._node_of_rank)
                    stack.append((len(self._node_of_rank), iter(successors[node])))
                    self._node_of_rank.append(node)
                    self._parent.append(rank)
                    break
            else:
                stack.pop()
        self.is_reached = [rank >= 0 for rank in self._rank_of_node[:-1]]
        # For each rank the ranks with an edge to it
        self._predecessors: list[list[int]] = [[] for _ in self._node_of_rank]
        for rank, node in enumerate(self._node_of_rank):
            for following in rooted[node]:
                self._predecessors[self._rank_of_node[following]].append(rank)

    def find_dominators(self) -> list[int]:
        """The immediate dominator of every node: the last node that every path from a root to it passes.

        Post-dominators are the dominators of the reversed graph with the exits as roots.

        Returns:
            For each node its immediate dominator; -1 for roots that nothing else dominates, for nodes with no dominator but themselves (paths
            from several roots meet there), and for nodes that no root reaches.

        Source:
            T. Lengauer, R. E. Tarjan, "A fast algorithm for finding dominators in a flowgraph", TOPLAS 1 (1979), 121-141; the simple version,
            O(e log n), with the path compression unrolled. The shorter iterative algorithms take quadratic time on graphs made to hurt.
        """
        by_rank = _find_dominators_by_rank(self._parent, self._predecessors)
        found = [-1] * (len(self._rank_of_node) - 1)
        for rank in range(1, len(by_rank)):
            if by_rank[rank]:
                found[self._node_of_rank[rank]] = self._node_of_rank[by_rank[rank]]
        return found

    def find_loops(self) -> LoopForest:
        """The loops and how they nest, reducible or not.

        A loop is a header and the nodes from which a jump back to the header can be reached without passing it. In a reducible loop, a *natural*
        one, the header dominates all of them. Where code jumps into the middle of a cycle there is no such header; the node of the cycle that is
        met first in depth-first order stands in for it, and the loop is marked irreducible. A node lies on a cycle exactly when it is in a loop.

        Source: P. Havlak, "Nesting of reducible and irreducible loops", TOPLAS 19 (1997), 557-567, which generalises Tarjan's intervals, with the
        repair that makes it nearly linear: G. Ramalingam, "Identifying loops in almost linear time", TOPLAS 21 (1999), 175-188 (edges that are
        no ancestor relation wait at the lowest common ancestor of their ends).
        """
        header_above, sources = self._nest_ranks()
        numbers = self._number_loops(header_above, sources)
        headers = list(numbers)
        parents = [numbers.get(header_above[header], -1) for header in headers]
        last_inner = list(range(len(parents)))
        for number in range(len(parents) - 1, -1, -1):
            if parents[number] >= 0:
                last_inner[parents[number]] = max(last_inner[parents[number]], last_inner[number])
        innermost = [-1] * len(self._rank_of_node)
        for rank, node in enumerate(self._node_of_rank):
            innermost[node] = numbers.get(rank, numbers.get(header_above[rank], -1))
        counts = [0] * len(headers)
        for loop in innermost:
            if loop >= 0:
                counts[loop] += 1
        starts = list(accumulate(counts, initial=0))
        irreducible = self._find_irreducible(headers, parents, last_inner, innermost)
        innermost.pop()
        loops: list[Loop] = []
        for number, header in enumerate(headers):
            parent = parents[number]
            loops.append(
                Loop(
                    header=self._node_of_rank[header],
                    back_edge_sources=tuple(sorted(self._node_of_rank[source] for source in sources[header])),
                    parent=parent if parent >= 0 else None,
                    depth=1 if parent < 0 else loops[parent].depth + 1,
                    last_inner=last_inner[number],
                    order_start=starts[number],
                    block_count=starts[last_inner[number] + 1] - starts[number],
                    is_irreducible=irreducible[number],
                )
            )
        members = [node for node, loop in enumerate(innermost) if loop >= 0]
        return LoopForest(loops=tuple(loops), innermost=innermost, order=sorted(members, key=innermost.__getitem__))

    def _nest_ranks(self) -> tuple[list[int], dict[int, list[int]]]:
        """Header of the innermost loop around each rank, other than its own (0: none); and header → sources of its back edges.

        Headers are tried from the last rank down, so inner loops are complete, and collapsed into their header, before the loops around them.
        """
        count = len(self._parent)
        # Highest rank in the subtree of each rank; u is v or an ancestor of v exactly when ``u <= v <= last[u]``
        last = list(range(count))
        for rank in range(count - 1, 0, -1):
            last[self._parent[rank]] = max(last[self._parent[rank]], last[rank])
        header_above = [0] * count
        sources: dict[int, list[int]] = {}
        collapsed = list(range(count))  # Union-find: the header of the outermost loop found so far around each rank
        # Union-find: each rank's nearest ancestor whose turn is still to come, which for the ends of an edge is their common one
        finished = list(range(count))
        # Ranks from which each collapsed loop is entered, as far as that matters to the header whose turn it is
        entering = [[parent] for parent in self._parent]
        waiting: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for rank in range(count - 1, 0, -1):
            for source, target in waiting[rank]:
                entering[_find(collapsed, target)].append(source)
            back = []
            for source in self._predecessors[rank]:
                if rank <= source <= last[rank]:
                    back.append(source)
                elif source != self._parent[rank]:
                    waiting[_find(finished, source)].append((source, rank))
            finished[rank] = self._parent[rank]
            if back:
                sources[rank] = back
                _collapse_loop(rank, back, entering, collapsed, header_above)
        return header_above, sources

    def _number_loops(self, header_above: list[int], sources: dict[int, list[int]]) -> dict[int, int]:
        """Rank of each loop's header → the loop's number: outer before inner, siblings by header node."""
        inner: dict[int, list[int]] = {}
        for header in sorted(sources, key=self._node_of_rank.__getitem__, reverse=True):
            inner.setdefault(header_above[header], []).append(header)
        numbers: dict[int, int] = {}
        stack = inner.get(0, [])
        while stack:
            header = stack.pop()
            numbers[header] = len(numbers)
            stack.extend(inner.get(header, ()))
        return numbers

    def _find_irreducible(
        self, headers: list[int], parents: list[int], last_inner: list[int], innermost: list[int]
    ) -> list[bool]:
        """Whether an edge enters each loop elsewhere than at its header."""
        count = len(headers)
        marked = [False] * count
        # Union-find: the innermost unmarked loop among each loop and those around it; the last item stands for "none"
        unmarked = list(range(count + 1))
        for rank in range(1, len(self._node_of_rank)):
            loop = innermost[self._node_of_rank[rank]]
            if loop >= 0 and headers[loop] == rank:
                loop = parents[loop]
            if loop < 0:
                continue
            for source in self._predecessors[rank]:
                home = innermost[self._node_of_rank[source]]
                entered = _find(unmarked, loop)
                while entered < count and not entered <= home <= last_inner[entered]:
                    marked[entered] = True
                    unmarked[entered] = parents[entered] if parents[entered] >= 0 else count
                    entered = _find(unmarked, entered)
        return marked


def _find_dominators_by_rank(parent: list[int], predecessors: list[list[int]]) -> list[int]:
    count = len(parent)
    semi = list(range(count))
    label = list(range(count))
    ancestor = [-1] * count
    dominator = [0] * count
    waiting: list[list[int]] = [[] for _ in range(count)]
    for rank in range(count - 1, 0, -1):
        lowest = rank
        for predecessor in predecessors[rank]:
            lowest = min(lowest, semi[_find_lowest(predecessor, ancestor, label, semi)])
        semi[rank] = lowest
        waiting[lowest].append(rank)
        above = parent[rank]
        ancestor[rank] = above
        for node in waiting[above]:
            candidate = _find_lowest(node, ancestor, label, semi)
            dominator[node] = candidate if semi[candidate] < above else above
        waiting[above] = []
    for rank in range(1, count):
        if dominator[rank] != semi[rank]:
            dominator[rank] = dominator[dominator[rank]]
    return dominator


def _find_lowest(rank: int, ancestor: list[int], label: list[int], semi: list[int]) -> int:
    """The rank with the smallest semidominator on the linked path above ``rank``; shortens the path on the way (``eval`` of the paper)."""
    above = ancestor[rank]
    if above < 0:
        return rank
    path = []
    while ancestor[above] >= 0:
        path.append(rank)
        rank, above = above, ancestor[above]
    # ``rank`` now hangs directly below the root of its linked tree; everything on the path is hung below that root as well.
    best = label[rank]
    for node in reversed(path):
        if semi[best] < semi[label[node]]:
            label[node] = best
        else:
            best = label[node]
        ancestor[node] = above
    return best


def _collapse_loop(
    header: int, back: list[int], entering: list[list[int]], collapsed: list[int], header_above: list[int]
) -> None:
    """Merge into ``header`` all ranks from which a back edge to it can be reached."""
    worklist = [_find(collapsed, source) for source in back]
    body = {header}
    while worklist:
        rank = worklist.pop()
        if rank in body:
            continue
        body.add(rank)
        worklist.extend(_find(collapsed, source) for source in entering[rank])
    body.remove(header)
    for rank in body:
        collapsed[rank] = header
        header_above[rank] = header


def _find(parents: list[int], item: int) -> int:
    """The representative of an item's set; halves the path on the way."""
    while parents[item] != item:
        parents[item] = parents[parents[item]]
        item = parents[item]
    return item


class DominatorTree:
    """The dominators or post-dominators of t nodes: a forest whose subtrees are ranges of numbers.

    If block A dominates block B, every path to B ends with a part that stays among the blocks that A dominates. A block that B dominates is on
    that part only if a loop leads back from it, and then the header of a loop around B is too. So a search along paths to B that meets nothing of
    interest between the two can continue from A at once.

    Args:
        parent: immediate dominator of each node; -1 for entries.

    Source: a second link per node, which leads further up, is Myers' (*An applicative random-access stack*, 1983): a climb takes O(log t) steps.
    """

    def __init__(self, parent: Sequence[int]) -> None:
        self.parent = parent
        self.number = [0] * len(parent)  # Place of each node, before all that are below it
        self._jump = list(range(len(parent)))
        self._last = self._number_nodes()
        self._nearest: dict[int, dict[int, int]] = {}

    def _number_nodes(self) -> list[int]:
        """The last number below each node, itself included."""
        children: list[list[int]] = [[] for _ in range(len(self.parent) + 1)]
        for node, above in enumerate(self.parent):
            children[above].append(node)  # the last list is that of -1
        depth = [0] * len(self.parent)
        order: list[int] = []
        waiting = children[-1][::-1]
        while waiting:
            node = waiting.pop()
            self.number[node] = len(order)
            order.append(node)
            above = self.parent[node]
            if above >= 0:
                depth[node] = depth[above] + 1
                over = self._jump[above]
                is_even = depth[above] - depth[over] == depth[over] - depth[self._jump[over]]
                self._jump[node] = self._jump[over] if is_even else above
            waiting.extend(children[node])
        last = list(self.number)
        for node in reversed(order):
            if self.parent[node] >= 0:
                last[self.parent[node]] = max(last[self.parent[node]], last[node])
        return last

    def is_above(self, upper: int, lower: int) -> bool:
        """Whether a node dominates another, in two comparisons; each dominates itself."""
        return self.number[upper] <= self.number[lower] <= self._last[upper]

    def find_nearest(self, key: int, node: int, stops: Collection[int]) -> int:
        """The first of the nodes ``stops`` on the way up from a node, itself included; -1 when there is none.

        Args:
            key: identifies ``stops``; results are cached under it.
        """
        known = self._nearest.setdefault(key, {-1: -1})
        passed = []
        while node not in known:
            if node in stops:
                known[node] = node
            else:
                passed.append(node)
                node = self.parent[node]
        known.update(dict.fromkeys(passed, known[node]))
        return known[node]

    def climb(self, node: int, stops: Sequence[int], header: int = -1) -> int:
        """The highest ancestor of a node below which there are no stops but those below the node itself: a search may continue from there.

        Stops below the node matter only where a loop leads back from them. Then the climb ends at the loop's header; and it does not begin where
        the header is the node, or is not above it (in loops with several entries).

        Args:
            stops: numbers (``number``) of nodes, ascending.

        >>> tree = DominatorTree([-1, 0, 1, 1, 3])
        >>> [tree.climb(4, [tree.number[stop] for stop in stops]) for stops in ((), (0,), (2,), (4,))]
        [0, 1, 3, 0]
        >>> tree.climb(4, [tree.number[4]], header=1)
        1
        """
        number, last = self.number, self._last
        place = bisect_left(stops, number[node])
        low = stops[place - 1] if place else -1
        if place < len(stops) and stops[place] <= last[node]:
            if header >= 0:
                if header == node or not self.is_above(header, node):
                    return node
                low = max(low, number[header] - 1)
            place = bisect_right(stops, last[node])
        high = stops[place] if place < len(stops) else len(number)
        while True:
            above = self._jump[node]
            if above == node or number[above] <= low or last[above] >= high:
                above = self.parent[node]
                if above < 0 or number[above] <= low or last[above] >= high:
                    return node
            node = above


class UnsolvedError(Exception):
    """Equations took more steps than were allowed."""


def solve_backwards(
    successors: Adjacency,
    transfer: Callable[[int, Sequence[_Value]], _Value],
    nothing: _Value,
    *,
    most_steps: int | None = None,
) -> list[_Value]:
    """The smallest solution of backward data-flow equations, such as liveness: the value before each node from the values before its successors.

    Works from the highest number down, because successors of a block are mostly behind it.

    Args:
        successors: for each node the nodes that can follow it.
        transfer: value before a node, from its number and the values before its successors; must be monotone in those.
        nothing: initial value before every node.
        most_steps: limit on evaluations of ``transfer``; None is without limit.

    >>> uses, kills = [0b1, 0b10, 0], [0b10, 0b100, 0b1]
    >>> solve_backwards([[1, 2], [0], []], lambda node, after: uses[node] | (sum({*after}) & ~kills[node]), 0)
    [1, 3, 0]
    """
    predecessors = reverse_edges(successors)
    found = [nothing] * len(successors)
    waiting = [-node for node in range(len(successors) - 1, -1, -1)]
    is_waiting = [True] * len(successors)
    steps = 0
    while waiting:
        steps += 1
        if most_steps is not None and steps > most_steps:
            raise UnsolvedError
        node = -heappop(waiting)
        is_waiting[node] = False
        value = transfer(node, [found[other] for other in successors[node]])
        if value == found[node]:
            continue
        found[node] = value
        for other in predecessors[node]:
            if not is_waiting[other]:
                is_waiting[other] = True
                heappush(waiting, -other)
    return found
