"""The control-flow graph that a trace is searched in: :class:`SearchGraph`, its edges split into those that close loops and those that do not."""

from collections.abc import Sequence

from msgspec import Struct

from gpa_lsp.code.control_flow.graph import RootedGraph
from gpa_lsp.foundation.errors import InputError

MOST_NODES = 4_000  # Blocks of a kernel; the paths between all of them are kept


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
        """The node lies on a way from start to end without edges that close loops, neither of them itself (``getNodesInPath``)."""
        return node not in (start, end) and bool(self.reaches[start] & self.reached_by[end] & 1 << node)


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
    """Without the edges that close loops there is no cycle, so that an order exists in which every node comes before what follows it."""
    count = len(forward)
    waiting = [0] * count
    for node, following in enumerate(forward):
        if is_there[node]:
            for one in following:
                waiting[one] += 1
    order = [node for node in range(count) if is_there[node] and not waiting[node]]
    for node in order:
        for one in forward[node]:
            waiting[one] -= 1
            if not waiting[one]:
                order.append(one)
    reaches, reached_by = [1 << node for node in range(count)], [1 << node for node in range(count)]
    for node in order:
        for one in forward[node]:
            reached_by[one] |= reached_by[node]
    for node in reversed(order):
        for one in forward[node]:
            reaches[node] |= reaches[one]
    return reaches, reached_by
