"""Longest paths: exact without loops, and what loops count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.graph_search import OutOfWorkError, list_blocks
from gpa_lsp.diagnosis.blame.longest_paths import LongestPaths
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget
from tests.blame.programs import programs, view_program, walk_simple_paths
from tests.blame.written_views import view_text


def make_paths(view: FunctionView, work: int = 10**9) -> LongestPaths:
    return LongestPaths(view.graph, list_blocks(view.graph), WorkBudget(remaining=work))


def measure(text: str, def_row: int, use_row: int) -> int:
    return make_paths(view_text(text)).find(def_row, use_row)


def test_in_one_block_it_is_the_distance():
    assert measure("MOV R0, R1\nNOP\nNOP\nMOV R2, R0", 0, 3) == 3
    assert measure("MOV R0, R1\nMOV R2, R0", 0, 1) == 1


def test_of_two_arms_the_longer_counts():
    text = "MOV R0, R1\n@P0 BRA short\nNOP\nNOP\nNOP\nBRA join\nshort:\nNOP\njoin:\nMOV R2, R0"
    assert measure(text, 0, 7) == 6


def test_a_loop_on_the_way_counts_each_of_its_instructions_once():
    text = "MOV R0, R1\ntop:\nNOP\n@P0 BRA skip\nNOP\nNOP\nskip:\n@P1 BRA top\nMOV R2, R0"
    assert measure(text, 0, 6) == 6


def test_a_loop_that_is_left_or_entered_counts_the_rest_of_its_body():
    text = "MOV R0, R1\ntop:\nMOV R2, R0\nMOV R0, R3\n@P0 BRA skip\nNOP\nskip:\n@P1 BRA top\nMOV R4, R0"
    assert measure(text, 0, 1) == 3  # into the loop: two instructions of it that may have run before, and the use
    assert measure(text, 2, 6) == 4  # out of it: the branch, the NOP, the branch back, and the use


def test_carried_round_a_loop_it_is_the_longest_turn():
    text = "top:\nMOV R2, R0\n@P0 BRA skip\nNOP\nNOP\nskip:\nMOV R0, R3\nNOP\n@P1 BRA top\nEXIT"
    assert measure(text, 4, 0) == 3
    assert measure(text, 0, 0) == 7


def test_paths_do_not_leave_the_loop_around_both():
    inner = "MOV R2, R0\nMOV R0, R3\n@P0 BRA inner"
    text = "outer:\n" + "NOP\n" * 50 + f"inner:\n{inner}\n" + "NOP\n" * 50 + "@P1 BRA outer\nEXIT"
    assert measure(text, 51, 50) == 2


def test_a_cycle_with_two_entries_counts_each_instruction_once():
    text = "MOV R0, R1\n@P0 BRA second\nfirst:\nNOP\nNOP\nsecond:\nNOP\n@P1 BRA first\nMOV R2, R0"
    assert measure(text, 0, 6) == 6


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


@given(forward_programs())
def test_without_loops_it_is_the_longest_of_all_paths(text: str):
    view = view_program(text)
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


@given(programs(longest=11))
def test_with_loops_it_is_no_shorter_than_any_simple_path_inside_them(text: str):
    view = view_program(text)
    paths = make_paths(view)
    for def_row in range(len(view)):
        for use_row in range(len(view)):
            lengths = [len(path) + 1 for path in list_paths_in_one_turn(view, def_row, use_row)]
            if lengths:
                assert max(lengths) <= paths.find(def_row, use_row) <= 2 * len(view)
