"""Random small sections against definitions so plain that they cannot be wrong: what is reachable when a block is taken away."""

import itertools

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.code.binary.model import Flow, Function, Instructions, ResourceLists
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.graph import RootedGraph
from gpa_lsp.code.control_flow.model import FlowGraph
from tests.control_flow.assembly import assemble
from tests.rows.builders import make_function, make_sub_function

Edges = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn, largest: int = 9) -> Edges:
    """Mostly dense ones: a node without successors ends what could become interesting."""
    count = draw(st.one_of(st.integers(1, largest), st.integers(largest // 2, largest)))
    successors = st.lists(st.integers(0, count - 1), max_size=3)
    return [sorted({*draw(successors), draw(st.integers(0, count - 1))}) for _ in range(count)]


@st.composite
def sections(draw: st.DrawFn) -> tuple[Function, Instructions]:
    """Sections with every kind of flow, targets inside, outside and odd, and sub-functions anywhere."""
    count = draw(st.integers(1, 14))
    places = st.integers(0, count - 1)
    offsets = st.one_of(places.map(lambda index: index * 16), st.sampled_from([-1, 8, count * 16, 1 << 40]))
    flows = draw(st.lists(st.sampled_from(list(Flow)), min_size=count, max_size=count))
    guards = draw(st.lists(st.sampled_from([-1, 512, 768]), min_size=count, max_size=count))
    subs = tuple(make_sub_function(f"$sub{index}", index, 1) for index in draw(st.sets(places, max_size=2)))
    indirect = {16 * index: tuple(draw(st.lists(offsets, max_size=4))) for index in draw(st.sets(places))}
    symbols = dict.fromkeys((16 * index for index in draw(st.sets(places, max_size=3))), "elsewhere")
    _, template = assemble("NOP\n" * count)
    instructions = replace(
        template,
        guard=np.array(guards, dtype=np.int16),
        guard_negated=np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=np.bool_),
        reads=ResourceLists(
            starts=np.cumsum([0, *(guard >= 0 for guard in guards)], dtype=np.int32),
            numbers=np.array([guard for guard in guards if guard >= 0], dtype=np.int16),
        ),
        flow=np.array(flows, dtype=np.uint8),
        target=np.array(draw(st.lists(offsets, min_size=count, max_size=count)), dtype=np.int64),
    )
    function = make_function(
        "kernel", count, sub_functions=subs, indirect_branch_targets=indirect, call_symbols=symbols
    )
    return function, instructions


def reach(edges: Edges, roots: set[int], without: int | None = None) -> set[int]:
    found: set[int] = set()
    pending = [root for root in roots if root != without]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += [successor for successor in edges[node] if successor != without]
    return found


def dominator_sets(edges: Edges, roots: set[int]) -> dict[int, set[int]]:
    """Reached node → the nodes without which it would not be reached."""
    reached = reach(edges, roots)
    dominators = {node: {node} for node in reached}
    for candidate in reached:
        for node in reached - reach(edges, roots, without=candidate):
            dominators[node].add(candidate)
    return dominators


def assert_dominators(found: list[int], edges: Edges, roots: set[int]) -> None:
    expected = dominator_sets(edges, roots)
    for node in range(len(edges)):
        chain, above = [], found[node]
        while above >= 0:
            chain.append(above)
            above = found[above]
        assert set(chain) == expected.get(node, {node}) - {node}
        # The chain is in order: each member is dominated by the next.
        assert all(outer in expected[inner] for inner, outer in itertools.pairwise(chain))


def reverse(edges: Edges) -> Edges:
    return [[source for source in range(len(edges)) if node in edges[source]] for node in range(len(edges))]


@given(graphs(), st.sets(st.integers(0, 8), min_size=1, max_size=3))
def test_dominators_are_what_cannot_be_left_out(edges: Edges, picks: set[int]):
    roots = {pick % len(edges) for pick in picks}
    assert_dominators(RootedGraph(edges, sorted(roots)).find_dominators(), edges, roots)


def natural_loop(edges: Edges, reached: set[int], header: int, sources: set[int]) -> set[int]:
    before = reverse(edges)
    found, pending = {header}, list(sources)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += [source for source in before[node] if source in reached]
    return found


@given(graphs(), st.sets(st.integers(0, 8), min_size=1, max_size=2))
@example([[1, 3], [2], [1, 0], [2]], {0})  # an edge into the middle of an inner loop, from a node of the outer one
def test_loops_are_what_loops_are(edges: Edges, picks: set[int]):
    roots = {pick % len(edges) for pick in picks}
    reached = reach(edges, roots)
    dominators = dominator_sets(edges, roots)
    forest = RootedGraph(edges, sorted(roots)).find_loops()
    members = [set(one) for one in forest.list_members()]

    for loop, inside in zip(forest.loops, members, strict=True):
        within = [
            [node for node in edges[source] if node in inside] if source in inside else []
            for source in range(len(edges))
        ]
        assert all(inside <= reach(within, set(within[node])) for node in inside), "not strongly connected"
        assert set(loop.back_edge_sources) <= inside
        assert all(loop.header in edges[source] for source in loop.back_edge_sources)
        entered = {node for source in reached - inside for node in edges[source] if node in inside} | (roots & inside)
        assert loop.is_irreducible == bool(entered - {loop.header})
        if not loop.is_irreducible:
            sources = {node for node in reached if loop.header in edges[node] and loop.header in dominators[node]}
            assert all(loop.header in dominators[node] for node in inside)
            assert set(loop.back_edge_sources) == sources
            assert inside == natural_loop(edges, reached, loop.header, sources)

    for number, loop in enumerate(forest.loops):
        inner = set(range(number + 1, loop.last_inner + 1))
        assert {other for other in range(len(members)) if other != number and members[other] < members[number]} == inner
        assert loop.parent is None or members[number] < members[loop.parent]
        assert loop.depth == 1 + (forest.loops[loop.parent].depth if loop.parent is not None else 0)
        disjoint = set(range(len(members))) - inner - {number}
        assert all(members[other] > members[number] or not members[other] & members[number] for other in disjoint)

    headers = {loop.header for loop in forest.loops}
    assert len(headers) == len(forest.loops)
    for node in range(len(edges)):
        around = [number for number in range(len(members)) if node in members[number]]
        assert forest.innermost[node] == max(around, key=lambda number: forest.loops[number].depth, default=-1)
        on_cycle = node in reached and node in reach(edges, set(edges[node]))
        assert bool(around) == on_cycle
        assert set(forest.list_around(node)) == set(around)
        if node in reached:
            assert all(target in headers for target in edges[node] if target in dominators[node])


def next_offsets(function: Function, instructions: Instructions, index: int) -> set[int]:
    """The places that control can go to, read off the definition of each flow."""
    count = len(instructions)
    flow = Flow(instructions.flow[index])
    guarded = instructions.guard[index] >= 0
    if not guarded and instructions.guard_negated[index]:
        flow = Flow.NONE
    starts = {0, *(sub.start_offset for sub in function.sub_functions)}
    target = int(instructions.target[index])
    found = set()
    if flow == Flow.BRANCH or (flow == Flow.CALL and target not in starts):
        found.add(target)
    if flow == Flow.INDIRECT_BRANCH:
        found |= set(function.indirect_branch_targets.get(16 * index, ()))
    if guarded or flow not in (Flow.BRANCH, Flow.INDIRECT_BRANCH, Flow.RETURN, Flow.EXIT):
        found.add(16 * index + 16)
    return {offset for offset in found if 0 <= offset < 16 * count and offset % 16 == 0}


@given(sections())
def test_blocks_cover_every_instruction_once_and_edges_are_the_flow(section: tuple[Function, Instructions]):
    function, instructions = section
    graph = build_flow_graph(function, instructions)
    covered = [
        index
        for first, last in zip(graph.first_instruction.tolist(), graph.last_instruction.tolist(), strict=True)
        for index in range(first, last + 1)
    ]
    assert covered == list(range(len(instructions)))
    before: dict[int, set[int]] = {index: set() for index in covered}
    for index in covered:
        assert graph.first_instruction[graph.block_of_instruction[index]] <= index
        assert index <= graph.last_instruction[graph.block_of_instruction[index]]
        following = [offset // 16 for offset in sorted(next_offsets(function, instructions, index))]
        assert list(graph.next_instructions(index)) == following
        for successor in following:
            before[successor].add(index)
    for index in covered:
        assert set(graph.previous_instructions(index)) == before[index]
    assert_columns_fit(graph)


def assert_columns_fit(graph: FlowGraph) -> None:
    edges = [graph.successors(block).tolist() for block in range(graph.block_count)]
    assert [graph.predecessors(block).tolist() for block in range(graph.block_count)] == reverse(edges)
    roots = {procedure.entry_block for procedure in graph.procedures}
    assert set(np.flatnonzero(graph.is_reachable).tolist()) == reach(edges, roots)
    assert_dominators(graph.immediate_dominator.tolist(), edges, roots)
    ends = set(np.flatnonzero(graph.may_end).tolist())
    assert set(np.flatnonzero(graph.reaches_end).tolist()) == reach(reverse(edges), ends)
    assert_dominators(graph.immediate_post_dominator.tolist(), reverse(edges), ends)
    for number, loop in enumerate(graph.loops):
        assert graph.blocks_of_loop(number).tolist() == [
            block for block in range(graph.block_count) if number in graph.loops_around(block)
        ]
        assert loop.header in graph.blocks_of_loop(number)
