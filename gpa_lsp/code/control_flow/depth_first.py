"""Depth-first searches of graphs: the order on which dominators and loops are found, and cycles.

Graphs come as successor lists: ``successors[node]`` are the nodes that can follow ``node``. Nothing here recurses, so a chain of a hundred
thousand blocks is no deeper than any other graph.
"""

from collections.abc import Sequence

from msgspec import Struct

Adjacency = Sequence[Sequence[int]]  # For each node the neighbouring nodes


class DepthFirstTree(Struct, frozen=True, kw_only=True):
    """A depth-first spanning tree of what a root reaches. *Ranks* number the r reached nodes in the order they were first met."""

    node_of_rank: list[int]  # r nodes; the root has rank 0
    rank_of_node: list[int]  # rank of every node of the graph; -1 for those not reached
    parent: list[int]  # rank of each rank's parent in the tree; 0 for the root itself
    # highest rank in the subtree of each rank; u is v or an ancestor of v exactly when ``u <= v <= last[u]``
    last: list[int]

    def predecessor_ranks(self, successors: Adjacency) -> list[list[int]]:
        """For each rank the ranks with an edge to it; edges from nodes that are not reached are left out."""
        found: list[list[int]] = [[] for _ in self.node_of_rank]
        for rank, node in enumerate(self.node_of_rank):
            for successor in successors[node]:
                found[self.rank_of_node[successor]].append(rank)
        return found


def walk_depth_first(successors: Adjacency, root: int) -> DepthFirstTree:
    """The depth-first tree from ``root``, successors taken in the order given.

    >>> tree = walk_depth_first([[1, 2], [3], [3], [0]], 0)
    >>> tree.node_of_rank, tree.parent, tree.last
    ([0, 1, 3, 2], [0, 0, 1, 0], [3, 2, 2, 3])
    """
    rank_of_node = [-1] * len(successors)
    rank_of_node[root] = 0
    node_of_rank = [root]
    parent = [0]
    stack = [(0, iter(successors[root]))]
    while stack:
        rank, rest = stack[-1]
        for node in rest:
            if rank_of_node[node] < 0:
                rank_of_node[node] = len(node_of_rank)
                stack.append((len(node_of_rank), iter(successors[node])))
                node_of_rank.append(node)
                parent.append(rank)
                break
        else:
            stack.pop()
    last = list(range(len(node_of_rank)))
    for rank in range(len(last) - 1, 0, -1):
        last[parent[rank]] = max(last[parent[rank]], last[rank])
    return DepthFirstTree(node_of_rank=node_of_rank, rank_of_node=rank_of_node, parent=parent, last=last)


def find_cyclic_nodes(successors: Adjacency) -> list[bool]:
    """Which nodes lie on a cycle: in a strongly connected component of several nodes, or with an edge to themselves.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1 (1972), 146-160, with the recursion unrolled.

    >>> find_cyclic_nodes([[1], [2], [1], [3], [1, 3]])
    [False, True, True, True, False]
    """
    count = len(successors)
    is_cyclic = [False] * count
    met = [-1] * count
    lowest = [0] * count
    is_open = [False] * count
    open_nodes: list[int] = []
    clock = 0
    for root in range(count):
        if met[root] >= 0:
            continue
        stack = [(root, iter(successors[root]))]
        met[root] = lowest[root] = clock
        while stack:
            node, rest = stack[-1]
            if not is_open[node]:
                is_open[node] = True
                open_nodes.append(node)
            for successor in rest:
                if met[successor] < 0:
                    clock += 1
                    met[successor] = lowest[successor] = clock
                    stack.append((successor, iter(successors[successor])))
                    break
                if is_open[successor]:
                    lowest[node] = min(lowest[node], met[successor])
                    is_cyclic[node] |= successor == node
            else:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == met[node]:
                    _close_component(node, open_nodes, is_open, is_cyclic)
        clock += 1
    return is_cyclic


def _close_component(node: int, open_nodes: list[int], is_open: list[bool], is_cyclic: list[bool]) -> None:
    is_alone = open_nodes[-1] == node
    while True:
        member = open_nodes.pop()
        is_open[member] = False
        is_cyclic[member] |= not is_alone
        if member == node:
            return
