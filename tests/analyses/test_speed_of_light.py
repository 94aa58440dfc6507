"""The profiler's throughputs taken apart: members, what is recomputed, and what is said of them."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer, Weight
from gpa_lsp.diagnosis.analyses.questions.speed_of_light import ANALYSIS
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.model import Kernel
from tests.rows.written import write_kernel

SUFFIX = ".avg.pct_of_peak_sustained_elapsed"
SASS = """
B-:R-:W0:-:S02  MUFU.RCP R1, R2           # - | selected=1 | x=500000
B-:R-:W-:-:S04  DFMA R4, R6, R8, R10      # - | selected=1 | x=1000000
B-:R-:W-:-:S04  FFMA R1, R2, R3, R4       # - | selected=1 | x=2000000
B-:R-:W-:-:S04  LOP3.LUT R1, R2, R3, R4, 0xc0, !PT  # - | selected=1 | x=1000000
B-:R-:W-:-:S05  EXIT                      # - | selected=1 | x=1000000
"""
MEMBERS = {
    "sm__throughput": (
        "sm__inst_executed",
        "sm__issue_active",
        "sm__inst_executed_pipe_xu",
        "sm__pipe_fp64_cycles_active",
        "sm__pipe_fma_cycles_active",
        "sm__pipe_alu_cycles_active",
        "sm__inst_executed_pipe_lsu",
    ),
    "gpu__compute_memory_throughput": ("dram__cycles_active", "lts__t_sectors", "lts__unheard_of"),
}


def write(stored: dict[str, float], **metrics: float) -> Kernel:
    """Four SMs at 1 GHz for a millisecond: 4 million SM cycles, 16 million issue slots."""
    return write_kernel(
        SASS,
        compute_capability=(8, 0),
        metrics={
            "smsp__cycles_elapsed.avg.per_second": 1e9,
            "dram__cycles_elapsed.avg.per_second": 1e9,
            "dram__bytes.sum.peak_sustained": 64.0,
            "dram__bytes_read.sum": 30e6,
            "dram__bytes_write.sum": 2e6,
            "smsp__inst_executed.sum": 5.5e6,
            "smsp__inst_issued.sum": 6e6,
            **{
                f"breakdown:{name}{SUFFIX}": ",".join(f"{one}{SUFFIX}" for one in all_of)
                for name, all_of in MEMBERS.items()
            },
            **{f"{name}{SUFFIX}": percent for name, percent in stored.items()},
            **metrics,
        },
    )


def ask(kernel: Kernel) -> Answer:
    return ANALYSIS.ask(Subject(kernel, None, place_kernel(kernel)))


def list_recomputed(answer: Answer) -> dict[str, float]:
    return {row[3]: row[2] for table in answer.tables for row in table.rows if row[2] is not None}


def test_shares_worked_out_by_hand():
    found = list_recomputed(ask(write({})))
    assert found == pytest.approx(
        {
            # Of 16 million issue slots.
            "sm__inst_executed": 5.5 / 16,
            "sm__issue_active": 6 / 16,
            # 16 threads an SM and cycle are half a warp: two million in four million cycles.
            "sm__inst_executed_pipe_xu": 0.5 / 2,
            # 32 lanes: one warp in an SM's cycle.
            "sm__pipe_fp64_cycles_active": 1 / 4,
            # 64 lanes each: two warps in an SM's cycle.
            "sm__pipe_fma_cycles_active": 2 / 8,
            "sm__pipe_alu_cycles_active": 1 / 8,
            # 32 of 64 million bytes.
            "dram__cycles_active": 0.5,
        }
    )


def test_stored_shares_stand_beside_ours_busiest_first():
    answer = ask(write({"sm__inst_executed_pipe_lsu": 90.0, "sm__inst_executed": 34.4, "lts__unheard_of": 1.0}))
    compute, memory = answer.tables
    assert [row[3] for row in compute.rows][:3] == [
        "sm__inst_executed_pipe_lsu",
        "sm__issue_active",
        "sm__inst_executed",
    ]
    assert compute.rows[0] == ("load and store instructions", 0.9, None, "sm__inst_executed_pipe_lsu")
    assert compute.rows[2] == (
        "instructions executed",
        pytest.approx(0.344),
        pytest.approx(5.5 / 16),
        "sm__inst_executed",
    )
    assert [row[0] for row in memory.rows] == ["DRAM", "lts__unheard_of", "L2 sectors"]
    assert memory.rows[2][1:3] == (None, None)
    assert answer.bars[0].label == "load and store instructions"
    assert answer.bars[0].ratio == 0.9


@pytest.mark.parametrize(
    ("percent", "weight", "words"),
    [
        (
            85.0,
            Weight.HIGH,
            "Limited by DRAM: 85 % of peak (practical maximum 91 %).",
        ),
        (70.0, Weight.PLAIN, "Limited by DRAM: 70 % of peak (practical maximum 91 %)."),
        (
            40.0,
            Weight.HIGH,
            "Latency: no unit is more than 40 % busy (DRAM)",
        ),
    ],
)
def test_the_limiter_is_quoted_beside_the_busiest_unit(percent, weight, words):
    moved = 64e6 * percent / 100 - 2e6
    answer = ask(
        write(
            {"gpu__compute_memory_throughput": percent, "dram__cycles_active": percent, "sm__throughput": 37.5},
            **{"dram__bytes_read.sum": moved},
        )
    )
    assert answer.findings[0].weight is weight
    assert answer.findings[0].text.startswith(words)
    assert answer.findings[0].text.count(f"{percent:.3g} %") == 1
    assert answer.summary == (
        f"Compute at 38 % of its peak (instruction issue), memory at {percent:.3g} % of its peak (DRAM)."
    )
    assert len(answer.findings) == 1


def test_a_share_that_its_counts_do_not_give_is_told():
    answer = ask(write({"dram__cycles_active": 60.0}))
    assert [finding.text for finding in answer.findings][1:] == [
        "DRAM: the profiler stored 60 %, its counts give 50 %. Counters from different passes of the kernel can differ."
    ]


@pytest.mark.parametrize("value", [float("nan"), -1.0, "text"])
def test_numbers_that_are_none_are_left_out(value):
    answer = ask(
        write({"dram__cycles_active": value}, **{"dram__bytes_read.sum": value, "smsp__inst_issued.sum": value})
    )
    assert "dram__cycles_active" not in list_recomputed(answer)
    assert "sm__issue_active" not in list_recomputed(answer)


@pytest.mark.parametrize(
    ("mnemonic", "capability", "share"),
    [
        # 2,048 operations an SM and cycle; half of a million warps' 4,096 in four million cycles.
        ("HMMA.16816.F32", (8, 0), 0.5 * 4096 / (4 * 2048)),
        ("HMMA.16816.F16", (8, 6), 0.5 * 4096 / (4 * 1024)),
        ("HMMA.16816.F32", (8, 6), None),
    ],
)
def test_tensor_cores_where_the_rate_is_known(mnemonic, capability, share):
    name = "sm__pipe_tensor_cycles_active"
    kernel = write_kernel(
        f"{mnemonic} R4, R8, R10, R4  # - | selected=1 | x=500000",
        compute_capability=capability,
        metrics={
            "smsp__cycles_elapsed.avg.per_second": 1e9,
            f"breakdown:sm__throughput{SUFFIX}": f"{name}{SUFFIX}",
            f"{name}{SUFFIX}": 1.0,
        },
    )
    found = list_recomputed(ask(kernel))
    assert found == ({} if share is None else {name: pytest.approx(share)})


def test_without_throughputs_nothing_is_known():
    kernel = write_kernel(SASS, compute_capability=(8, 0))
    failed = replace(kernel, launches=(replace(kernel.launches[0], failure="the profiler failed"),))
    for one in (kernel, failed, replace(kernel, launches=())):
        answer = ask(one)
        assert not answer.is_known
        assert answer.missing[0].section == "SpeedOfLight"
