"""Columns by source line: sums, the heaviest instruction, marks, and the lines through which code was inlined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS
from gpa_lsp.diagnosis.analyses.line_sums import (
    LineIndex,
    index_lines,
    index_outermost_lines,
    mark_lines,
    mark_with_callers,
    rank_lines,
    sum_waits,
)
from gpa_lsp.diagnosis.analyses.questions import divergence, instruction_mix, memory_access
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import say
from gpa_lsp.kernel.place import COUNTERS
from tests.analyses.checked_answers import check_answer
from tests.conftest import examples
from tests.rows.written import write_kernel

INLINED = """
FADD R1, R1, R1    # k.cu:3 | selected=1
FADD R2, R2, R2    # lib.h:7 < k.cu:4 | selected=2
FADD R3, R3, R3    # lib.h:7 < k.cu:5 | selected=4
FADD R4, R4, R4    # lib.h:9 < k.cu:4 | selected=8
FADD R5, R5, R5    # - | selected=16
[helper]
FADD R6, R6, R6    # k.cu:3 | selected=32
FADD R7, R7, R7    # - | selected=64
"""


def facts_of(text: str):
    return Subject(write_kernel(text), None, None)


def sums_by_name(text: str, find_index=index_lines) -> dict[str, float]:
    facts = facts_of(text)
    index = find_index(facts)
    sums = index.sum_by_line(facts.rows.all_samples.sum(axis=1))
    return {index.write_line(line): one for line, one in enumerate(sums.tolist())}


def test_innermost_lines_of_all_functions():
    assert sums_by_name(INLINED) == {
        "k.cu:3": 33,
        "lib.h:7": 6,
        "lib.h:9": 8,
        "kernel": 16,
        "helper": 64,
    }


def test_outermost_lines_gather_what_was_inlined_there():
    assert sums_by_name(INLINED, index_outermost_lines) == {
        "k.cu:3": 33,
        "k.cu:4": 10,
        "k.cu:5": 4,
        "kernel": 16,
        "helper": 64,
    }


def test_a_line_the_compiler_left_out_belongs_to_its_function():
    facts = facts_of("FADD R1, R1, R1    # k.cu:0 | selected=1")
    index = index_lines(facts)
    assert (index.places, index.functions) == ((None,), ("kernel",))


def test_marks_name_the_heaviest_instruction_and_the_share_of_all():
    facts = facts_of(INLINED)
    marks = mark_lines(
        facts,
        index_lines(facts),
        facts.rows.all_samples.sum(axis=1),
        measure="samples",
        quantity=Quantity.SAMPLES,
        describe=lambda line: say("place {line}", line=str(line)),
    )
    assert [(mark.file, mark.line, mark.value, mark.function, mark.pc_offset) for mark in marks] == [
        (None, None, 64, "helper", 0x10),
        ("k.cu", 3, 33, "helper", 0x0),
        (None, None, 16, "kernel", 0x40),
        ("lib.h", 9, 8, "kernel", 0x30),
        ("lib.h", 7, 6, "kernel", 0x20),
    ]
    assert sum(mark.share_ratio for mark in marks) == pytest.approx(1)


def test_inlined_code_is_marked_where_the_kernel_asked_for_it():
    facts = facts_of(INLINED)
    samples = facts.rows.all_samples.sum(axis=1)
    every = mark_with_callers(facts, index_lines(facts), samples, measure="samples", describe=lambda _: say("here"))
    marks = [mark for mark in every if mark.measure != "samples"]
    assert [(mark.measure, mark.line, mark.value, mark.text) for mark in marks] == [
        ("samples, in inlined code", 4, 10, "most of it at line 9 of lib.h"),
        ("samples, in inlined code", 5, 4, "most of it at line 7 of lib.h"),
    ]
    assert marks[0].share_ratio == pytest.approx(10 / 127)


def test_there_are_no_more_marks_than_an_answer_may_have():
    text = "\n".join(f"FADD R1, R1, R1    # k.cu:{line} | selected={line}" for line in range(1, MOST_MARKS + 51))
    facts = facts_of(text)
    marks = mark_lines(
        facts,
        index_lines(facts),
        facts.rows.all_samples.sum(axis=1),
        measure="samples",
        quantity=Quantity.SAMPLES,
        describe=lambda line: say("place {line}", line=str(line)),
        most=10 * MOST_MARKS,
    )
    assert [mark.line for mark in marks] == list(range(MOST_MARKS + 50, 50, -1))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1 << 40)), min_size=1, max_size=60))
def test_sums_are_conserved_and_the_heaviest_is_on_its_line(rows):
    line_of, values = (np.array(column) for column in zip(*rows, strict=True))
    places = tuple(SourceLine(file="k.cu", line=number + 1) for number in range(7))
    index = LineIndex(line_of=line_of.astype(np.int32), places=places, functions=("kernel",) * 7)
    sums = index.sum_by_line(values)
    assert sums.tolist() == [sum(value for line, value in rows if line == number) for number in range(7)]
    heaviest = index.find_heaviest(values)
    for line, row in enumerate(heaviest.tolist()):
        on_line = [value for number, value in rows if number == line]
        if max(on_line, default=0) == 0:
            assert row == -1
        else:
            assert line_of[row] == line
            assert values[row] == max(on_line)
    ranked = rank_lines(sums)
    assert [sums[line] for line in ranked] == sorted((one for one in sums if one > 0), reverse=True)


WAITING = """
B-:R-:W2:-:S02  LDG.E R2, [R4.64]    # k.cu:1 | selected=5
B2:R-:W-:-:S05  FADD R6, R2, R6      # k.cu:2 | long_scoreboard=90 selected=5
"""


def test_waits_are_counted_for_their_cause():
    kernel = write_kernel(WAITING)
    facts = Subject(kernel, blame_kernel(kernel), None)
    assert sum_waits(facts, (BlameCategory.MEMORY_GLOBAL,)).tolist() == [90, 0]
    assert sum_waits(facts).sum() == 100


def test_without_blame_samples_stay_where_they_were_taken():
    assert sum_waits(facts_of(WAITING), (BlameCategory.MEMORY_GLOBAL,)).tolist() == [5, 95]


QUESTIONS = [memory_access.ANALYSIS, divergence.ANALYSIS, instruction_mix.ANALYSIS]
TEXTS = (
    "LDG.E.64 R2, [R4.64]", "STG.E [R4.64], R2", "ATOMG.E.ADD.STRONG.GPU R2, [R4.64], R8", "LDS R2, [R4]", "STS.128 [R4], R8", "LDL R2, [R1]",
    "FADD R2, R2, R3", "FMUL R2, R2, R3", "FFMA R2, R2, R3, R4", "F2F.F64.F32 R2, R6", "HFMA2.MMA R2, -RZ, RZ, 0, 0", "@P0 BRA 0x0", "@P0 EXIT",
    "S2R R3, SR_TID.X", "BAR.SYNC.DEFER_BLOCKING 0x0", "DADD R2, R2, R4", "FROB R2, R3",
)  # fmt: skip
PLACES = ("k.cu:1", "k.cu:2", "lib.h:5 < k.cu:2", "k.cu:0", "-")
METRICS = (
    "sm__cycles_active.avg",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "lts__t_sector_hit_rate.pct",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
)


@st.composite
def written(draw):
    names = draw(st.lists(st.sampled_from([*COUNTERS, "x"]), unique=True))
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        counters = " ".join(f"{name}={draw(st.integers(0, 9999))}" for name in names if draw(st.booleans()))
        samples = f"selected={draw(st.integers(0, 9))} lg_throttle={draw(st.integers(0, 99))}"
        lines.append(f"{draw(st.sampled_from(TEXTS))}    # {draw(st.sampled_from(PLACES))} | {samples} | {counters}")
    metrics = {name: draw(st.floats(0, 100)) for name in METRICS if draw(st.booleans())}
    capability = draw(st.sampled_from([(7, 0), (8, 6), (9, 0), (10, 3), (12, 0)]))
    return write_kernel(
        "\n".join(lines), metrics=metrics, compute_capability=capability, block=(draw(st.integers(1, 96)), 1, 1)
    )


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
@examples(100)
@given(kernel=written(), with_blame=st.booleans())
def test_answers_hold_together_whatever_was_counted(question, kernel, with_blame):
    answer = question.ask(Subject(kernel, blame_kernel(kernel) if with_blame else None, None))
    assert answer.analysis == question.name
    check_answer(answer)
