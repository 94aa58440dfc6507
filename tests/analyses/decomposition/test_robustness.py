"""Answers exist for every kernel, even where metrics or code are missing."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS
from gpa_lsp.diagnosis.analyses.questions import memory_latency, stall_sources, top_down
from gpa_lsp.diagnosis.analyses.subject import Subject
from tests.analyses.decomposition.test_reason_notes import COUNTERS, LOADS
from tests.analyses.decomposition.written_facts import name_state, write_facts
from tests.rows.written import write_kernel

QUESTIONS = (top_down, memory_latency, stall_sources)
STATES = {name_state(state): 1.0 for state in ("selected", "long_scoreboard", "wait", "imc_miss")}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.ANALYSIS.name)
@pytest.mark.parametrize("lost", [None, *COUNTERS, *STATES])
def test_each_metric_may_be_missing(question, lost):
    metrics = {name: value for name, value in {**COUNTERS, **STATES}.items() if name != lost}
    answer = question.ANALYSIS.ask(write_facts(LOADS, metrics, compute_capability=(8, 0)))
    assert answer.is_known
    assert answer.findings


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.ANALYSIS.name)
def test_blame_instructions_executions_architecture_and_launches_may_be_missing(question):
    kernel = write_kernel(LOADS)
    bare = replace(kernel.functions[0], instructions=None, graph=None, lines=None)
    without = [
        kernel,
        replace(kernel, architecture=None),
        replace(kernel, functions=(bare,)),
        replace(kernel, functions=(replace(bare, executions=bare.executions * 0 - 1),)),
        replace(kernel, launches=()),
    ]
    for one in without:
        answer = question.ANALYSIS.ask(Subject(one))
        assert answer.is_known
        assert answer.summary


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.ANALYSIS.name)
def test_code_without_a_profile_has_no_answer(question):
    kernel = replace(write_kernel("    MOV R0, R1"), launches=())
    answer = question.ANALYSIS.ask(Subject(kernel))
    assert not answer.is_known
    assert answer.missing


def test_missing_blame_and_missing_instructions_are_said():
    kernel = write_kernel(LOADS)
    bare = replace(kernel, functions=(replace(kernel.functions[0], instructions=None, graph=None),))
    said = {one.what for one in stall_sources.ANALYSIS.ask(Subject(bare)).missing}
    assert said == {"the instructions that cause the stalls", "which instructions stall"}


def test_the_marks_of_long_code_are_limited_and_ordered():
    lines = [
        f"B-:R-:W2:-:S02  LDG.E R4, [R2.64]  # k.cu:{2 * number}\n"
        f"B2:R-:W-:-:S02  FADD R5, R4, R4  # k.cu:{2 * number + 1} | long_scoreboard={300 + number}"
        for number in range(1, 300)
    ]
    facts = write_facts("\n".join(lines))
    for question in (memory_latency, stall_sources):
        marks = question.ANALYSIS.ask(facts).marks
        assert len(marks) == MOST_MARKS
        shares = [mark.share_ratio for mark in marks]
        assert shares == sorted(shares, reverse=True)
        assert (marks[0].file, marks[0].line) == ("k.cu", 598)
