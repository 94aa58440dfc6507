"""Blocks and edges of listings small enough to check by eye."""

import numpy as np
import pytest

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.model import EdgeKind, FlowGraph
from tests.control_flow.assembly import assemble, build
from tests.control_flow.divergence_regions import list_divergence_regions
from tests.rows.builders import make_function, make_sub_function

FALL, BRANCH, INDIRECT = EdgeKind.FALL_THROUGH, EdgeKind.BRANCH, EdgeKind.INDIRECT


def list_edges(graph: FlowGraph) -> dict[tuple[int, int], EdgeKind]:
    """Edges between blocks, named by their first instructions."""
    first = graph.first_instruction
    return {
        (int(first[source]), int(first[target])): EdgeKind(kind)
        for source, target, kind in zip(graph.edge_source, graph.edge_target, graph.edge_kind, strict=True)
    }


def test_if_else():
    graph = build("""
            ISETP.GE P0, R0, R1      // 0
            @P0 BRA `(else)          // 1
            MOV R2, R3               // 2
            BRA `(join)              // 3
        else:
            MOV R2, R4               // 4
        join:
            STG [R6], R2             // 5
            EXIT                     // 6
    """)
    assert list_edges(graph) == {(0, 2): FALL, (0, 4): BRANCH, (2, 5): BRANCH, (4, 5): FALL}
    assert graph.last_instruction.tolist() == [1, 3, 4, 6]
    assert graph.block_of_instruction.tolist() == [0, 0, 1, 1, 2, 3, 3]
    assert graph.immediate_dominator.tolist() == [-1, 0, 0, 0]
    assert graph.immediate_post_dominator.tolist() == [3, 3, 3, -1]
    assert graph.next_instructions(0) == (1,)
    assert graph.next_instructions(1) == (2, 4)
    assert graph.next_instructions(6) == ()
    assert graph.previous_instructions(5) == (3, 4)
    assert graph.previous_instructions(0) == ()
    assert graph.terminator.tolist() == [Flow.BRANCH, Flow.BRANCH, Flow.NONE, Flow.EXIT]


def test_switch_through_a_register():
    graph = build("""
            BRX R2 -0x10 (*"BRANCH_TARGETS one,two,one,done"*)   // 0
        one:
            BRA `(done)                                          // 1
        two:
            NOP                                                  // 2
        done:
            EXIT                                                 // 3
    """)
    assert list_edges(graph) == {(0, 1): INDIRECT, (0, 2): INDIRECT, (0, 3): INDIRECT, (1, 3): BRANCH, (2, 3): FALL}
    assert len(graph.unknown_targets) == 0


def test_a_guarded_switch_falls_through():
    graph = build("""
            @P1 BRX R2 -0x10 (*"BRANCH_TARGETS done"*)
            NOP
        done:
            EXIT
    """)
    assert list_edges(graph) == {(0, 1): FALL, (0, 2): INDIRECT, (1, 2): FALL}


def test_a_switch_without_listed_targets_has_no_invented_edges():
    graph = build("""
            NOP                    // 0
            BRX R2 -0x10           // 1
        lost:
            EXIT                   // 2
    """)
    assert list_edges(graph) == {}
    assert graph.unknown_targets.tolist() == [1]
    assert graph.is_reachable.tolist() == [True, False]
    assert graph.may_end.tolist() == [True, True]
    assert [(problem.place, problem.kernel) for problem in graph.problems] == [("first at pc offset 0x10", "kernel")]


@pytest.mark.parametrize(
    ("branch", "falls"),
    [
        ("BRA `(end)", False),
        ("@!P0 BRA `(end)", True),
        ("@UP0 BRA.U `(end)", True),
        ("BRA P1, `(end)", True),
        ("BRA.U !UP0, `(end)", True),
        ("@P0 BRA !P2, `(end)", True),
        ("BRA.CONV ~URZ, `(end)", True),
        ("BRA.DIV UR4, `(end)", True),
    ],
)
def test_which_branches_fall_through(branch: str, falls: bool):
    graph = build(f"{branch}\nNOP\nend:\nEXIT")
    assert graph.next_instructions(0) == ((1, 2) if falls else (2,))


