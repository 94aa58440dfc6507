"""Distances and paths in a flow graph: pieces of blocks, longest paths with and without loops, components against plain reachability."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.paths import LongestPaths, find_components
from gpa_lsp.diagnosis.blame.view import NOWHERE, Blocks, Distance, FunctionView, OutOfWorkError, WorkBudget
from tests.blame.programs import programs, walk_simple_paths
from tests.blame.written_views import view_text
from tests.conftest import examples


def make_paths(view: FunctionView, work: int = 10**9) -> LongestPaths:
    return LongestPaths(view.graph, view.blocks, WorkBudget(remaining=work))


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("MOV R0, R1; NOP; NOP; MOV R2, R0", {(0, 3): 3}),
        ("MOV R0, R1; MOV R2, R0", {(0, 1): 1}),
        # of two arms the longer counts
        ("MOV R0, R1; @P0 BRA short; NOP; NOP; NOP; BRA join; short:; NOP; join:; MOV R2, R0", {(0, 7): 6}),
        # a loop on the way counts each of its instructions once
        ("MOV R0, R1; top:; NOP; @P0 BRA skip; NOP; NOP; skip:; @P1 BRA top; MOV R2, R0", {(0, 6): 6}),
        # into a loop two instructions of it that may have run before, and the use; out of it the branches, the NOP between, and the use
        (
            "MOV R0, R1; top:; MOV R2, R0; MOV R0, R3; @P0 BRA skip; NOP; skip:; @P1 BRA top; MOV R4, R0",
            {(0, 1): 3, (2, 6): 4},
        ),
        # carried round a loop it is the longest turn
        (
            "top:; MOV R2, R0; @P0 BRA skip; NOP; NOP; skip:; MOV R0, R3; NOP; @P1 BRA top; EXIT",
            {(4, 0): 3, (0, 0): 7},
        ),
        # paths do not leave the loop around both
        (
            f"outer:; {'NOP; ' * 50}inner:; MOV R2, R0; MOV R0, R3; @P0 BRA inner; {'NOP; ' * 50}@P1 BRA outer; EXIT",
            {(51, 50): 2},
        ),
        # a cycle with two entries counts each instruction once
        ("MOV R0, R1; @P0 BRA second; first:; NOP; NOP; second:; NOP; @P1 BRA first; MOV R2, R0", {(0, 6): 6}),
    ],
)
def test_the_longest_path_in_instructions(text: str, lengths: dict[tuple[int, int], int]) -> None:
    paths = make_paths(view_text(text.replace("; ", "\n")))
    assert {ends: paths.find(*ends) for ends in lengths} == lengths


def test_a_spent_budget_stops_the_search():
    with pytest.raises(OutOfWorkError):
        make_paths(view_text("MOV R0, R1\n@P0 BRA end\nNOP\nend:\nMOV R2, R0"), work=1).find(0, 3)


@st.composite
def forward_programs(draw: st.DrawFn) -> str:
    """Functions without cycles: every jump goes down."""
    count = draw(st.integers(3, 14))
    lines = []
    for row in range(count):
        target = draw(st.integers(row + 1, count))
        jump = draw(st.sampled_from(["", "", "@P0 ", "BRA"]))
        text = "MOV R0, R1" if not jump else f"{jump if jump != 'BRA' else ''}BRA l{target}"
        lines += [f"l{row}:", text]
    return "\n".join([*lines, f"l{count}:", "EXIT"])


@examples(80)
@given(forward_programs())
def test_without_loops_it_is_the_longest_of_all_paths(text: str):
    view = view_text(text)
    paths = make_paths(view)
    for def_row in range(len(view)):
        for use_row in range(def_row + 1, len(view)):
            lengths = [len(path) + 1 for path in walk_simple_paths(view, def_row, use_row)]
            if lengths:
                assert paths.find(def_row, use_row) == max(lengths)


def list_paths_in_one_turn(view: FunctionView, def_row: int, use_row: int) -> list[tuple[int, ...]]:
    """Simple paths inside the innermost loop around both; over its back edge only where there are no others."""
    graph = view.graph

    def loops_around(row: int) -> set[int]:
        return set(graph.loops_around(int(graph.block_of_instruction[row])))

    common = loops_around(def_row) & loops_around(use_row)
    inside = [
        path for path in walk_simple_paths(view, def_row, use_row) if all(common <= loops_around(row) for row in path)
    ]
    if not common:
        return inside
    header = int(graph.first_instruction[graph.loops[max(common)].header])
    in_one_turn = [path for path in inside if header not in (*path, use_row)]
    return in_one_turn or inside


@examples(80)
@given(programs(longest=11))
def test_with_loops_it_is_no_shorter_than_any_simple_path_inside_them(text: str):
    view = view_text(text)
    paths = make_paths(view)
    for def_row in range(len(view)):
        for use_row in range(len(view)):
            lengths = [len(path) + 1 for path in list_paths_in_one_turn(view, def_row, use_row)]
            if lengths:
                assert max(lengths) <= paths.find(def_row, use_row) <= 2 * len(view)


LISTING = """
    B-:R-:W0:-:S02  LDG.E R2, [R4.64]
    B-:R-:W-:-:S00  IADD3 R8, R8, 0x1, RZ
loop:
    B-:R-:W-:-:S04  FADD R3, R2, R3
    B-:R-:W-:-:S05  @P0 BRA loop
    B-:R-:W-:-:S05  EXIT
"""


@pytest.fixture(scope="module")
def distances() -> Blocks:
    return view_text(LISTING).blocks


def test_from_issue_to_issue(distances: Blocks) -> None:
    """The stall count of the last instruction is not part of it; none is as short as nothing, whatever is encoded."""
    assert distances.straight(0, 1) == (2, 1)
    assert distances.straight(0, 3) == (2 + 1 + 4, 3)
    assert distances.straight(2, 2) == NOWHERE


def test_pieces_of_a_block(distances: Blocks) -> None:
    assert distances.to_end(0) == (3, 2)
    assert distances.to_end(1) == (1, 1)
    assert distances.across(1) == (9, 2)
    assert distances.from_start(3) == (4, 1)
    assert distances.from_start(2) == NOWHERE
    assert distances.to_end(4) == (5, 1)


def test_pieces_add_up(distances: Blocks) -> None:
    once_round = distances.to_end(0).then(distances.across(1)).then(distances.from_start(3))
    assert once_round == Distance(3 + 9 + 4, 2 + 2 + 1)


def test_fewer_cycles_are_nearer_than_fewer_instructions() -> None:
    assert min(Distance(7, 1), Distance(6, 5), Distance(6, 4)) == Distance(6, 4)


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
