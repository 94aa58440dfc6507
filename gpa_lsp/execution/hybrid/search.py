"""The search of a trace: :func:`search_trace`, the hybrid paper's Algorithms 1 to 3, in a control-flow graph whose edges are split into those that
close loops and those that do not: :class:`SearchGraph`.

The paper prints the body of Algorithm 1 in words and Algorithms 2 and 3 as code; where the two do not agree, or the code would not end, the words
were followed. Four places differ from what is printed, and all are held by tests:

* A counter of an outer loop begins one lower than its bound: the printed one is lent from only after the inner loop has ended, so that an outer loop
  would turn once more than its bound.
* A node is pushed on the stack once. A loop that is left at its header would push what follows it with every turn and visit it as often.
* Among the targets of edges that close no loop, those inside the loops around the node come first ("closest"), and only among them the ends of loops:
  what follows a loop would else be visited before its body, and its turns be used up.
* All of the stack is looked at for a path that meets the own one, not its top alone, and the exit comes last: a side that ends the kernel may lie on
  top, and would else let what follows both sides be visited before the other side, or end the trace with paths still on the stack.
"""

from collections.abc import Callable, Sequence
from graphlib import TopologicalSorter

from msgspec import Struct, field

from gpa_lsp.code.control_flow.graph import RootedGraph
from gpa_lsp.foundation.errors import InputError

Bound = Callable[[int], int]  # Number of a loop that is entered → visits of its header, at least 1
Visit = Callable[[int], None]  # Node → nothing; called for each node of the candidate trace, the exit included


class TraceTooLongError(InputError):
    """A trace is longer than is followed; that of fewer iterations may not be."""


class BlockVisits(Struct, kw_only=True):
    """Counters that Algorithm 2 keeps of a node (Listing 1)."""

    bounds: list[int]  # of the loops around it, innermost first; (1,) outside loops
    unvisited: list[int]  # visits that are left at each of those levels


class SearchGraph(Struct, frozen=True, kw_only=True):
    """A graph of n nodes, its entry 0, its exit the last one.

    Source: the hybrid paper, Section III-B2: the backedge set, the non-backedge set, and the assumption that loops lie in or beside each other.
    """

    back: tuple[tuple[int, ...], ...]  # targets of the edges of each node that close a loop, the innermost loop's first
    # targets of its other edges; those that stay in the loops around the node first
    forward: tuple[tuple[int, ...], ...]
    loops: tuple[tuple[int, ...], ...]  # of each node the numbers of the loops around it, innermost first
    headers: tuple[int, ...]  # of each loop
    members: tuple[frozenset[int], ...]  # of each loop its nodes
    reaches: tuple[int, ...]  # of each node the nodes that can be reached by forward edges, itself included, as bits
    reached_by: tuple[int, ...]  # of each node the nodes that reach it so

    @property
    def exit(self) -> int:
        """The node at which a trace ends."""
        return len(self.back) - 1

    def is_between(self, node: int, start: int, end: int) -> bool:
        """Whether a node lies on a way from start to end without edges that close loops, neither of them itself (``getNodesInPath``)."""
        return node not in (start, end) and bool(self.reaches[start] & self.reached_by[end] & 1 << node)


class _Search(Struct, kw_only=True):
    graph: SearchGraph
    find_bound: Bound
    visits: list[BlockVisits | None]
    bounds: dict[int, int] = field(default_factory=dict)  # Of the loops that the search is in
    stack: list[int] = field(default_factory=list)

    def update(self, node: int) -> None:
        """Algorithm 2 up to its line 15: count the visit. A counter that is used up is set back, and one of the next outer level is lent from."""
        known = self.visits[node]
        loops = self.graph.loops[node]
        if loops and self.graph.headers[loops[0]] == node and (known is None or known.unvisited[0] == 0):
            self.bounds[loops[0]] = self.find_bound(loops[0])
        bounds = [self.bounds[one] for one in loops] or [1]
        if known is None:
            known = self.visits[node] = BlockVisits(
                bounds=bounds, unvisited=[bounds[0], *(one - 1 for one in bounds[1:])]
            )
        elif known.unvisited[0] == 0:
            level = next((place for place, left in enumerate(known.unvisited) if left), len(bounds) - 1)
            known.unvisited[:level] = bounds[:1] + [one - 1 for one in bounds[1:level]]
            known.unvisited[level] = max(0, known.unvisited[level] - (level > 0))
            known.bounds = bounds
        known.unvisited[0] -= known.unvisited[0] > 0

    def follow(self, node: int) -> int:
        """Algorithm 3: the node that comes next in the candidate trace."""
        again = self._find_loop_to_repeat(node)
        if again is not None:
            return again
        closest = self._list_closest(node)
        if closest:
            return self._choose(node, closest)
        if not self.stack:
            raise InputError("the search of its trace came to an end before the kernel's")
        return self.stack.pop()

    def _find_loop_to_repeat(self, node: int) -> int | None:
        """Lines 2 to 15: the node itself, else the closest header whose turns are not used up."""
        for header in self.graph.back[node]:
            known = self.visits[header]
            if known is not None and known.unvisited[0] % known.bounds[0]:
                return header
        return None

    def _list_closest(self, node: int) -> list[int]:
        """Lines 16 to 21: targets that are not reached through another target."""
        targets = self.graph.forward[node]
        return [
            one
            for one in targets
            if not any(other != one and self.graph.is_between(other, node, one) for other in targets)
        ]

    def _choose(self, node: int, closest: list[int]) -> int:
        """Lines 22 to 36: go to one, and keep the others; or take up a path that was kept and meets the own one now."""
        inside = [
            one for one in closest if len(self._list_shared(node, one)) == len(self._list_shared(node, closest[0]))
        ]
        chosen = next((one for one in inside if self.graph.back[one]), inside[0])
        for kept in reversed(self.stack):
            if chosen in (kept, self.graph.exit) or self.graph.is_between(kept, 0, chosen):
                self.stack.remove(kept)
                return kept
        self.stack += [one for one in reversed(closest) if one != chosen and one not in self.stack]
        return chosen

    def _list_shared(self, node: int, other: int) -> set[int]:
        return set(self.graph.loops[node]) & set(self.graph.loops[other])