@pytest.mark.parametrize("leave", ["EXIT", "RET.REL.NODEC R20 `(kernel)", "KILL"])
def test_a_guarded_exit_goes_both_ways(leave: str):
    graph = build(f"@P0 {leave}\nEXIT\nNOP")
    assert list_edges(graph) == {(0, 1): FALL}
    assert graph.may_end.tolist() == [True, True, True]
    # The second EXIT is on no path of the threads that took the first.
    assert graph.immediate_post_dominator.tolist() == [-1, -1, -1]
    assert graph.is_reachable.tolist() == [True, True, False]


def test_a_guard_that_never_holds_makes_an_instruction_of_no_consequence():
    graph = build("@!PT EXIT\n@!PT BRA `(end)\nNOP\nend:\nEXIT")
    assert graph.next_instructions(0) == (1,)
    assert graph.next_instructions(1) == (2,)
    assert graph.may_end.tolist() == [True]
    assert graph.block_count == 1


@pytest.mark.parametrize("nothing", ["WARPSYNC R0", "WARPSYNC.COLLECTIVE R0, `(end)", "YIELD", "@P0 BREAK B0", "NOP"])
def test_what_does_not_end_a_block(nothing: str):
    graph = build(f"{nothing}\nend:\nEXIT")
    assert graph.block_count == 1


def test_a_branch_to_the_next_instruction_is_one_edge():
    graph = build("@P0 BRA `(next)\nnext:\nEXIT")
    assert list_edges(graph) == {(0, 1): FALL}


def test_a_trap_can_be_run_past():
    graph = build("BPT.TRAP 0x1\nEXIT")
    assert list_edges(graph) == {(0, 1): EdgeKind.TRAP_RETURN}


def test_filler_behind_the_last_exit_is_kept_and_unreachable():
    graph = build("""
            EXIT            // 0
        filler:
            BRA `(filler)   // 1
            NOP             // 2
            NOP             // 3
    """)
    assert list_edges(graph) == {(1, 1): BRANCH}
    assert graph.block_of_instruction.tolist() == [0, 1, 2, 2]
    assert graph.is_reachable.tolist() == [True, False, False]
    assert graph.reaches_end.tolist() == [True, False, True]
    assert graph.loops == ()


def test_an_endless_loop_never_reaches_the_end():
    graph = build("""
            @P0 BRA `(end)     // 0
        again:
            LDG R0, [R2]       // 1
            BRA `(again)       // 2
        end:
            EXIT               // 3
    """)
    assert graph.reaches_end.tolist() == [True, False, True]
    # Every path that ends, ends over block 2.
    assert graph.immediate_post_dominator.tolist() == [2, -1, -1]
    assert list(graph.post_dominators_of(0)) == [0, 2]
    assert list(graph.post_dominators_of(1)) == []
    assert [loop.header for loop in graph.loops] == [1]


def test_calls_come_back_and_callees_are_entries():
    graph = build("""
            CALL.REL.NOINC `($kernel$helper)    // 0
            CALL.ABS.NOINC `(vprintf)           // 1
            CALL.REL.NOINC R2 `(kernel)         // 2
            EXIT                                // 3
        $kernel$helper:
            @P0 CALL.REL.NOINC `($kernel$helper)   // 4
            RET.REL.NODEC R20 `(kernel)            // 5
    """)
    back = EdgeKind.CALL_RETURN
    assert list_edges(graph) == {(0, 1): back, (1, 2): back, (2, 3): back, (4, 5): back}
    assert [(p.name, p.entry_block, p.start_offset, p.end_offset) for p in graph.procedures] == [
        ("kernel", 0, 0, 64),
        ("$kernel$helper", 4, 64, 96),
    ]
    assert graph.procedure_of_block.tolist() == [0, 0, 0, 0, 1, 1]
    assert graph.is_reachable.all()
    assert [(call.instruction, call.callee_procedure, call.symbol, call.is_indirect) for call in graph.calls] == [
        (0, 1, None, False),
        (1, None, "vprintf", False),
        (2, None, None, True),
        (4, 1, None, False),
    ]


