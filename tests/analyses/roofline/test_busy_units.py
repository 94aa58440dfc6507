"""The busiest unit beside the roofs: a kernel can fill one at few bytes and few operations, and is then not waiting for latencies."""

import pytest

from gpa_lsp.diagnosis.analyses.answers import Weight
from gpa_lsp.diagnosis.analyses.questions import occupancy
from gpa_lsp.diagnosis.analyses.questions.roofline import ANALYSIS
from gpa_lsp.diagnosis.analyses.questions.speed_of_light import RecomputedPipe, find_half_cycles, find_pipe_use
from gpa_lsp.diagnosis.analyses.roofline.counts import find_busiest, read_busy_units
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel, place_under
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.document.roofline_text import describe_line
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.device.find import find_machine_by_name
from gpa_lsp.gpu.device.model import MemoryLevel
from gpa_lsp.kernel.model import Kernel
from tests.analyses.roofline.launches import write_launch
from tests.rows.written import write_kernel

SASS = "FFMA R1, R2, R3, R4  # - | selected=1 | x=1000000 thread_executions_true=32000000\nEXIT  # - | selected=1 | x=1000000"
WAVEFRONTS, REQUESTS, LSU = "l1tex__data_pipe_lsu_wavefronts", "l1tex__lsuin_requests", "sm__inst_executed_pipe_lsu"
ELAPSED = ".avg.pct_of_peak_sustained_elapsed"


def write_shares(**percent: float) -> dict[str, float | str]:
    """Stored shares, listed as parts of the throughput they belong to."""
    parts = {"sm__throughput": "sm__", "gpu__compute_memory_throughput": ("l1tex__", "lts__", "dram__")}
    lists = {
        f"breakdown:{throughput}{ELAPSED}": ", ".join(f"{name}{ELAPSED}" for name in percent if name.startswith(prefix))
        for throughput, prefix in parts.items()
    }
    return {**lists, **{f"{name}{ELAPSED}": value for name, value in percent.items()}}


def write(bytes_read: float = 6.4e6, **percent: float) -> Kernel:
    """A kernel that uses a tenth of its DRAM bandwidth and an eighth of its FP32 peak."""
    return write_kernel(
        SASS,
        compute_capability=(8, 0),
        metrics={
            "smsp__cycles_elapsed.avg.per_second": 1e9,
            "dram__cycles_elapsed.avg.per_second": 1e9,
            "dram__bytes.sum.peak_sustained": 64.0,
            "dram__bytes_write.sum": 0.0,
            "smsp__inst_executed.sum": 1e6,
            "dram__bytes_read.sum": bytes_read,
            "smsp__warps_active.avg.per_cycle_active": 6.0,
            "smsp__issue_active.avg.per_cycle_active": 0.2,
            **write_shares(**percent),
        },
    )


def test_the_unit_nearest_to_what_it_sustains_is_the_busiest_and_the_memory_s_of_two_equal_ones():
    shares = {LSU: 0.5, REQUESTS: 0.5, "lts__t_sectors": 0.5, "dram__cycles_active": 0.48}
    found = find_busiest({name: share * 2 for name, share in shares.items()}, 2.0, 0.91)
    assert (found.name, found.is_memory, found.share_ratio, found.ceiling_ratio) == ("L2 sectors", True, 0.5, 0.94)
    assert found.headroom == pytest.approx(0.94 / 0.5)
    assert find_busiest({LSU: 0.5, REQUESTS: 0.485}, 1.0, 0.85).is_memory  # type: ignore[union-attr]  # 0.485 / 0.97 is 0.5 too
    assert find_busiest({}, 1.0, 0.85) is None


def test_only_listed_and_sensible_shares_are_read():
    assert read_busy_units(write_launch(write_shares(**{LSU: 30.0, WAVEFRONTS: 85.0}))) == {LSU: 0.3, WAVEFRONTS: 0.85}
    assert read_busy_units(write_launch({f"{LSU}{ELAPSED}": 30.0})) == {}
    assert read_busy_units(write_launch(write_shares(**{LSU: 3e9}))) == {}


def test_a_full_unit_is_told_where_all_roofs_are_far():
    kernel = write(**{WAVEFRONTS: 87.3, LSU: 20.0})
    placed = place_kernel(kernel)
    assert placed is not None and placed.whole is not None
    assert placed.whole.roofs[0].share_ratio < 0.15
    assert placed.whole.headroom == pytest.approx(0.97 / 0.873)
    answer = ANALYSIS.ask(Subject(kernel, None, placed))
    assert answer.summary == (
        "Limited by L1 load/store: 87 % of peak (practical maximum 97 %). Busiest unit: L1 load/store wavefronts, 87 % of its peak, "
        "headroom 1.11×."
    )
    first = answer.findings[0]
    assert first.weight is Weight.HIGH
    assert first.text == (
        "L1 load/store wavefronts: 87 % of the peak is used (practical maximum 97 %); the same work can run at most 1.11× as fast. The "
        "nearest ceiling, FP32 peak, is only 12 % used."
    )
    assert "atency" not in first.text + first.remedy
    assert describe_line(placed.whole, placed.machine)[0].startswith(
        "L1 load/store wavefronts at 87 % (practical maximum 97 %); FP32 peak 12 %"
    )


def test_more_warps_only_queue_for_a_full_unit():
    kernel = write(**{WAVEFRONTS: 87.3})
    findings = occupancy.ANALYSIS.ask(Subject(kernel, None, place_kernel(kernel))).findings
    assert findings[0].text == (
        "More warps would gain at most 1.15×: Limited by L1 load/store: 87 % of peak (practical maximum 97 %)."
    )


