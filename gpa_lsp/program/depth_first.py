"""Depth-first trees of flow graphs: the order on which dominators and loops are found.

Graphs come as successor lists: ``successors[node]`` are the nodes that can follow ``node``. Nothing here recurses, so a chain of a hundred
thousand blocks is no deeper than any other graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Adjacency = Sequence[Sequence[int]]
"""For each node the neighbouring nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthFirstTree:
    """A depth-first spanning tree of what a root reaches. *Ranks* number the r reached nodes in the order they were first met.

    Attributes:
        node_of_rank: r nodes; the root has rank 0.
        rank_of_node: rank of every node of the graph; -1 for those not reached.
        parent: rank of each rank's parent in the tree; 0 for the root itself.
        last: highest rank in the subtree of each rank; u is v or an ancestor of v exactly when ``u <= v <= last[u]``.
    """

    node_of_rank: list[int]
    rank_of_node: list[int]
    parent: list[int]
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
