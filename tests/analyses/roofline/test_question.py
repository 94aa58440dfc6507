"""The question about the roofline: what it says of kernels at, near and far below a roof, and of kernels nothing is known of."""

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer, Table
from gpa_lsp.diagnosis.analyses.questions.roofline import ANALYSIS
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
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
    return ANALYSIS.ask(Subject(kernel, None, place_kernel(kernel)))


def write(bytes_read: float = 16e6, text: str = SASS, **metrics: float) -> Kernel:
    return write_kernel(
        text, compute_capability=(8, 0), metrics={**METRICS, "dram__bytes_read.sum": bytes_read, **metrics}
    )


def find_table(answer: Answer, title: str) -> Table:
    return next(table for table in answer.tables if table.title == title)


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
