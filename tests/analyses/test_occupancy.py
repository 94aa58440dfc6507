"""Occupancy where something is missing, absurd or apart: clusters, code without a profile, unknown architectures, roofs."""

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer, Weight
from gpa_lsp.diagnosis.analyses.model import KernelRoofline
from gpa_lsp.diagnosis.analyses.occupancy import LaunchShape, measure_gap
from gpa_lsp.diagnosis.analyses.questions import occupancy
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.kernel.model import Kernel
from tests.analyses.checked_answers import check_answer
from tests.analyses.roofline.launches import make_roofline
from tests.analyses.written_launches import NO_SHARED, TEXT
from tests.rows.written import write_kernel

MEASURED = {"smsp__warps_active.avg.per_cycle_active": 6.0, "smsp__issue_active.avg.per_cycle_active": 0.2}


def ask(kernel: Kernel, roofline: KernelRoofline | None = None) -> Answer:
    answer = occupancy.ANALYSIS.ask(Subject(kernel, None, roofline))
    check_answer(answer)
    return answer


def write(registers: int = 64, **metrics: float | str) -> Kernel:
    given = {**NO_SHARED, **metrics}
    return write_kernel(TEXT, compute_capability=(9, 0), block=(256, 1, 1), registers=registers, metrics=given)


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


def test_the_parts_of_the_gap_add_up():
    """250 blocks of 8 warps on 100 SMs with room for 8 each: 2.5 per SM, 20 warps, of 64; 15 were there."""
    block = BlockShape(threads=256, registers_per_thread=32, shared_bytes=0)
    fitting = find_occupancy(find_architecture((8, 0)), block)
    gap = measure_gap(LaunchShape(block=block, grid_blocks=250, sm_count=100), fitting, 15.0, None)
    assert (gap.grid_warps, gap.tail_warps, gap.other_warps) == (44.0, 0.0, 5.0)
    # 1,000 blocks: one wave of 800, and 200 on all 100 SMs: 8,000 warps in two waves' time, 40 each.
    gap = measure_gap(LaunchShape(block=block, grid_blocks=1000, sm_count=100), fitting, 30.0, None)
    assert (gap.grid_warps, gap.tail_warps, gap.other_warps) == (0.0, 24.0, 10.0)
    assert measure_gap(LaunchShape(block=block, grid_blocks=0, sm_count=100), fitting, 30.0, None) is None
