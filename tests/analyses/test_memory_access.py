"""Findings on memory accesses: patterns, weights, words, and what is left unsaid."""

import msgspec.structs
import pytest

from gpa_lsp.diagnosis.analyses.access import Pattern, RequestShape, find_pattern, read_accesses
from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, Answer
from gpa_lsp.diagnosis.analyses.questions.memory_access import ANALYSIS
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.dataflow.accesses import count_access_bytes
from tests.rows.written import write_kernel

LOAD = """
B-:R-:W2:-:S02  {access}             # k.cu:1 | {own} | x=100 {counters}
B2:R-:W-:-:S05  FADD R6, R2, R6      # k.cu:2 | long_scoreboard={waits} selected=100
"""


def ask(text: str, **kernel) -> Answer:
    written = write_kernel(text, **kernel)
    return ANALYSIS.ask(Subject(written, blame_kernel(written), None))


@pytest.mark.parametrize(
    ("shape", "pattern"),
    [
        (RequestShape(sectors=4, ideal_sectors=4), Pattern.NEIGHBOURS),
        (RequestShape(sectors=4.1, ideal_sectors=4), Pattern.NEIGHBOURS),
        (RequestShape(sectors=5, ideal_sectors=4), Pattern.MISALIGNED),
        (RequestShape(sectors=9, ideal_sectors=8), Pattern.MISALIGNED),
        (RequestShape(sectors=8, ideal_sectors=4), Pattern.STRIDE),
        (RequestShape(sectors=16, ideal_sectors=4), Pattern.STRIDE),  # a structure of four floats
        (RequestShape(sectors=16, ideal_sectors=8), Pattern.STRIDE),  # every other double
        (RequestShape(sectors=32, ideal_sectors=4), Pattern.APART),
        (RequestShape(sectors=16, ideal_sectors=2), Pattern.APART),  # 16 by 16 threads, down a column
        (RequestShape(sectors=8, ideal_sectors=1, threads=8), Pattern.APART),
        (RequestShape(sectors=20, ideal_sectors=4, is_atomic=True), Pattern.SCATTERED_ATOMICS),
    ],
)
def test_patterns(shape, pattern):
    assert find_pattern(shape) is pattern


@pytest.mark.parametrize(
    ("mnemonic", "width_bytes"),
    [
        ("LDG.E.U8.CONSTANT", 1),
        ("LDG.E.S16", 2),
        ("LDG.E", 4),
        ("LDG.E.64.CONSTANT.SYS", 8),
        ("LDGSTS.E.BYPASS.LTC128B.128", 16),
        ("LDSM.16.M88.4", 16),
        ("LDSM.16.M88.2", 8),
        ("LDSM.16.M88", 4),
        ("STSM.16.M88.4", 16),
        ("ATOMG.E.ADD.F64.RN.STRONG.GPU", 8),
        ("LDC.64", 0),
        ("SHFL.BFLY", 0),
        ("BRA", 0),
    ],
)
def test_widths(mnemonic, width_bytes):
    assert count_access_bytes(mnemonic) == width_bytes


def test_marks_are_largest_first_and_bounded():
    lines = "\n".join(
        f"LDG.E R2, [R4.64]    # k.cu:{line} | selected=1 | x=1 global_sectors={line + 4} global_sectors_ideal=4 local_sectors={line}"
        for line in range(1, MOST_MARKS + 1)
    )
    marks = ask(lines).marks
    assert len(marks) == MOST_MARKS
    assert [mark.share_ratio for mark in marks] == sorted((mark.share_ratio for mark in marks), reverse=True)
    assert {mark.measure for mark in marks} == {"excess global sectors", "local memory sectors"}


def test_a_row_whose_ideal_exceeds_what_it_moved_has_no_negative_excess():
    written = write_kernel(
        LOAD.format(
            access="LDG.E R2, [R4.64]", own="selected=1", waits=1, counters="global_sectors=3 global_sectors_ideal=4"
        )
    )
    transfers = read_accesses(Subject(written)).global_transfers
    assert transfers.excess.tolist() == [0, 0]


def test_code_that_cannot_be_disassembled_still_has_its_sectors():
    written = write_kernel(
        LOAD.format(
            access="LDG.E R2, [R4.64]", own="selected=1", waits=1, counters="global_sectors=32 global_sectors_ideal=4"
        )
    )
    (function,) = written.functions
    bare = msgspec.structs.replace(
        written, functions=(msgspec.structs.replace(function, instructions=None, graph=None),)
    )
    answer = ANALYSIS.ask(Subject(bare))
    assert answer.summary.startswith("The accesses move 32 sectors of global memory where 4 would suffice")
    assert [mark.value for mark in answer.marks] == [28]
