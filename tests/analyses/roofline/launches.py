"""Launches and machines to place: round numbers, and metrics given by name."""

from collections.abc import Mapping
from typing import Any

from gpa_lsp.gpu.device.model import (
    Bandwidth,
    ClockBasis,
    Clocks,
    Machine,
    MemoryLevel,
    OperationKind,
    Peak,
    RoofOrigin,
)
from gpa_lsp.profile.model import Launch, Metric
from tests.rows.builders import make_launch

GHZ = 1e9


def write_launch(metrics: Mapping[str, float | str], **overrides: Any) -> Launch:
    """A launch of a millisecond at 1 GHz with these aggregates."""
    given: dict[str, float | str] = {
        "gpu__time_duration.sum": 1e6,
        "smsp__cycles_elapsed.avg.per_second": GHZ,
        **metrics,
    }
    return make_launch(
        "kernel", metrics={name: Metric(name=name, value=value) for name, value in given.items()}, **overrides
    )


def write_table(name: str, counts: Mapping[str, int]) -> Metric:
    """A table of opcodes."""
    return Metric(
        name=name,
        value=float(sum(counts.values())),
        instance_ids=tuple(counts),
        instance_values=tuple(counts.values()),
    )


def write_machine(
    peaks: Mapping[OperationKind, float],
    bandwidths: Mapping[MemoryLevel, float],
    *,
    issue_per_cycle: float | None = 16.0,
    origin: RoofOrigin = RoofOrigin.COUNTERS,
) -> Machine:
    """A machine at 1 GHz with these operations and bytes per second."""
    return Machine(
        name="Test GPU",
        compute_capability=(8, 0),
        sm_count=4,
        clocks=Clocks(basis=ClockBasis.MEASURED, sm_hz=GHZ, l2_hz=GHZ, dram_hz=GHZ, source="the test"),
        peaks=tuple(
            Peak(kind=kind, ops_per_cycle=rate / GHZ, ops_per_s=rate, origin=origin, source="the test")
            for kind, rate in peaks.items()
        ),
        bandwidths=tuple(
            Bandwidth(
                level=level,
                bytes_per_cycle=rate / GHZ,
                clock_hz=GHZ,
                bytes_per_s=rate,
                origin=origin,
                source="the test",
            )
            for level, rate in bandwidths.items()
        ),
        issue_per_cycle=issue_per_cycle,
    )
