"""Starlight's answer of whole kernels: every sample counted once, and what is missing said; numbers by hand are in tests/cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.answers import Answer, Weight
from gpa_lsp.diagnosis.analyses.model import KernelRoofline
from gpa_lsp.diagnosis.analyses.questions.starlight import CHECKS, LABEL, answer_starlight, decide
from gpa_lsp.diagnosis.analyses.starlight import LineSamples, count_lines
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.analyses.roofline.launches import make_roofline
from tests.rows.written import write_kernel

T = 1e12

KERNEL = """
    B-:R-:W0:-:S02  LDG.E R2, [R4.64]        # k.cu:3 | selected=20 lg_throttle=80
    B0:R-:W-:-:S04  FFMA R2, R2, R3, R6      # k.cu:4 | long_scoreboard=500/400 selected=20
    B-:R-:W-:-:S04  FADD R2, R2, R7          # k.cu:4 | wait=100 selected=20
    B-:R-:W-:-:S06  BAR.SYNC 0x0             # k.cu:6 | barrier=120 not_selected=40
    B-:R-:W1:-:S02  MUFU.RCP R8, R2          # k.cu:7 | mio_throttle=60
    B-:R-:W1:-:S02  LDS R8, [R2]             # k.cu:8 | mio_throttle=20
    B-:R-:W-:-:S05  EXIT                     # k.cu:9 | selected=20
