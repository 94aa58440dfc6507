"""Occupancy where something is missing, absurd or apart: clusters, code without a profile, unknown architectures, roofs."""

from hypothesis import given
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.occupancy.launch import LaunchShape
from gpa_lsp.diagnosis.analyses.occupancy.worth import measure_gap
from gpa_lsp.diagnosis.analyses.questions import occupancy
from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.kernel.model import Kernel
from tests.analyses.checked_answers import check_answer
from tests.analyses.starlight.rooflines import make_roofline
from tests.analyses.written_launches import NO_SHARED, TEXT, launches
from tests.rows.written import write_kernel

MEASURED = {"smsp__warps_active.avg.per_cycle_active": 6.0, "smsp__issue_active.avg.per_cycle_active": 0.2}


def ask(kernel: Kernel, roofline: KernelRoofline | None = None) -> Answer:
    answer = occupancy.ANALYSIS.answer(KernelFacts(kernel, None, roofline))
    check_answer(answer)
    return answer


def write(registers: int = 64, **metrics: float | str) -> Kernel:
    given = {**NO_SHARED, **metrics}
    return write_kernel(TEXT, compute_capability=(9, 0), block=(256, 1, 1), registers=registers, metrics=given)


def test_where_a_unit_surely_limits_the_kernel_more_warps_gain_at_most_what_it_is_not_busy():
    busy = {**MEASURED, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 80.0}
    findings = ask(write(**busy)).findings
    assert (
        findings[0].text
        == "More warps would gain at most 1.25×: Limited by DRAM: 80 % of peak (practical maximum 91 %)."
    )
    assert not [finding for finding in findings if finding.weight is Weight.HIGH]
    full = {**MEASURED, "lts__throughput.avg.pct_of_peak_sustained_elapsed": 99.8}
    assert ask(write(**full)).findings[0].text == "More warps cannot help: Limited by L2: 99.8 % of peak."


def test_a_ceiling_alone_says_how_many_warps_it_takes_and_no_more():
    roofline = make_roofline(ops_per_s=9.2, peaks={OperationKind.FP32: 10.0}, traffic={MemoryLevel.DRAM: (1.0, 10.0)})
    first = ask(write(**MEASURED), roofline).findings[0]
    assert first.weight is Weight.PLAIN
    assert first.text == (
        "At the current latencies a scheduler needs about 6.52 warps to saturate the FP32 peak (Little's law) and has 6."
    )


def test_the_longest_launch_is_placed_and_not_all_together():
    """Together the launches use half of the DRAM bandwidth, the longest one 90 %."""
    whole = make_roofline(ops_per_s=None, peaks={}, traffic={MemoryLevel.DRAM: (5.0, 10.0)})
    own = make_roofline(ops_per_s=None, peaks={}, traffic={MemoryLevel.DRAM: (9.0, 10.0)})
    assert own.whole is not None
    both = replace(whole, launches=(replace(own.whole, launch_index=0),))
    assert "about 6.67 warps to saturate the DRAM bandwidth" in ask(write(**MEASURED), both).findings[0].text
    others = replace(whole, launches=(replace(own.whole, launch_index=1),))
    assert "about 12 warps to saturate the DRAM bandwidth" in ask(write(**MEASURED), others).findings[0].text


def test_warps_that_would_use_up_a_bandwidth_are_enough():
    """6 warps per scheduler move 4 of the 8 bytes per second that DRAM sustains: 12 would move them all; to issue in every cycle took 6 / 0.2."""
    roofline = make_roofline(
        ops_per_s=None, peaks={}, traffic={MemoryLevel.DRAM: (4.0, 10.0)}, ceilings={MemoryLevel.DRAM: 0.8}
    )
    (first, *_) = ask(write(**MEASURED), roofline).findings
    assert "about 12.0 warps to saturate the DRAM bandwidth" in first.text
    (first, *_) = ask(write(**MEASURED)).findings
    assert "about 30 warps to issue in every cycle" in first.text


def test_busy_schedulers_need_no_more_warps():
    busy = {**MEASURED, "smsp__issue_active.avg.per_cycle_active": 0.85}
    busy["sm__inst_issued.avg.pct_of_peak_sustained_elapsed"] = 85.0
    busy["breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"] = (
        "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"
    )
    assert ask(write(**busy)).findings[0].text == (
        "More warps would gain at most 1.18×: Limited by instruction issue: 85 % of peak."
    )


def test_ready_warps_that_were_not_selected_are_told():
    ready = write_kernel(
        TEXT.replace("selected=1", "selected=1 not_selected=9"),
        compute_capability=(9, 0),
        metrics={**NO_SHARED, **MEASURED},
    )
    first = ask(ready).findings[0]
    assert "of the samples the warp was ready and not selected" in first.text
    assert "More warps" not in first.text