def test_a_call_to_where_no_routine_starts_is_a_long_jump():
    """ptxas leaves a huge loop body this way (seen in code for sm_80)."""
    graph = build("""
        loop:
            @P0 CALL.REL.NOINC `(leave)   // 0
            BRA `(loop)                   // 1
        leave:
            EXIT                          // 2
    """)
    assert list_edges(graph) == {(0, 1): EdgeKind.CALL_RETURN, (0, 2): BRANCH, (1, 0): BRANCH}
    assert graph.calls == ()
    assert [loop.header for loop in graph.loops] == [0]


def test_a_branch_to_a_symbol_elsewhere_is_a_call_that_does_not_come_back():
    graph = build("BRA `(other)")
    assert [(call.symbol, call.is_tail) for call in graph.calls] == [("other", True)]
    assert len(graph.unknown_targets) == 0
    assert graph.may_end.tolist() == [True]


def test_divergence_regions_pair_barriers():
    function, instructions = assemble("""
            BSSY B1, `(after_outer)       // 0
            @P0 BRA `(outer)              // 1
            BSSY.RECONVERGENT B0, `(after_inner)   // 2
            @P1 BRA `(inner)              // 3
            NOP                           // 4
        inner:
            BSYNC.RECONVERGENT B0         // 5
        after_inner:
            NOP                           // 6
        outer:
            BSYNC B1                      // 7
        after_outer:
            EXIT                          // 8
    """)
    graph = build_flow_graph(function, instructions)
    first = graph.first_instruction.tolist()
    assert [
        (
            region.barrier,
            region.set_instruction,
            first[region.set_block],
            first[region.target_block],
            region.wait_instruction,
        )
        for region in list_divergence_regions(instructions, graph)
    ] == [(1, 0, 0, 8, 7), (0, 2, 2, 6, 5)]


def test_a_barrier_that_nobody_waits_at_has_no_partner():
    function, instructions = assemble("BSSY B1, `(after)\nBSYNC B2\nafter:\nEXIT")
    regions = list_divergence_regions(instructions, build_flow_graph(function, instructions))
    assert [(region.barrier, region.wait_instruction) for region in regions] == [(1, None)]


@pytest.mark.parametrize("target", ["0x18", "0x7fffffff0", "0x30"])
@pytest.mark.parametrize("opcode", ["BRA", "BSSY B0,", "CALL.REL.NOINC"])
def test_a_branch_to_what_is_no_instruction_becomes_a_problem(opcode: str, target: str):
    graph = build(f"NOP\n{opcode} `({target})\nEXIT")
    assert [problem.place for problem in graph.problems] == ["first at pc offset 0x10"] * (opcode == "BRA")
    assert set(graph.edge_kind.tolist()) <= {FALL, EdgeKind.CALL_RETURN}


def test_listed_targets_outside_are_left_out():
    function = make_function("kernel", 2, indirect_branch_targets={0: (16, 24, 32, -16, 1 << 62)})
    _, instructions = assemble("BRX R2 -0x10\nEXIT")
    graph = build_flow_graph(function, instructions)
    assert list_edges(graph) == {(0, 1): INDIRECT}
    assert len(graph.unknown_targets) == 0
    assert len(graph.problems) == 1


def test_sub_functions_that_start_nowhere_are_left_out():
    subs = [("$a", 0), ("$b", 1), ("$c", 1), ("$d", 7)]
    function = make_function("kernel", 2, sub_functions=tuple(make_sub_function(*sub, 1) for sub in subs))
    _, instructions = assemble("NOP\nEXIT")
    assert [procedure.name for procedure in build_flow_graph(function, instructions).procedures] == ["kernel", "$b"]


def test_a_section_without_instructions():
    graph = build("")
    assert graph.block_count == 0
    assert graph.procedures == ()
    assert graph.loops == ()
    assert graph.calls == ()
    assert graph.problems == ()


def test_code_that_runs_off_its_end_leaves_there():
    graph = build("NOP\nNOP")
    assert graph.may_end.tolist() == [True]
    assert graph.reaches_end.tolist() == [True]
    assert np.array_equal(graph.immediate_post_dominator, [-1])
