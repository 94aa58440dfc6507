"""The three pruning rules: by hand on ten lines, and the dominator and latency rules against plain walks over random functions."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.diagnosis.blame.def_use import find_def_use
from gpa_lsp.diagnosis.blame.paths import ShortestPaths
from gpa_lsp.diagnosis.blame.pruning import DependencyEdge, Pruner, StallClass, build_edge, can_cause, classify_reason
from gpa_lsp.diagnosis.blame.slicing import Slicer
from gpa_lsp.diagnosis.blame.view import FunctionView, OutOfWorkError, WorkBudget
from tests.blame.programs import is_reachable, programs, walk_simple_paths
from tests.blame.written_views import view_text
from tests.conftest import examples

R0, R2 = 0, 2
MEMORY, EXECUTION, SYNCHRONISATION = StallClass


def make_pruner(view: FunctionView, work: int = 10**9) -> Pruner:
    budget = WorkBudget(remaining=work)
    paths = ShortestPaths(view.blocks, budget)
    return Pruner(view, find_def_use(view), paths, budget)


def list_edges(view: FunctionView) -> list[DependencyEdge]:
    def_use = find_def_use(view)
    budget = WorkBudget(remaining=10**9)
    paths = ShortestPaths(view.blocks, budget)
    slicer = Slicer(view, def_use, paths=paths, find_reach=lambda row, resource: 1e9, budget=budget)
    return [
        build_edge(def_use, definition, row, resources)
        for row in range(len(view))
        for definition, resources in slicer.find_sources(row).items()
    ]


@pytest.mark.parametrize(
    ("reason", "stall_class"),
    [
        ("long_scoreboard", MEMORY),
        ("short_scoreboard", EXECUTION),
        ("wait", EXECUTION),
        ("barrier", SYNCHRONISATION),
        ("membar", SYNCHRONISATION),
        ("warpgroup_arrive", SYNCHRONISATION),
        ("selected", None),
        ("lg_throttle", None),
        ("branch_resolving", None),
        ("no_such_reason", None),
    ],
)
def test_reasons_have_the_published_classes(reason, stall_class):
    assert classify_reason(reason) is stall_class


@pytest.mark.parametrize(
    ("mnemonic", "memory", "execution", "synchronisation"),
    [
        ("LDG.E", True, False, False),
        ("LDL", True, False, False),
        ("STG.E", True, False, False),
        ("ATOMG.E.ADD", True, False, False),
        ("TEX", True, False, False),
        ("LDC", True, True, False),
        ("LDS", False, True, False),
        ("STS", False, True, False),
        ("MUFU.RCP", False, True, False),
        ("SHFL.BFLY", False, True, False),
        ("IMAD", False, True, False),
        ("BAR.SYNC", False, True, True),
        ("MEMBAR.SC.GPU", False, True, True),
    ],
)
def test_rule_1_opcodes_cause_their_own_class_of_stalls(mnemonic, memory, execution, synchronisation):
    opcode = describe_mnemonic(mnemonic)
    assert [can_cause(opcode, one) for one in StallClass] == [memory, execution, synchronisation]


def test_rule_1_reading_operands_is_an_execution_dependency_whatever_the_opcode():
    assert can_cause(describe_mnemonic("STG.E"), EXECUTION, waits_for_operands=True)


def prune_dominated(pruner: Pruner, edge: DependencyEdge) -> DependencyEdge | None:
    """Rule 2 alone: an edge without what another instruction on every path would have waited for; None when nothing is left."""
    if any(pruner.is_used_on_every_path(edge, resource) for resource in edge.by_result):
        return None
    waits = tuple(one for one in edge.by_operands if not pruner.is_used_on_every_path(edge, one))
    return edge._replace(by_operands=waits) if edge.by_result or waits else None


LOAD = "B-:R-:W0:-:S02  LDG.E R0, [R2.64]\n"


@pytest.mark.parametrize(
    ("between", "is_kept"),
    [
        ("", True),
        ("MOV R6, R7", True),
        ("MOV R6, R0", False),
        ("@P0 MOV R6, R0", True),
        ("B0:R-:W-:-:S01 MOV R6, R7", False),
        ("@P0 BRA skip\nMOV R6, R0\nskip:", True),
        ("@P0 BRA skip\nMOV R6, R7\nskip:\nMOV R5, R0", False),
        ("@P0 BRA other\nMOV R6, R0\nBRA join\nother:\nMOV R6, R0\njoin:", True),  # no single one is on both arms
        (
            "@P0 BRA other\nMOV R6, R7\nBRA join\nother:\nMOV R6, R8\njoin:\nMOV R5, R0\n@P1 BRA end\nMOV R5, R6\nend:",
            False,
        ),
    ],
)
def test_rule_2_somebody_on_every_path_would_have_stalled_first(between, is_kept):
    view = view_text(f"{LOAD}{between}\nB0:R-:W-:-:S04 IADD3 R8, R0, R9, RZ")
    edge = next(one for one in list_edges(view) if one.use_row == len(view) - 1 and one.def_row == 0)
    assert (prune_dominated(make_pruner(view), edge) is not None) is is_kept


def test_rule_2_in_a_loop_only_what_lies_on_the_turn_counts():
    view = view_text("top:\nMOV R6, R0\nMOV R0, R7\nMOV R5, R0\n@P0 BRA top\nEXIT")
    (carried,) = [one for one in list_edges(view) if one.use_row == 0 and R0 in one.by_result]
    assert prune_dominated(make_pruner(view), carried) is None
    unused = view_text("top:\nMOV R6, R0\nMOV R0, R7\nMOV R5, R8\n@P0 BRA top\nEXIT")
    (carried,) = [one for one in list_edges(unused) if one.use_row == 0 and R0 in one.by_result]
    assert prune_dominated(make_pruner(unused), carried) == carried


def test_rule_2_whoever_waited_for_the_operands_only_leaves_the_result_to_wait_for():
    view = view_text("""
        B-:R1:W0:-:S02   LDG.E R0, [R2.64]
        B1:R-:W-:-:S01   MOV R2, R7
        B01:R-:W-:-:S01  MOV R2, R0
    """)
    (edge,) = [one for one in list_edges(view) if one.use_row == 2 and one.def_row == 0]
    assert edge.by_operands
    assert prune_dominated(make_pruner(view), edge) == edge._replace(by_operands=())


@pytest.mark.parametrize(("between", "is_kept"), [(0, True), (4, True), (5, False), (300, False)])
def test_rule_3_a_path_longer_than_the_latency_hides_it(between, is_kept):
    view = view_text("\n".join(["IADD3 R0, R2, R3, RZ", *["NOP"] * between, "FFMA R8, R0, R9, R10"]))
    (edge,) = [one for one in list_edges(view) if one.use_row == len(view) - 1]
    assert make_pruner(view).find_latency(edge) == 5
    assert (make_pruner(view).prune(edge) is not None) is is_kept


@pytest.mark.parametrize(
    ("first", "second", "latency"),
    [
        ("ISETP.LT.AND P0, PT, R2, R3, PT", "@P0 FFMA R8, R9, R9, R9", 13),
        ("ISETP.LT.AND P0, PT, R2, R3, PT", "SEL R8, R9, R9, P0", 4),
        ("UIADD3 UR4, UR5, 0x1, URZ", "IADD3 R8, R9, UR4, RZ", 12),
        ("B-:R-:W0:-:S02 LDG.E R0, [R2.64]", "B0:R-:W-:-:S02 FFMA R8, R0, R9, R9", 1400),
        ("B-:R-:W0:-:S02 LDS R0, [R2]", "B0:R-:W-:-:S02 FFMA R8, R0, R9, R9", 80),
        ("B-:R-:W0:-:S02 SHFL.BFLY PT, R0, R2, 0x1, 0x1f", "B0:R-:W-:-:S02 FFMA R8, R0, R9, R9", 80),
        ("B-:R0:W-:-:S02 STG.E [R2.64], R0", "B0:R-:W-:-:S02 MOV R0, R9", 1400),
    ],
)
def test_rule_3_takes_the_longest_latency_the_tables_have(first, second, latency):
    view = view_text(f"{first}\n{second}")
    (edge,) = [one for one in list_edges(view) if one.use_row == 1]
    assert make_pruner(view).find_latency(edge) == latency


def test_rule_3_prunes_nothing_on_an_unknown_architecture():
    view = view_text("\n".join(["IADD3 R0, R2, R3, RZ", *["NOP"] * 99, "FFMA R8, R0, R9, R10"]))
    (edge,) = [one for one in list_edges(view) if one.use_row == 100]
    assert make_pruner(view).prune(edge) is None
    assert make_pruner(replace(view, architecture=None)).prune(edge) == (edge, (100, 100))


def test_the_shorter_of_two_paths_decides():
    view = view_text("IADD3 R0, R2, R3, RZ\n@P0 BRA near\n" + "NOP\n" * 20 + "near:\nFFMA R8, R0, R9, R10")
    (edge,) = [one for one in list_edges(view) if one.use_row == len(view) - 1]
    pruned = make_pruner(view).prune(edge)
    assert pruned[1].instructions == 2


@examples(80)
@given(programs())
def test_the_dominator_rule_is_that_removing_one_instruction_cuts_all_paths(text: str):
    view = view_text(text)
    pruner, plain_uses = make_pruner(view), find_def_use(view).plain_uses
    for edge in list_edges(view):
        for resource in (*edge.by_result, *edge.by_operands):
            assert is_reachable(view, edge.def_row, edge.use_row, lambda row: True)
            users = set(plain_uses.get(resource, ())) - {edge.def_row, edge.use_row}
            cutting = [
                k for k in users if not is_reachable(view, edge.def_row, edge.use_row, lambda row, k=k: row != k)
            ]
            assert pruner.is_used_on_every_path(edge, resource) is bool(cutting)


@examples(80)
@given(programs(longest=10))
def test_the_latency_rule_is_that_every_simple_path_is_longer(text: str):
    view = view_text(text)
    paths = ShortestPaths(view.blocks, WorkBudget(remaining=10**9))
    stalls = view.stall_cycles
    for edge in list_edges(view):
        found = paths.find(edge.def_row, edge.use_row)
        lengths = [
            (len(path) + 1, int(stalls[edge.def_row] + stalls[list(path)].sum()))
            for path in walk_simple_paths(view, edge.def_row, edge.use_row)
        ]
        assert found is not None
        assert (found.instructions, found.cycles) == min(lengths)
        assert paths.find(edge.def_row, edge.use_row, found.instructions) == found
        assert paths.find(edge.def_row, edge.use_row, found.instructions - 1) is None


def test_a_spent_budget_stops_the_rules():
    view = view_text("IADD3 R0, R2, R3, RZ\n@P0 BRA near\nNOP\nnear:\nFFMA R8, R0, R9, R10")
    (edge,) = [one for one in list_edges(view) if one.use_row == 3]
    with pytest.raises(OutOfWorkError):
        make_pruner(view, work=3).prune(edge)


@examples(80)
@given(programs())
def test_the_rules_together_keep_what_each_of_them_keeps(text: str):
    view = view_text(text)
    for edge in list_edges(view):
        pruner = make_pruner(view)
        paths = ShortestPaths(view.blocks, WorkBudget(remaining=10**9))
        distance = paths.find(edge.def_row, edge.use_row, pruner.find_latency(edge))
        kept = prune_dominated(make_pruner(view), edge)
        assert pruner.prune(edge) == (None if distance is None or kept is None else (kept, distance))
