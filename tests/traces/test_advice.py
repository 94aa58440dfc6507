"""Advice of the questions about traces, and where they are silent."""

import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.ask import list_questions
from gpa_lsp.execution.traces.cache_hits import BypassingAdvice
from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.questions.caches import summarise_bypassing
from gpa_lsp.execution.traces.words import ONE_WAY_REMEDY, UNIFORM_REMEDY
from tests.traces.analysing import analyse_trace
from tests.traces.written_traces import BASE, TraceWriter, lanes_by, make_buffer, make_instruction

LOAD, POLL, ATOMIC, STORE, BRANCH = range(5)
INSTRUCTIONS = (
    make_instruction(LOAD, text="ld.global.u32 %r1, [%rd1]"),
    make_instruction(POLL, text="ld.volatile.global.u32 %r1, [%rd1]"),
    make_instruction(ATOMIC, AccessKind.ATOMIC, text="atom.global.add.u32 %r1, [%rd1], 1"),
    make_instruction(STORE, AccessKind.STORE, text="st.global.u32 [%rd1], %r1"),
    make_instruction(BRANCH, None, text="bra $L__BB0_2"),
)
CONTEXT = TraceContext(sm_count=1, blocks_per_sm=1, l1_bytes=512)
ARRAY = make_buffer("a", 1 << 16)
ALL = 0xFFFFFFFF


def write_sweeps(instruction: int, lines: int = 2, sweeps: int = 3, warps: int = 1) -> Trace:
    """Each warp goes over the same lines a few times."""
    writer = TraceWriter(INSTRUCTIONS, (ARRAY,), block_threads=(32 * warps, 1, 1))
    for _ in range(sweeps):
        for line in range(lines):
            for warp in range(warps):
                writer.access(instruction, lanes_by(4, base=BASE + 128 * line), warp=warp)
    return writer.finish()


def ask(question: str, trace: Trace) -> Answer:
    return list_questions()[question].answer(analyse_trace(trace, context=CONTEXT))


@pytest.mark.parametrize("instruction", [POLL, ATOMIC, STORE])
def test_nothing_is_said_of_bypassing_where_l1_keeps_nothing(instruction):
    answer = ask("traced_bypassing", write_sweeps(instruction))
    assert not answer.is_known
    assert answer.findings == ()


def test_only_loads_that_l1_keeps_enter_the_equation():
    writer = TraceWriter(INSTRUCTIONS, (ARRAY,))
    for _ in range(3):
        for line, instruction in enumerate((LOAD, STORE, ATOMIC, POLL)):
            writer.access(instruction, lanes_by(4, base=BASE + 128 * line))
    found = analyse_trace(writer.finish(), context=CONTEXT).bypassing
    assert found is not None
    assert (found.mean_distance, found.equation_warps) == (1.0, 4)


def test_what_fits_is_a_sentence_and_no_finding():
    answer = ask("traced_bypassing", write_sweeps(LOAD))
    assert answer.summary == "The only warp of a block can use L1."
    assert answer.findings == ()


def test_what_does_not_fit_is_said_once():
    answer = ask("traced_bypassing", write_sweeps(LOAD, lines=4, warps=2))
    assert answer.summary == "L1 can hold the lines that 1 of the 2 warps of a block reuses."
    (finding,) = answer.findings
    assert finding.text == "To reuse a line, a warp needs 4 lines kept in L1, and an SM holds 1 block."
    assert finding.remedy.startswith("Try bypassing L1 in the loads of the other warps (`__ldcg`")


@pytest.mark.parametrize(
    ("warps", "of_all", "summary"),
    [
        (0, 1, "L1 cannot hold the lines that the only warp of a block reuses."),
        (0, 8, "L1 cannot hold the lines that even one of the 8 warps of a block reuses."),
        (3, 8, "L1 can hold the lines that 3 of the 8 warps of a block reuse."),
        (8, 8, "All 8 warps of a block can use L1."),
    ],
)
def test_numbers_of_warps_in_words(warps, of_all, summary):
    advice = BypassingAdvice(
        mean_distance=1.0,
        warps=warps,
        equation_warps=warps,
        warps_per_block=of_all,
    )
    assert summarise_bypassing(advice) == summary


def test_a_poll_of_one_address_is_not_to_be_loaded_before_the_loop():
    def find_uniform(instruction: int) -> list[str]:
        writer = TraceWriter(INSTRUCTIONS, (ARRAY,))
        for _ in range(4):
            writer.access(instruction, lanes_by(0))
        return [one.text for one in ask("traced_values", writer.finish()).findings if one.remedy == UNIFORM_REMEDY]

    assert len(find_uniform(LOAD)) == 1
    assert find_uniform(POLL) == []
    assert ask("traced_values", write_sweeps(POLL)).findings == ()


def test_a_guard_of_bounds_is_to_be_kept():
    trace = TraceWriter(INSTRUCTIONS, (ARRAY,)).access(LOAD, lanes_by(4)).branch(BRANCH, ALL, 0).finish()
    (finding,) = ask("traced_values", trace).findings
    assert finding.text == "The branch at line 5 of kernel.cu is never taken (1 execution)."
    assert finding.remedy == ONE_WAY_REMEDY
    assert "Keep it if it guards an access against the bounds" in finding.remedy


def test_nothing_is_said_of_branches_where_rows_are_missing():
    trace = TraceWriter(INSTRUCTIONS, (ARRAY,)).access(LOAD, lanes_by(4)).branch(BRANCH, ALL, 0).finish()
    assert ask("traced_values", replace(trace, is_complete=False)).findings == ()
