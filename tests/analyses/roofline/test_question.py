"""The question about the roofline: what it says of kernels at, near and far below a roof, and of kernels nothing is known of."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer, Table, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.questions.roofline import ANALYSIS
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.kernel.model import Kernel
from tests.rows.written import write_kernel

SASS = "FFMA R1, R2, R3, R4  # - | selected=1 | x=1000000 thread_executions_true=32000000\nEXIT  # - | selected=1 | x=1000000"
METRICS = {
    "smsp__cycles_elapsed.avg.per_second": 1e9,
    "dram__cycles_elapsed.avg.per_second": 1e9,
    "dram__bytes.sum.peak_sustained": 64.0,
    "dram__bytes_write.sum": 0.0,
    "smsp__inst_executed.sum": 1e6,
}


def ask(kernel: Kernel) -> Answer:
    return ANALYSIS.answer(KernelFacts(kernel, None, place_kernel(kernel)))


def write(bytes_read: float = 16e6, text: str = SASS, **metrics: float) -> Kernel:
    return write_kernel(
        text, compute_capability=(8, 0), metrics={**METRICS, "dram__bytes_read.sum": bytes_read, **metrics}
    )


def find_table(answer: Answer, title: str) -> Table:
    return next(table for table in answer.tables if table.title == title)


@pytest.mark.parametrize(
    ("bytes_read", "verdict", "place", "weight", "words"),
    [
        (
            58.24e6,
            "Limited by DRAM: 91 % of peak, by the roofline.",
            "91 % of its peak, headroom 1.00×.",
            Weight.HIGH,
            "Reuse each byte",
        ),
        (
            32e6,
            "Latency: no unit is known to be more than 50 % busy",
            "50 % of its peak, headroom 1.82×.",
            Weight.PLAIN,
            "Reuse each byte",
        ),
        (
            16e6,
            "Latency: no unit is known to be more than 25 % busy",
            "25 % of its peak, headroom 3.64×.",
            Weight.HIGH,
            "more in flight",
        ),
    ],
)
def test_near_a_roof_and_far_below_all(bytes_read, verdict, place, weight, words):
    answer = ask(write(bytes_read))
    assert answer.summary.startswith(verdict)
    assert answer.summary.endswith(f"Nearest ceiling: DRAM bandwidth, {place}")
    assert answer.findings[0].weight is weight
    assert words in answer.findings[0].remedy
    assert answer.bars[0].label == "DRAM bandwidth"
    assert answer.bars[0].ratio == pytest.approx(bytes_read / 64e6)
    assert answer.bars[0].ceiling_ratio == 0.91


@pytest.mark.parametrize(
    ("share", "verdict", "remedy"),
    [
        (
            50.0,
            "Latency: no unit is more than 50 % busy (DRAM).",
            "Until then: keep more in flight",
        ),
        (
            25.0,
            "Latency: no unit is more than 25 % busy (DRAM).",
            "Keep more in flight",
        ),
    ],
)
def test_more_in_flight_is_the_remedy_where_latency_is_the_limiter(share, verdict, remedy):
    answer = ask(
        write(
            0.64e6 * share,
            **{"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": share},
        )
    )
    assert answer.summary.startswith(f"{verdict} Nearest ceiling: DRAM bandwidth, ")
    assert remedy in answer.findings[0].remedy


def test_a_bound_by_arithmetic_and_by_issue():
    arithmetic = ask(write(text=SASS.replace("32000000", "240000000")))
    assert (
        arithmetic.summary
        == "Limited by the FMA pipe: 94 % of peak, by the roofline. Nearest ceiling: FP32 peak, 94 % of its peak, headroom 1.07×."
    )
    assert "higher peak" in arithmetic.findings[0].remedy
    issue = ask(write(**{"smsp__inst_executed.sum": 15.2e6}))
    assert (
        issue.summary
        == "Limited by instruction issue: 95 % of peak, by the roofline. Nearest ceiling: instruction issue, 95 % of its peak, headroom 1.05×."
    )
    assert "Do more with each instruction" in issue.findings[0].remedy


def test_the_side_of_the_ridge_point():
    (memory,) = [one.text for one in ask(write(32e6)).findings if "ridge" in one.text]
    assert memory == (
        "FP32 does 2 operations per byte of DRAM: left of the ridge point, the memory side, at 50 % of what is attainable there."
    )
    (arithmetic,) = [one.text for one in ask(write(4e6)).findings if "ridge" in one.text]
    assert "16 operations per byte of DRAM: right of the ridge point" in arithmetic


def test_fp64_on_a_gpu_that_has_little_of_it():
    text = "DFMA R2, R4, R6, R8  # - | selected=1 | x=100000 thread_executions_true=3200000\nEXIT  # - | selected=1 | x=100000"
    kernel = write_kernel(text, compute_capability=(8, 6), metrics={"smsp__cycles_elapsed.avg.per_second": 1e9})
    (finding,) = [one for one in ask(kernel).findings if "FP64 runs" in one.text]
    # 4 SMs of 2 lanes do 16 GFLOP/s; 6.4 are 40 %.
    assert finding.text == "FP64 runs at 1/64 of the FP32 rate on Test GPU, and the kernel uses 40 % of it."
    assert not [one for one in ask(write(text=text)).findings if "FP64 runs" in one.text]


@pytest.mark.parametrize(
    ("fused", "words"),
    [
        # 50 of 200 million instructions: 250 million operations in a millisecond, of which 400 would fit.
        (
            50e6,
            "FP32: 25 % of the additions, multiplications and multiply-adds are multiply-adds, so at most 62 % of the peak",
        ),
        (1e9, None),
    ],
)
def test_arithmetic_that_is_not_fused(fused, words):
    name = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    counted = {name.format("fadd"): 100e6, name.format("fmul"): 50e6, name.format("ffma"): fused}
    found = [one.text for one in ask(write(**counted)).findings if "multiply-adds" in one.text]
    assert [text.startswith(words) for text in found] == ([True] if words else [])


def test_tables_have_points_launches_and_roofs_with_their_sources():
    counted = {f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum": 1e6 for name in ("fadd", "fmul", "ffma")}
    kernel = write(32e6, **counted)
    first = kernel.launches[0]
    answer = ask(replace(kernel, launches=(first, replace(first, index=1))))
    points = find_table(answer, "Points: floating-point operations")
    assert [column.quantity for column in points.columns][2:5] == [
        Quantity.OPS_PER_BYTE,
        Quantity.FLOPS_PER_S,
        Quantity.FLOPS_PER_S,
    ]
    launches = find_table(answer, "Launches")
    assert [row[:3] for row in launches.rows] == [(0, 1e6, "DRAM bandwidth"), (1, 1e6, "DRAM bandwidth")]
    bandwidths = find_table(answer, "Bandwidths of Test GPU")
    assert ("DRAM", 64.0, 1e9, 64e9, "counters of the report", "dram__bytes.sum.peak_sustained") in bandwidths.rows
    assert "the clocks the longest launch ran at" in bandwidths.note
    for table in answer.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_integers_have_a_table_of_their_own():
    answer = ask(write(text=SASS.replace("FFMA", "IMAD")))
    points = find_table(answer, "Points: integer operations")
    assert points.columns[3].quantity is Quantity.INTEGER_OPS_PER_S
    assert points.rows[0][0] == "INT32"
    assert "Points: floating-point operations" not in [table.title for table in answer.tables]


def test_roofs_at_other_clocks_are_said_to_be():
    kernel = write_kernel(SASS, compute_capability=(8, 0))
    assert any("clock" in finding.text for finding in ask(kernel).findings)
    assert not any("clock" in finding.text for finding in ask(write()).findings)


def test_what_was_not_collected_is_named_with_its_metrics():
    missing = {one.what: one for one in ask(write()).missing}
    assert missing["bytes of L2"].metrics == ("lts__t_sectors_srcunit_tex.sum",)
    assert missing["bytes of shared memory"].metrics == ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",)
    assert "bytes of DRAM" not in missing


def test_a_kernel_without_numbers_is_not_known():
    kernel = write()
    failed = replace(kernel, launches=(replace(kernel.launches[0], failure="the profiler failed"),))
    unmeasured = replace(kernel, launches=())
    timeless = replace(kernel, launches=(replace(kernel.launches[0], metrics={}),))
    for one, summary in (
        (failed, "The profiler failed on every launch."),
        (unmeasured, "The kernel was not measured."),
        (timeless, "Unknown: the time of the launches."),
    ):
        answer = ask(one)
        assert (answer.is_known, answer.summary) == (False, summary)
        assert answer.missing
    assert ask(timeless).missing[0].metrics == ("gpu__time_duration.sum",)
