"""The three questions that are asked line by line, about kernels that have any part of what a profiler counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.questions import divergence, instruction_mix, memory_access
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.kernel.place import COUNTERS
from tests.conftest import examples
from tests.rows.written import write_kernel

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
    answer = question.ask(KernelFacts(kernel, blame_kernel(kernel) if with_blame else None, None))
    assert answer.analysis == question.name
    assert answer.summary.endswith(".")
    assert len(answer.marks) <= MOST_MARKS
    assert all(mark.value > 0 and 0 < mark.share_ratio <= 1 + 1e-9 and mark.text for mark in answer.marks)
    assert all(
        finding.text and (finding.share_ratio is None or 0 <= finding.share_ratio <= 1 + 1e-9)
        for finding in answer.findings
    )
    assert all(0 <= bar.ratio <= 1 for bar in answer.bars)
    assert all(len(row) == len(table.columns) for table in answer.tables for row in table.rows)
    assert answer.is_known or answer.missing
    assert "nan" not in answer.summary + "".join(finding.text for finding in answer.findings)
