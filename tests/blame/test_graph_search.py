"""Strongly connected components against plain reachability."""

from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.graph_search import find_components

Graph = dict[int, list[int]]

graphs = st.integers(1, 9).flatmap(
    lambda count: st.fixed_dictionaries(
        {node: st.lists(st.integers(0, count - 1), max_size=4) for node in range(count)}
    )
)


def reach(graph: Graph, start: int, closed: frozenset[int] = frozenset()) -> set[int]:
    """The nodes that one leads to, itself included, without entering some."""
    found, waiting = {start}, [start]
    while waiting:
        for one in graph[waiting.pop()]:
            if one not in found and one not in closed:
                found.add(one)
                waiting.append(one)
    return found


@given(graphs, st.data())
def test_components_are_the_nodes_that_reach_each_other_each_after_those_it_leads_to(graph: Graph, data: st.DataObject):
    nodes = st.integers(0, len(graph) - 1)
    roots = data.draw(st.lists(nodes, min_size=1))
    closed = data.draw(st.frozensets(nodes))
    components = list(find_components(roots, graph.__getitem__, closed))
    entered = {node for root in roots if root not in closed for node in reach(graph, root, closed)}
    assert sorted(node for component in components for node in component) == sorted(entered)
    handed_out: set[int] = set()
    for component in components:
        reached = {node: reach(graph, node, closed) for node in component}
        assert all(set(component) <= nodes_reached for nodes_reached in reached.values())
        handed_out.update(component)
        assert set().union(*reached.values()) <= handed_out


@given(graphs)
def test_what_was_handed_out_may_count_as_done_on_the_way(graph: Graph):
    done: set[int] = set()
    for component in find_components(list(graph), graph.__getitem__, done):
        assert done.isdisjoint(component)
        done.update(component)
    assert done == set(graph)