"""
MEMORY_BOUND = make_roofline(
    ops_per_s=1.2 * T,
    peaks={OperationKind.FP32: 10 * T, OperationKind.FP16: 20 * T},
    traffic={MemoryLevel.DRAM: (1.2 / 0.9 * T, 2 * T)},
)
COMPUTE_BOUND = make_roofline(
    ops_per_s=2 * T, peaks={OperationKind.FP32: 10 * T}, traffic={MemoryLevel.DRAM: (0.1 * T, 2 * T)}
)


def gather(kernel: Kernel, roofline: KernelRoofline | None = None) -> Subject:
    return Subject(kernel, None, roofline)


def list_lines(facts: Subject) -> list[LineSamples]:
    lines = count_lines(facts)
    return [lines.describe(number) for number in range(len(lines))]


def ask(kernel: Kernel, roofline: KernelRoofline | None = None) -> Answer:
    return answer_starlight(gather(kernel, roofline))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["LDG.E R2, [R4.64]", "FADD R2, R2, R7", "MUFU.RCP R8, R2", "STS [R2], R3"]),
            st.sampled_from(["k.cu:3", "k.cu:4", "-"]),
            st.sampled_from([*STALL_REASONS, "flux_capacitor"]),
            st.integers(0, 50),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_counting_conserves_samples(rows: list[tuple[str, str, str, int]]):
    text = "\n".join(f"{code} # {place} | {reason}={count}" for code, place, reason, count in rows)
    kernel = write_kernel(text)
    lines = list_lines(gather(kernel))
    assert sum(line.samples for line in lines) == kernel.total_samples
    named = [line for line in lines if line.line is not None]
    assert len({line.line for line in named}) == len(named)
    answer = ask(kernel, MEMORY_BOUND)
    assert answer.is_known


def test_memory_bound_means_smaller_values_first():
    answer = ask(write_kernel(KERNEL), MEMORY_BOUND)
    assert "the kernel is on the memory side" in answer.summary
    assert answer.summary.endswith(f"{LABEL}.")
    high = [finding for finding in answer.findings if finding.weight is Weight.HIGH]
    assert [finding.text.partition(":")[0] for finding in high] == ["Compute with lower precision", "Compress the data"]
    assert "the ceiling is 3.60 TFLOP/s instead of 1.80 TFLOP/s" in high[1].text
    assert {arrow.label for arrow in answer.movements} >= {"poor memory usage, line 4 of k.cu", "compress the data"}


def test_far_below_its_roof_a_kernel_needs_no_higher_one():
    """0.2 of the 1.8 TFLOP/s attainable: half the bytes lift what is attainable, and not what is reached."""
    far = make_roofline(
        ops_per_s=0.2 * T, peaks={OperationKind.FP32: 10 * T}, traffic={MemoryLevel.DRAM: (0.2 / 0.9 * T, 2 * T)}
    )
    answer = ask(write_kernel(KERNEL), far)
    (said,) = [finding for finding in answer.findings if finding.text.startswith("Compress the data: ")]
    assert said.weight is Weight.PLAIN
    assert "the ceiling is 3.60 TFLOP/s instead of 1.80 TFLOP/s" in said.text


LOW = {
    "sm__warps_active.avg.pct_of_peak_sustained_active": 20.0,
    "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed": 95.0,
    "smsp__sass_average_branch_targets_threads_uniform.pct": 70.0,
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 16.0,
}


def test_compute_bound_and_far_from_the_peak_means_warps_and_then_branches():
    facts = gather(write_kernel(KERNEL, metrics=LOW), COMPUTE_BOUND)
    decision = decide(facts)
    assert (decision.is_memory_bound, decision.is_far) == (False, True)
    assert [ratio for _, ratio in decision.results] == [0.2, 0.95, 0.7, 0.5]
    assert [check.title for check in decision.poor] == [CHECKS[0].title, CHECKS[2].title, CHECKS[3].title]
    answer = answer_starlight(facts)
    low_intensity = [row for row in answer.tables[0].rows if row[0] == "Low operational intensity"]
    assert {row[6] for row in low_intensity} == {"not suggested: on the compute side"}


def test_a_memory_bound_kernel_does_not_act_on_occupancy():
    decision = decide(gather(write_kernel(KERNEL, metrics=LOW), MEMORY_BOUND))
    assert decision.poor == ()
    assert [check.is_poor(ratio) for check, ratio in decision.results] == [True, False, True, True]


def test_sm_efficiency_from_cycles_where_its_own_metric_is_missing():
    metrics = {"sm__cycles_active.avg": 300.0, "gpc__cycles_elapsed.max": 1200.0}
    decision = decide(gather(write_kernel(KERNEL, metrics=metrics)))
    assert decision.results[1][1] == pytest.approx(0.25)
    assert [missing.metrics for missing in decision.missing[1:]] == [(CHECKS[at].metric,) for at in (0, 2, 3)]


def test_an_integer_kernel_counts_integer_operations():
    roofline = make_roofline(
        ops_per_s=0.5 * T,
        peaks={OperationKind.INT32: 5 * T},
        traffic={MemoryLevel.DRAM: (1 * T, 2 * T)},
        kind=OperationKind.INT32,
    )
    answer = ask(write_kernel(KERNEL), roofline)
    assert {column.quantity.value for column in answer.tables[0].columns if column.name == "new rate"} == {"IOP/s"}
    assert any("no narrower type than INT32" in str(row[6]) for row in answer.tables[0].rows)


def test_without_operations_the_nearest_roof_says_what_binds():
    roofline = make_roofline(ops_per_s=None, peaks={}, traffic={MemoryLevel.DRAM: (1.9 * T, 2 * T)})
    answer = ask(write_kernel(KERNEL), roofline)
    assert "By Starlight's rule: on the memory side by the nearest ceiling; no operation was counted." in [
        one.text for one in answer.findings
    ]
    assert answer.movements == ()
    assert answer.tables[1].rows[0][4] == pytest.approx(2.0)  # Equation 3 needs no roof


def test_without_samples_the_tree_still_speaks():
    answer = ask(write_kernel("NOP\nEXIT"), MEMORY_BOUND)
    assert answer.is_known
    assert "no samples to find lines by" in answer.summary
    assert answer.missing[0].what == "stalls by line"


def test_with_nothing_nothing_is_known():
    answer = ask(write_kernel("NOP\nEXIT"))
    assert not answer.is_known
    assert answer.tables == ()
    assert [missing.what for missing in answer.missing][:2] == ["stalls by line", "the kernel's place on the roofline"]


def test_without_lines_the_instruction_is_the_place():
    answer = ask(write_kernel("FADD R2, R2, R7 # - | wait=60 selected=20\nEXIT # - | selected=20"))
    lines = next(table for table in answer.tables if table.title == "Starlight's hot lines")
    assert lines.rows[0][0] == "instruction 0x0"


def test_stalls_that_are_all_samples_have_no_speedup():
    answer = ask(write_kernel("FADD R2, R2, R7 # k.cu:1 | wait=60\nEXIT"))
    assert all(table.title != "Starlight's hot lines" for table in answer.tables)
    assert "no stall of a line is worth a change" in answer.summary
