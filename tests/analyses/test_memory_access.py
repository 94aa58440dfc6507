"""What is said of memory accesses: patterns, weights, words, and what is left unsaid."""

import msgspec.structs
import pytest

from gpa_lsp.diagnosis.analyses.access import Pattern, RequestShape, find_pattern, read_accesses
from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, Answer, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.questions.memory_access import ANALYSIS
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.dataflow.accesses import count_access_bytes
from tests.rows.written import write_kernel

LOAD = """
B-:R-:W2:-:S02  {access}             # k.cu:1 | {own} | x=100 {counters}
B2:R-:W-:-:S05  FADD R6, R2, R6      # k.cu:2 | long_scoreboard={waits} selected=100
"""


def ask(text: str, **kernel) -> Answer:
    written = write_kernel(text, **kernel)
    return ANALYSIS.answer(KernelFacts(written, blame_kernel(written), None))


def ask_load(counters: str, *, access: str = "LDG.E R2, [R4.64]", own: str = "selected=10", waits: int = 100, **kernel):
    return ask(LOAD.format(access=access, counters=counters, own=own, waits=waits), **kernel)


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


def test_a_misaligned_row_that_much_waits_for_is_spoken_of_but_not_what_holds_the_kernel_up():
    answer = ask_load(
        "global_sectors=900 global_sectors_ideal=800 thread_executions_true=3200", access="LDG.E.64 R2, [R4.64]"
    )
    (finding,) = answer.findings
    assert finding.weight is Weight.PLAIN
    assert "9 sectors per access where 8 would suffice: the accesses start or end inside a sector" in finding.text
    assert "multiple of 32 bytes" in finding.remedy
    assert finding.share_ratio == pytest.approx(100 / 210)


def test_perfect_accesses_are_praised_and_not_marked():
    answer = ask_load("global_sectors=400 global_sectors_ideal=400 thread_executions_true=3200")
    (finding,) = answer.findings
    assert finding.weight is Weight.GOOD
    assert answer.marks == ()
    assert answer.summary == "The accesses move 400 sectors of global memory, the minimum."


def test_one_thread_per_warp_is_not_praised_though_its_sectors_are_the_fewest():
    answer = ask_load("global_sectors=100 global_sectors_ideal=100 thread_executions_true=100", block=(1, 1, 1))
    (finding,) = answer.findings
    assert finding.weight is Weight.PLAIN
    assert "1 of 32 threads are active per access on average, and they request 4 of the 32 bytes" in finding.text


def test_bytes_that_threads_share_count_once_where_the_profiler_counted_them():
    metric = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
    shared = "global_sectors=100 global_sectors_ideal=100 thread_executions_true=3200"
    assert any("use 4 of the 32 bytes" in one.text for one in ask_load(shared, metrics={metric: 4.0}).findings)
    assert not any("of the 32 bytes" in one.text for one in ask_load(shared, metrics={metric: 24.0}).findings)


def test_atomics_on_scattered_addresses():
    access = "ATOMG.E.ADD.STRONG.GPU R2, [R4.64], R8"
    answer = ask_load("global_sectors=3200 global_sectors_ideal=400 thread_executions_true=3200", access=access)
    assert "Atomics at line 1 of k.cu touch 32 sectors per access" in answer.findings[0].text
    assert "one atomic per address" in answer.findings[0].remedy


def test_narrow_accesses_matter_only_where_their_queue_is_full():
    plain = "global_sectors=400 global_sectors_ideal=400 thread_executions_true=3200"
    full = ask_load(plain, own="lg_throttle=100")
    assert full.findings[0].weight is Weight.HIGH
    assert "move 4 bytes or fewer per thread" in full.findings[0].text
    assert "float4" in full.findings[0].remedy
    wide = ask_load(plain, own="lg_throttle=100", access="LDG.E.128 R12, [R4.64]")
    assert not any("4 bytes" in one.text for one in (*ask_load(plain).findings, *wide.findings))


def test_marks_are_largest_first_and_bounded():
    lines = "\n".join(
        f"LDG.E R2, [R4.64]    # k.cu:{line} | selected=1 | x=1 global_sectors={line + 4} global_sectors_ideal=4 local_sectors={line}"
        for line in range(1, MOST_MARKS + 1)
    )
    marks = ask(lines).marks
    assert len(marks) == MOST_MARKS
    assert [mark.share_ratio for mark in marks] == sorted((mark.share_ratio for mark in marks), reverse=True)
    assert {mark.measure for mark in marks} == {"excess global sectors", "local memory sectors"}


def test_a_hit_rate_is_never_more_than_all_and_needs_sectors():
    rates = {"lts__t_sector_hit_rate.pct": 100.1, "l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct": 0.0}
    counted = {**rates, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 0.0}
    table = next(one for one in ask_load("", metrics=counted).tables if one.title == "Hit rates")
    assert table.rows == (("L2: all", None, 1.0),)


def test_a_row_whose_ideal_exceeds_what_it_moved_has_no_negative_excess():
    written = write_kernel(
        LOAD.format(
            access="LDG.E R2, [R4.64]", own="selected=1", waits=1, counters="global_sectors=3 global_sectors_ideal=4"
        )
    )
    transfers = read_accesses(KernelFacts(written, None, None)).global_transfers
    assert transfers is not None
    assert transfers.excess.tolist() == [0, 0]


def test_without_executions_nothing_is_said_per_access():
    answer = ask(
        """
        B-:R-:W2:-:S02  LDG.E R2, [R4.64]    # k.cu:1 | selected=10 | global_sectors=3200 global_sectors_ideal=400
        B2:R-:W-:-:S05  FADD R6, R2, R6      # k.cu:2 | long_scoreboard=100
        """
    )
    assert answer.findings[0].text.startswith(
        "Loads at line 1 of k.cu touch 8 times the sectors they need: the pattern is unknown"
    )
    assert answer.marks[0].text == "8 times the sectors they need (88 % excess)"
    table = next(one for one in answer.tables if one.title == "Global memory, by line")
    assert table.rows[0][2:6] == (None, None, None, 0.875)
    assert "how often each access is executed" in [one.what for one in answer.missing]


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
    answer = ANALYSIS.answer(KernelFacts(bare, None, None))
    assert answer.summary.startswith("The accesses move 32 sectors of global memory where 4 would suffice")
    assert [mark.value for mark in answer.marks] == [28]
