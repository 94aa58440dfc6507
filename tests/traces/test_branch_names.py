"""Names tell the branches of one place apart: functions by their names, statements by their conditions, and how many branches there are."""

import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.diagnosis.analyses.answers import Weight
from gpa_lsp.execution.traces.ask import list_questions
from gpa_lsp.execution.traces.code_centric import list_path_branches
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.foundation.locations import Frame
from tests.traces.analysing import analyse_trace
from tests.traces.written_traces import FILE, TraceWriter, make_instruction

ALL = 0xFFFFFFFF
CONTEXT = TraceContext(sm_count=2, blocks_per_sm=2, l1_bytes=16 << 10, l2_bytes=1 << 20)
COMPARE = "setp.gt.f32 %p1, %f1, 0f3F800000;"


def _write(*texts: str, line: int = 6) -> list[StaticInstruction]:
    return [make_instruction(number, None, line=line, text=text) for number, text in enumerate(texts)]


def _analyse(
    instructions: list[StaticInstruction], taken_mask: int = 0xFF, entries: tuple[int, ...] = ()
) -> TraceAnalyses:
    writer = TraceWriter(tuple(instructions))
    for mask in entries:
        writer.enter(0, mask)
    for one in instructions:
        if one.text.startswith("bra"):
            writer.branch(one.index, ALL, taken_mask)
    return analyse_trace(writer.finish(), context=CONTEXT)


def test_two_statements_of_one_line_with_one_condition_are_said_to_be_two_branches() -> None:
    two = _write("ld.param.f32 %f1, [k_param_0];", COMPARE, "bra A;", COMPARE, "bra B;")
    (both,) = list_path_branches(_analyse(two))
    assert (both.count, both.executions, both.which) == (2, 2, "")
    assert both.write({FILE: "k.cu"}) == "k.cu:6 (2 branches)"
    (finding,) = list_questions()["traced_branches"].answer(_analyse(two)).findings
    assert "of the 2 branches with one condition at line 6" in str(finding.text)
    assert any(
        "The 2 branches with one condition at line 6" in str(one.text) and "are never taken" in str(one.text)
        for one in list_questions()["traced_values"].answer(_analyse(two, 0)).findings
    )
    (alone,) = list_path_branches(_analyse(two[:3]))
    assert (alone.count, alone.write({FILE: "k.cu"})) == (1, "k.cu:6")


@pytest.mark.parametrize(("behind", "weight"), [(0xFF, Weight.HIGH), (ALL >> 1, Weight.PLAIN)])
def test_a_branch_that_leaves_few_lanes_idle_is_no_advice(behind: int, weight: Weight) -> None:
    guard = _write("ld.param.f32 %f1, [k_param_0];", COMPARE, "bra A;")
    (finding,) = list_questions()["traced_branches"].answer(_analyse(guard, 1, (ALL, behind))).findings
    assert finding.weight is weight


def test_statements_of_an_inlined_function_are_told_by_its_name() -> None:
    texts = ("ld.param.f32 %f1, [k_param_0];", COMPARE, "bra A;", "setp.lt.f32 %p1, %f1, 0f3F800000;", "bra B;")
    inlined = Frame(file=FILE, line=2, function="_Z4pickf")
    instructions = [replace(one, chain=(inlined, *(one.chain or ()))) for one in _write(*texts)]
    assert [one.which for one in list_path_branches(_analyse(instructions))] == [
        "branch 1 of 2 in pick",
        "branch 2 of 2 in pick",
    ]
    assert [one.which for one in list_path_branches(_analyse(_write(*texts)))] == [
        "branch 1 of 2 there",
        "branch 2 of 2 there",
    ]


def test_a_branch_in_a_called_function_without_lines_stands_at_the_call_with_the_functions_name() -> None:
    call, *body = _write("call slow;", COMPARE, "bra A;")
    callee = [replace(one, function="__internal_slowpath", chain=None, calls=(0,)) for one in body]
    (branch,) = list_path_branches(_analyse([call, *callee]))
    assert branch.write({FILE: "k.cu"}) == "k.cu:6 (in __internal_slowpath)"
