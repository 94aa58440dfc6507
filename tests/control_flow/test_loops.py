"""Loops of listings small enough to check by eye."""

from gpa_lsp.code.control_flow.model import FlowGraph
from tests.control_flow.assembly import build


def first_instructions(graph: FlowGraph, blocks: object) -> list[int]:
    return graph.first_instruction[blocks].tolist()


NESTED = """
        MOV R0, RZ             // 0
    outer:
        MOV R1, RZ             // 1
    inner:
        @P2 BRA `(skip)        // 2
        IADD3 R2, R2, R3       // 3
    skip:
        IADD3 R1, R1, 0x1      // 4
        @P0 BRA `(inner)       // 5
        @P3 BRA `(outer)       // 6   (continue)
        IADD3 R0, R0, 0x1      // 7
        @P1 BRA `(outer)       // 8
    second:
        @P4 BRA `(second)      // 9
        EXIT                   // 10
"""


def test_nested_loops():
    graph = build(NESTED)
    outer, inner, second = graph.loops
    assert first_instructions(graph, [outer.header, inner.header, second.header]) == [1, 2, 9]
    assert (outer.parent, inner.parent, second.parent) == (None, 0, None)
    assert (outer.depth, inner.depth, second.depth) == (1, 2, 1)
    assert (outer.last_inner, inner.last_inner, second.last_inner) == (1, 1, 2)
    assert first_instructions(graph, graph.blocks_of_loop(0)) == [1, 2, 3, 4, 6, 7]
    assert first_instructions(graph, graph.blocks_of_loop(1)) == [2, 3, 4]
    assert first_instructions(graph, graph.blocks_of_loop(2)) == [9]
    assert first_instructions(graph, list(outer.back_edge_sources)) == [6, 7]
    assert first_instructions(graph, list(inner.back_edge_sources)) == [4]
    assert not any(loop.is_irreducible for loop in graph.loops)
    assert [graph.loops_around(block) for block in range(graph.block_count)] == [
        (),
        (0,),
        (1, 0),
        (1, 0),
        (1, 0),
        (0,),
        (0,),
        (2,),
        (),
    ]


def test_dominators_climb_to_the_entry():
    graph = build(NESTED)
    inner_body = int(graph.block_of_instruction[3])
    assert first_instructions(graph, list(graph.dominators_of(inner_body))) == [3, 2, 1, 0]
    # Both ways out of 6 lead to 7 in the end.
    assert first_instructions(graph, list(graph.post_dominators_of(inner_body))) == [3, 4, 6, 7, 9, 10]


def test_a_cycle_with_two_entries_is_irreducible():
    graph = build("""
            @P0 BRA `(middle)     // 0
        top:
            IADD3 R0, R0, 0x1     // 1
        middle:
            IADD3 R1, R1, 0x1     // 2
            @P1 BRA `(top)        // 3
            EXIT                  // 4
    """)
    (loop,) = graph.loops
    assert loop.is_irreducible
    assert first_instructions(graph, graph.blocks_of_loop(0)) == [1, 2]
    assert graph.immediate_dominator[graph.block_of_instruction[1]] == 0
    assert graph.immediate_dominator[graph.block_of_instruction[2]] == 0


def test_a_loop_around_an_irreducible_cycle_is_reducible_itself():
    graph = build("""
        outer:
            @P0 BRA `(middle)     // 0
        top:
            NOP                   // 1
        middle:
            @P1 BRA `(top)        // 2
            @P2 BRA `(outer)      // 3
            EXIT                  // 4
    """)
    assert [(int(graph.first_instruction[loop.header]), loop.is_irreducible) for loop in graph.loops] == [
        (0, False),
        (1, True),
    ]
    assert graph.loops[1].parent == 0


def test_a_sub_function_that_starts_inside_a_loop_makes_it_irreducible():
    listing = """
        top:
            NOP                // 0
        {label}:
            @P0 BRA `(top)     // 1
            EXIT               // 2
    """
    assert [loop.is_irreducible for loop in build(listing.format(label="label")).loops] == [False]
    assert [loop.is_irreducible for loop in build(listing.format(label="$sub")).loops] == [True]


def test_recursion_is_no_loop():
    graph = build("""
            CALL.REL.NOINC `($kernel$rec)      // 0
            EXIT                               // 1
        $kernel$rec:
            @P0 BRA `(leaf)                    // 2
            CALL.REL.NOINC `($kernel$rec)      // 3
        leaf:
            RET.REL.NODEC R20 `(kernel)        // 4
    """)
    assert graph.loops == ()
    assert graph.immediate_dominator.tolist() == [-1, 0, -1, 2, 2]


def test_a_loop_in_unreachable_code_is_none():
    graph = build("EXIT\nagain:\nNOP\n@P0 BRA `(again)\nEXIT")
    assert graph.loops == ()
    assert graph.innermost_loop.tolist() == [-1, -1, -1]
