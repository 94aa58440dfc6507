"""Three ways to count operations, on every launch of the corpus: the profiler's counters, its tables of opcodes, its counters per instruction."""

from collections import Counter

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.roofline.counts import THREAD_TABLES, count_launch
from gpa_lsp.diagnosis.analyses.roofline.operations import count_operations
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.profile.model import Launch
from tests.analyses.roofline.corpus import list_measured
from tests.real_reports import REPORTS, join

pytestmark = pytest.mark.corpus

AGREED = {
    OperationKind.INT32: 42,
    OperationKind.SPECIAL: 23,
    OperationKind.FP32: 14,
    OperationKind.FP64: 8,
    OperationKind.FP16: 5,
    OperationKind.TENSOR_FP16: 1,
    OperationKind.TENSOR_INT8: 5,
}
"""Launches that do some of a type."""


def strip(launch: Launch, *parts: str) -> Launch:
    """The launch without metrics that have one of these in their names."""
    names = [name for name in launch.metrics if not any(part in name for part in parts)]
    return replace(launch, metrics={name: launch.metrics[name] for name in names})


def test_counters_tables_and_instructions_agree():
    agreed: Counter[str] = Counter()
    for name in REPORTS:
        for measured in list_measured(name):
            launch, span = measured.launch, measured.basis.span
            counted = count_operations(launch, span, measured.basis.executions)
            tables = count_operations(
                strip(launch, "op_d", "op_f", "op_h", "path_tensor"), span, measured.basis.executions
            )
            # Two, so that the addresses of this launch are looked up, and not the kernel's sums taken.
            by_address = count_launch(measured.kernel, strip(launch, "per_opcode"), 2)
            assert by_address is not None
            columns = count_operations(strip(launch, "op_", "path_tensor"), span, by_address)
            for kind, table in tables.items():
                assert THREAD_TABLES[0] in table.source
                assert columns[kind].operations == table.operations, (name, launch.index, kind)
                assert counted[kind].operations == pytest.approx(table.operations, rel=1e-6), (name, launch.index, kind)
                agreed[kind] += table.operations > 0
    assert +agreed == Counter(AGREED)


def test_the_sum_over_launches_is_what_all_launches_did():
    several = 0
    for name in REPORTS:
        for kernel in join(name):
            placed = place_kernel(kernel)
            assert placed.whole is not None
            whole, launches = placed.whole, placed.launches
            several += len(launches) > 1
            assert whole.duration_s == pytest.approx(sum(one.duration_s for one in launches))
            assert {count.kind: count.operations for count in whole.operations} == pytest.approx(
                {
                    count.kind: sum(
                        own.operations for one in launches for own in one.operations if own.kind is count.kind
                    )
                    for count in whole.operations
                }
            )
            for traffic in whole.traffic:
                parts = [own.bytes for one in launches for own in one.traffic if own.level is traffic.level]
                assert traffic.bytes == pytest.approx(sum(parts))
    assert several == 7


def test_no_roof_is_exceeded():
    for name in REPORTS:
        for kernel in join(name):
            placed = place_kernel(kernel)
            for roofline in placed.launches:
                for roof in roofline.roofs:
                    assert 0 <= roof.share_ratio <= 1, (name, roofline.launch_index, roof)
                for point in roofline.points:
                    assert point.attainable_ops_per_s is not None
                    assert point.achieved_ops_per_s <= point.attainable_ops_per_s * 1.0001