def test_the_roof_is_named_where_the_unit_behind_it_is_hardly_nearer():
    """58 of 64 bytes a cycle are 0.91 of the peak; the profiler's own counter has 0.92."""
    placed = place_kernel(write(bytes_read=58e6, **{"dram__cycles_active": 92.0}))
    assert placed is not None and placed.whole is not None
    assert placed.whole.tighter_unit is None
    assert placed.whole.binding is not None and placed.whole.binding.level is MemoryLevel.DRAM


def test_a_unit_far_from_full_only_bounds_what_there_is_to_gain():
    kernel = write(**{LSU: 40.0})
    placed = place_kernel(kernel)
    assert placed is not None and placed.whole is not None
    assert placed.whole.headroom == pytest.approx(2.5)
    answer = ANALYSIS.ask(Subject(kernel, None, placed))
    assert answer.summary == (
        "Latency: no unit is more than 40 % busy (L1 load/store). Busiest unit: load and store instructions, 40 % of its peak, headroom 2.50×."
    )
    assert answer.findings[0].text == (
        "No ceiling is near: the kernel reaches 12 % of what the nearest, FP32 peak, sustains (the busiest unit, load and store instructions, is at "
        "40 % of its peak)."
    )
    assert answer.findings[0].remedy.startswith("Keep more in flight")


def test_units_of_another_gpu_say_nothing():
    placed = place_kernel(write(**{WAVEFRONTS: 87.3}))
    assert placed is not None
    machine = find_machine_by_name("A100 PCIe 40GB")
    assert place_under(placed, lambda _: machine).whole.busiest is None  # type: ignore[union-attr]
    same = place_under(placed, lambda own: own).whole
    assert same is not None and same.busiest == placed.whole.busiest  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "ceiling"), [("RTX 5090", 0.95), ("T4", 0.95), ("H200", 0.91), ("V100 SXM2", 0.91)])
def test_another_gpu_sustains_what_its_own_kind_of_memory_does(name, ceiling):
    """The kernel is one of an A100, whose stacked memory sustains 0.91; graphics memory does 0.95."""
    placed = place_kernel(write())
    assert placed is not None
    line = place_under(placed, lambda _: find_machine_by_name(name)).whole
    assert [roof.ceiling_ratio for roof in line.roofs if roof.level is MemoryLevel.DRAM] == [ceiling]


CYCLES = 1000.0


def find(capability: tuple[int, int]) -> Architecture:
    architecture = find_architecture(capability)
    assert architecture is not None
    return architecture


def use(pipe: RecomputedPipe, capability: tuple[int, int], **warps: float) -> float | None:
    named = {name.replace("_", "."): count for name, count in warps.items()}
    return find_pipe_use(pipe, named, find(capability), CYCLES)


@pytest.mark.parametrize(
    ("pipe", "capability", "warps", "share"),
    [
        # 64 lanes: two warps in a cycle of the SM.
        (RecomputedPipe.FMA, (8, 0), {"FFMA": 1000.0}, 0.5),
        (RecomputedPipe.FMA, (8, 0), {"IMAD_WIDE_U32": 1000.0}, 0.5),
        # 128 lanes, and a wide product takes both halves.
        (RecomputedPipe.FMA, (8, 6), {"FFMA": 1000.0}, 0.25),
        (RecomputedPipe.FMA, (8, 6), {"IMAD_WIDE_U32": 1000.0}, 0.5),
        (RecomputedPipe.FMA, (8, 6), {"HFMA2": 1000.0}, 0.5),
        (RecomputedPipe.FMA, (9, 0), {"HFMA2_MMA": 1000.0}, 0.0),
        (RecomputedPipe.FMA, (9, 0), {"VIADD": 1000.0}, 0.25),
        (RecomputedPipe.ALU, (9, 0), {"VIADD": 1000.0, "LOP3_LUT": 1000.0}, 0.5),
        (RecomputedPipe.ALU, (8, 0), {"CS2R": 1000.0, "R2UR": 10.0, "ISETP_GE_AND": 1000.0}, 0.5),
        (RecomputedPipe.XU, (8, 0), {"MUFU_RCP": 250.0, "I2F_F64": 250.0, "F2I": 500.0}, 2.0),
        # Without fast FP64, conversions from and to it are done by its own unit.
        (RecomputedPipe.XU, (8, 6), {"MUFU_RCP": 250.0, "I2F_F64": 250.0}, 0.5),
        # One warp in 64 cycles of a sub-partition, one in 16 of the SM.
        (RecomputedPipe.FP64, (8, 6), {"DFMA": 25.0, "I2F_F64": 25.0}, 0.8),
        (RecomputedPipe.FP64, (8, 0), {"DFMA": 500.0, "DSETP_GT_AND": 500.0}, 1.0),
    ],
)
def test_shares_of_pipes(pipe, capability, warps, share):
    assert use(pipe, capability, **warps) == pytest.approx(share)


@pytest.mark.parametrize("pipe", [RecomputedPipe.ALU, RecomputedPipe.FMA])
def test_pipes_nobody_knows_are_not_recomputed(pipe):
    assert use(pipe, (12, 0), FFMA=1000.0) is None


def test_half_precision_on_the_tensor_cores():
    assert find_half_cycles({"HFMA2.MMA": 8.0, "HFMA2": 8.0}, find((8, 0))) == 2
    assert find_half_cycles({"HFMA2.MMA": 8.0}, find((9, 0))) == 4
    assert find_half_cycles({"HFMA2.MMA": 8.0}, find((8, 6))) == 0