def search_trace(graph: SearchGraph, find_bound: Bound, visit: Visit, *, most_visits: int) -> int:
    """Algorithm 1: visit the nodes of the candidate trace in order, from the entry to the exit.

    Both sides of a branch are visited, one after the other; which warps do nothing there (the mask M) is up to ``visit``.

    Raises:
        TraceTooLongError: the trace has more than ``most_visits`` nodes.

    >>> from gpa_lsp.execution.hybrid.search import build_search_graph
    >>> seen = []
    >>> search_trace(build_search_graph([[1, 2], [3], [3], [3, 4], []]), lambda loop: 3, seen.append, most_visits=99)
    8
    >>> seen
    [0, 1, 2, 3, 3, 3, 4, 5]
    """
    search = _Search(graph=graph, find_bound=find_bound, visits=[None] * len(graph.back))
    node, count = 0, 0
    while True:
        count += 1
        if count > most_visits:
            raise TraceTooLongError(f"its trace is longer than the {most_visits} basic blocks that are walked")
        search.update(node)
        visit(node)
        if node == graph.exit:
            return count
        node = search.follow(node)


MOST_NODES = 4_000  # Blocks of a kernel; the paths between all of them are kept


def build_search_graph(successors: Sequence[Sequence[int]]) -> SearchGraph:
    """The graph of a kernel's basic blocks; a node that all ends lead to is added behind them.

    Raises:
        InputError: a loop is entered elsewhere than at its header, a loop has no way out, or there are too many blocks.

    >>> graph = build_search_graph([[1], [1, 2], []])
    >>> graph.back, graph.forward, graph.loops
    (((), (1,), (), ()), ((1,), (2,), (3,), ()), ((), (0,), (), ()))
    """
    count = len(successors)
    if count > MOST_NODES:
        raise InputError(f"it has {count} basic blocks, more than the {MOST_NODES} that are searched")
    edges = [list(following) or [count] for following in successors]
    edges.append([])
    graph = RootedGraph(edges, [0])
    forest = graph.find_loops()
    if any(loop.is_irreducible for loop in forest.loops):
        raise InputError(
            "a loop of it is entered in its middle: the paper takes it that loops lie in or beside each other"
        )
    if not graph.is_reached[count]:
        raise InputError("no way leads through it to its end")
    chains = [forest.list_around(node) for node in range(count + 1)]
    headers = tuple(loop.header for loop in forest.loops)
    back: list[tuple[int, ...]] = []
    forward: list[tuple[int, ...]] = []
    for node, following in enumerate(edges):
        closing = {headers[loop]: place for place, loop in enumerate(chains[node])}
        back.append(tuple(sorted((one for one in following if one in closing), key=closing.__getitem__)))
        stays = {one: len(set(chains[node]) & set(chains[one])) for one in following if one not in closing}
        forward.append(tuple(sorted(stays, key=lambda one: -stays[one])))
    reaches, reached_by = _find_reach(forward, graph.is_reached)
    return SearchGraph(
        back=tuple(back),
        forward=tuple(forward),
        loops=tuple(chains),
        headers=headers,
        members=forest.list_members(),
        reaches=tuple(reaches),
        reached_by=tuple(reached_by),
    )


def _find_reach(forward: Sequence[Sequence[int]], is_there: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Nodes that each node reaches, and those that reach it, as bits; forward edges make no cycle."""
    count = len(forward)
    reaches, reached_by = [1 << node for node in range(count)], [1 << node for node in range(count)]
    followed = {node: following for node, following in enumerate(forward) if is_there[node]}
    order = tuple(TopologicalSorter(followed).static_order())  # the exit first
    for node in order:
        for one in forward[node]:
            reaches[node] |= reaches[one]
    for node in reversed(order):
        for one in forward[node]:
            reached_by[one] |= reached_by[node]
    return reaches, reached_by
