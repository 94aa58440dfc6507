"""Loops and how they nest, reducible or not, in nearly linear time.

A loop is a header and the blocks from which a jump back to the header can be reached without passing it. In a reducible loop, a *natural*
one, the header dominates all of them. Where code jumps into the middle of a cycle there is no such header; the block of the cycle that is met
first in depth-first order stands in for it, and the loop is marked irreducible.

Source: P. Havlak, "Nesting of reducible and irreducible loops", TOPLAS 19 (1997), 557-567, which generalises Tarjan's intervals, with the
repair that makes it nearly linear: G. Ramalingam, "Identifying loops in almost linear time", TOPLAS 21 (1999), 175-188 (edges that are
no ancestor relation wait at the lowest common ancestor of their ends).
"""

from itertools import accumulate

from msgspec import Struct

from gpa_lsp.code.control_flow.depth_first import DepthFirstTree


class LoopShape(Struct, frozen=True, kw_only=True):
    """A loop without its source lines; fields as in :class:`~gpa_lsp.code.control_flow.model.Loop`."""

    header: int
    back_edge_sources: tuple[int, ...]
    parent: int | None
    depth: int
    last_inner: int
    order_start: int
    block_count: int
    is_irreducible: bool


class LoopForest(Struct, frozen=True, kw_only=True):
    """All loops of a graph."""

    loops: tuple[LoopShape, ...]  # outer before inner, siblings by header
    innermost: list[int]  # for each node the number of the innermost loop around it; -1 outside loops
    # the nodes in loops, by innermost loop, then number; a loop's nodes are ``block_count`` of them from ``order_start`` on
    order: list[int]


def find_loops(tree: DepthFirstTree, predecessors: list[list[int]]) -> LoopForest:
    """The loops of a graph.

    Args:
        tree: depth-first tree of the graph from a root that no edge leads to.
        predecessors: of its ranks, :meth:`~gpa_lsp.code.control_flow.depth_first.DepthFirstTree.predecessor_ranks`.

    >>> from gpa_lsp.code.control_flow.depth_first import walk_depth_first
    >>> graph = [[1, 3], [2], [1, 2], [], [0]]
    >>> tree = walk_depth_first(graph, 4)
    >>> forest = find_loops(tree, tree.predecessor_ranks(graph))
    >>> [(loop.header, loop.depth, loop.block_count) for loop in forest.loops]
    [(1, 1, 2), (2, 2, 1)]
    >>> forest.innermost[:4], forest.order
    ([-1, 0, 1, -1], [1, 2])
    """
    header_above, sources = _nest_ranks(tree, predecessors)
    nesting = _number_loops(tree, header_above, sources)
    irreducible = _find_irreducible(tree, predecessors, nesting)
    members = [node for node in range(len(nesting.innermost)) if nesting.innermost[node] >= 0]
    starts = _find_starts(nesting)
    depths: list[int] = []
    shapes = []
    for number, header in enumerate(nesting.headers):
        parent = nesting.parents[number]
        depths.append(1 if parent < 0 else depths[parent] + 1)
        shapes.append(
            LoopShape(
                header=tree.node_of_rank[header],
                back_edge_sources=tuple(sorted(tree.node_of_rank[source] for source in sources[header])),
                parent=parent if parent >= 0 else None,
                depth=depths[number],
                last_inner=nesting.last_inner[number],
                order_start=starts[number],
                block_count=starts[nesting.last_inner[number] + 1] - starts[number],
                is_irreducible=irreducible[number],
            )
        )
    return LoopForest(
        loops=tuple(shapes),
        innermost=nesting.innermost,
        order=sorted(members, key=nesting.innermost.__getitem__),
    )


