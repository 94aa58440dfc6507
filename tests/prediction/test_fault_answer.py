"""Answers about races where they were looked for, and where not; and about a kernel that waits for ever."""

import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.document.prediction_view import describe_execution
from gpa_lsp.execution.emulator.model import Budget, Fault, FaultKind
from gpa_lsp.execution.prediction.fault_answer import answer_faults, explain_unchecked_races
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.predict_launch import merge_faults
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.prose import say
from tests.prediction.kernels import NVRTC, find_project

OFF = say("Races were not checked.")
BUDGET = Fault(kind=FaultKind.TIME_BUDGET, message="not done")


def explain(text: str) -> str:
    one = StaticInstruction(index=0, function="k", text=text, kind=None, space=Space.GENERIC, bytes_per_lane=0)
    return explain_unchecked_races((one,), checks_races=True)


@pytest.mark.parametrize(
    "text",
    [
        "mbarrier.init.shared.b64 [%r1], 32",
        "bar.arrive 1, 64",
        "barrier.arrive 1, 64",
        "barrier.cta.arrive.aligned 1, 64",
    ],
)
def test_the_checks_are_off_in_kernels_that_arrive(text):
    assert explain(text).startswith("Races were not checked: ")


@pytest.mark.parametrize(
    "text", ["bar.sync 0", "barrier.cta.sync 0", "bar.warp.sync -1", "ld.global.u32 %r1, [arrive]"]
)
def test_the_checks_are_on_in_others(text):
    assert explain(text) == ""


def test_no_race_is_said_only_where_it_was_looked_for():
    assert "no race or misplaced barrier was seen" in answer_faults(()).summary
    assert "no race" not in answer_faults((), unchecked_races=OFF).summary
    assert answer_faults((), unchecked_races=OFF).summary.endswith(f"no misplaced barrier was seen. {OFF}")
    assert answer_faults((BUDGET,), unchecked_races=OFF).summary.endswith(f"before all blocks finished. {OFF}")
    assert OFF not in answer_faults((BUDGET,)).summary


def test_where_the_emulator_ended_is_no_fault():
    own = Fault(kind=FaultKind.OUT_OF_BOUNDS, message="past the end")
    (table,) = answer_faults((BUDGET, own)).tables
    assert [row[0] for row in table.rows] == ["out-of-bounds access"]
    ended = answer_faults((BUDGET,))
    assert ended.tables == () and len(ended.findings) == 1


def test_predictions_without_the_check_say_so():
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    settings = replace(DEFAULT_PREDICTION, checks_races=False)
    found = predict_code(find_project(), kernel="saxpy", settings=settings, compile_settings=NVRTC)
    answer = found.kernels[0].find("faults")
    assert answer is not None
    assert answer.summary.endswith(OFF)


def test_a_kernel_that_waits_for_ever_is_not_advised_to_load_the_flag_once():
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    settings = replace(DEFAULT_PREDICTION, budget=Budget(seconds=1.0))
    (kernel,) = predict_code(find_project(), kernel="endless", settings=settings, compile_settings=NVRTC).kernels
    values, bypassing = kernel.find("traced_values"), kernel.find("traced_bypassing")
    assert values is not None and bypassing is not None
    assert values.findings == ()
    assert not bypassing.is_known


def test_where_the_probe_ended_is_not_told():
    ended = Fault(kind=FaultKind.TIME_BUDGET, message="0.05 s are over", instruction=3)
    wrong = Fault(kind=FaultKind.OUT_OF_BOUNDS, message="element 9 of x, which has 9", instruction=1)
    assert merge_faults((), (ended, wrong)) == (wrong,)
    assert merge_faults((wrong,), (wrong,)) == (wrong,)


def test_faults_of_one_line_are_one_fault():
    line, other = (Frame(file="k.cu", line=3),), (Frame(file="k.cu", line=4),)
    race = Fault(kind=FaultKind.SHARED_RACE, message="two threads write byte 8", instruction=7, chain=line, count=2)
    many = tuple(replace(race, instruction=number, count=1) for number in range(8, 18))
    elsewhere, kind = replace(race, instruction=20, chain=other), replace(race, kind=FaultKind.OUT_OF_BOUNDS)
    nowhere = (replace(race, instruction=30, chain=None), replace(race, instruction=31, chain=None))
    found = merge_faults((race, *many, elsewhere, *nowhere), (replace(race, instruction=99), kind))
    assert [(one.kind, one.instructions, one.count) for one in found] == [
        (FaultKind.SHARED_RACE, 12, 14), (FaultKind.SHARED_RACE, 1, 2), (FaultKind.SHARED_RACE, 1, 2),
        (FaultKind.SHARED_RACE, 1, 2), (FaultKind.OUT_OF_BOUNDS, 1, 2),
    ]  # fmt: skip
    answer = answer_faults(found)
    assert str(answer.findings[0].text).endswith("two threads write byte 8; so do 11 more instructions of the line.")
    assert "so do" not in answer.findings[1].text


def test_what_unfinished_blocks_did_not_do_is_not_denied():
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    settings = replace(DEFAULT_PREDICTION, budget=Budget(seconds=0.5))
    (kernel,) = predict_code(find_project(), kernel="endless", settings=settings, compile_settings=NVRTC).kernels
    assert {fact.line for fact in kernel.accesses} == {17}
    banks = kernel.find("traced_banks")
    assert banks is not None and "in what was traced of them; they did not run to their end" in banks.summary
    assert "0 of 1 block, and no further" in describe_execution(kernel.execution)
    whole = predict_code(find_project(), kernel="beyond", compile_settings=NVRTC).kernels[0].find("traced_banks")
    assert whole is not None and whole.summary == "The traced blocks do not access shared memory."