def test_steps_up_weigh_where_what_fits_is_resident_and_would_help():
    full = {**MEASURED, "sm__warps_active.avg.pct_of_peak_sustained_active": 49.0}
    steps = [finding for finding in ask(write(**full)).findings if "registers per thread instead of" in finding.text]
    assert [step.weight for step in steps] == [Weight.HIGH]
    half_empty = {**MEASURED, "sm__warps_active.avg.pct_of_peak_sustained_active": 20.0}
    steps = [
        finding for finding in ask(write(**half_empty)).findings if "registers per thread instead of" in finding.text
    ]
    assert [step.weight for step in steps] == [Weight.PLAIN]


def test_clusters_that_leave_room_are_named():
    """4 blocks per SM by registers on 4 SMs are 16; of clusters of 4 only 3 fit, 12 blocks."""
    clusters = {"launch__cluster_size": 4.0, "launch__cluster_max_active": 3.0}
    (said,) = (finding for finding in ask(write(**clusters)).findings if "clusters" in finding.text)
    assert said.text == "Blocks come in clusters of 4, of which 3 fit: 12 blocks instead of 16 without clusters."
    assert said.weight is Weight.HIGH
    (said,) = (
        finding
        for finding in ask(write(**{**clusters, "launch__cluster_max_active": 4.0})).findings
        if "clusters" in finding.text
    )
    assert "limits nothing" in said.text
    (said,) = (finding for finding in ask(write(launch__cluster_size=4.0)).findings if "clusters" in finding.text)
    assert "not collected" in said.text


def test_a_launch_without_shared_memory_metrics_is_taken_as_without_any():
    answer = ask(write_kernel(TEXT, compute_capability=(8, 0), block=(256, 1, 1), registers=32))
    assert "64 of 64 warps" in answer.summary
    assert any("launch__shared_mem_per_block_dynamic" in missing.metrics for missing in answer.missing)


def test_code_without_a_launch_has_a_table_over_block_sizes():
    """33 registers, given out as 40, let 48 warps into an SM; only blocks of 3 · 2^n warps or the like divide them."""
    kernel = replace(write_kernel(TEXT, compute_capability=(8, 0), registers=33), launches=())
    answer = ask(kernel)
    assert answer.is_known
    assert answer.summary.startswith(
        "With 33 registers per thread and 0 B of static shared memory at most 48 of 64 warps"
    )
    (sizes,) = answer.tables
    assert {row[0]: row[2] for row in sizes.rows}[1024] == 32
    assert sizes.current_row is None
    assert [missing.why for missing in answer.missing] == ["nothing was launched"]


def test_without_the_rules_of_the_architecture_the_counters_speak():
    known = write(
        sm__maximum_warps_per_active_cycle_pct=50.0, **{"sm__warps_active.avg.pct_of_peak_sustained_active": 40.0}
    )
    answer = ask(replace(known, architecture=None))
    assert answer.summary == "50 % of an SM's warps fit, and 40 % were resident on average, by the profiler's counters."
    assert [(bar.label, bar.ratio) for bar in answer.bars] == [("theoretical", 0.5), ("achieved", 0.4)]
    assert not ask(replace(write(), architecture=None)).is_known
    assert not ask(replace(write(), architecture=None, launches=())).is_known


def test_a_block_that_fits_nowhere_is_said_so():
    answer = ask(write_kernel(TEXT, compute_capability=(8, 0), block=(1024, 1, 1), registers=80, metrics=NO_SHARED))
    assert answer.summary == "Not even one block fits on an SM: registers."
    assert answer.bars[0].ratio == 0


def test_launches_that_ask_for_different_things_are_listed():
    kernel = write()
    other = replace(kernel.launches[0], index=1, block=(512, 1, 1))
    answer = ask(replace(kernel, launches=(kernel.launches[0], other, replace(other, index=2))))
    (differing,) = (table for table in answer.tables if table.title == "Launches that differ")
    assert [(row[0], row[3], row[4]) for row in differing.rows] == [(256, 1, 0.5), (512, 2, 0.5)]


def test_the_parts_of_the_gap_add_up():
    """250 blocks of 8 warps on 100 SMs with room for 8 each: 2.5 per SM, 20 warps, of 64; 15 were there."""
    block = BlockShape(threads=256, registers_per_thread=32, shared_bytes=0)
    fitting = find_occupancy(find_architecture((8, 0)), block)
    gap = measure_gap(LaunchShape(block=block, grid_blocks=250, sm_count=100), fitting, 15.0, None)
    assert gap is not None
    assert (gap.grid_warps, gap.tail_warps, gap.other_warps) == (44.0, 0.0, 5.0)
    # 1,000 blocks: one wave of 800, and 200 on all 100 SMs: 8,000 warps in two waves' time, 40 each.
    gap = measure_gap(LaunchShape(block=block, grid_blocks=1000, sm_count=100), fitting, 30.0, None)
    assert gap is not None
    assert (gap.grid_warps, gap.tail_warps, gap.other_warps) == (0.0, 24.0, 10.0)
    assert measure_gap(LaunchShape(block=block, grid_blocks=0, sm_count=100), fitting, 30.0, None) is None


@given(launches)
def test_absurd_launches_get_an_answer(kernel: Kernel):
    ask(kernel)
    ask(replace(kernel, architecture=None))