def _nest_ranks(tree: DepthFirstTree, predecessors: list[list[int]]) -> tuple[list[int], dict[int, list[int]]]:
    """For each rank the header of the innermost loop around it other than its own (0: none); and header → sources of its back edges.

    Headers are tried from the last rank down, so inner loops are complete, and collapsed into their header, before the loops around them.
    """
    count = len(tree.parent)
    header_above = [0] * count
    sources: dict[int, list[int]] = {}
    collapsed = list(range(count))
    """Union-find: the header of the outermost loop found so far around each rank."""
    finished = list(range(count))
    """Union-find: each rank's nearest ancestor whose turn is still to come, which for the ends of an edge is their common one."""
    entering = [[parent] for parent in tree.parent]
    """Ranks from which each collapsed loop is entered, as far as that matters to the header whose turn it is."""
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for rank in range(count - 1, 0, -1):
        for source, target in waiting[rank]:
            entering[_find(collapsed, target)].append(source)
        back = []
        for source in predecessors[rank]:
            if rank <= source <= tree.last[rank]:
                back.append(source)
            elif source != tree.parent[rank]:
                waiting[_find(finished, source)].append((source, rank))
        finished[rank] = tree.parent[rank]
        if back:
            sources[rank] = back
            _collapse_loop(rank, back, entering, collapsed, header_above)
    return header_above, sources


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


class _Nesting(Struct, frozen=True, kw_only=True):
    """The loops by number: outer before inner, siblings by header node."""

    headers: list[int]  # for each loop the rank of its header
    parents: list[int]  # for each loop the loop around it; -1 for none
    last_inner: list[int]  # for each loop the last one inside it
    innermost: list[int]  # for each node the innermost loop around it; -1 for none


def _number_loops(tree: DepthFirstTree, header_above: list[int], sources: dict[int, list[int]]) -> _Nesting:
    inner: dict[int, list[int]] = {}
    for header in sorted(sources, key=tree.node_of_rank.__getitem__, reverse=True):
        inner.setdefault(header_above[header], []).append(header)
    numbers: dict[int, int] = {}
    stack = inner.get(0, [])
    while stack:
        header = stack.pop()
        numbers[header] = len(numbers)
        stack.extend(inner.get(header, ()))
    parents = [numbers.get(header_above[header], -1) for header in numbers]
    last_inner = list(range(len(parents)))
    for number in range(len(parents) - 1, -1, -1):
        if parents[number] >= 0:
            last_inner[parents[number]] = max(last_inner[parents[number]], last_inner[number])
    innermost = [-1] * len(tree.rank_of_node)
    for rank, node in enumerate(tree.node_of_rank):
        innermost[node] = numbers.get(rank, numbers.get(header_above[rank], -1))
    return _Nesting(headers=list(numbers), parents=parents, last_inner=last_inner, innermost=innermost)


def _find_starts(nesting: _Nesting) -> list[int]:
    """Where each loop's own nodes start when the nodes in loops are sorted by loop; one more entry for the end."""
    counts = [0] * (len(nesting.headers) + 1)
    for loop in nesting.innermost:
        if loop >= 0:
            counts[loop + 1] += 1
    return list(accumulate(counts))


def _find_irreducible(tree: DepthFirstTree, predecessors: list[list[int]], nesting: _Nesting) -> list[bool]:
    """Which loops an edge enters elsewhere than at the header."""
    count = len(nesting.headers)
    marked = [False] * count
    unmarked = list(range(count + 1))
    """Union-find: the innermost unmarked loop among each loop and those around it; the last item stands for "none"."""
    for rank in range(1, len(tree.node_of_rank)):
        loop = nesting.innermost[tree.node_of_rank[rank]]
        if loop >= 0 and nesting.headers[loop] == rank:
            loop = nesting.parents[loop]
        if loop < 0:
            continue
        for source in predecessors[rank]:
            home = nesting.innermost[tree.node_of_rank[source]]
            entered = _find(unmarked, loop)
            while entered < count and not entered <= home <= nesting.last_inner[entered]:
                marked[entered] = True
                unmarked[entered] = nesting.parents[entered] if nesting.parents[entered] >= 0 else count
                entered = _find(unmarked, entered)
    return marked
