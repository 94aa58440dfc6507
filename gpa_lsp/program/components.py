"""Cycles of a directed graph."""

from gpa_lsp.program.depth_first import Adjacency


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
