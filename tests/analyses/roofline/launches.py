"""Launches, machines, work and rooflines: round numbers, and metrics given by name."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.model import KernelRoofline, OperationCount, Traffic
from gpa_lsp.diagnosis.analyses.roofline.place import build_roofline
from gpa_lsp.diagnosis.analyses.roofline.work import Work
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


def write_work(
    operations: Mapping[OperationKind, float],
    moved: Mapping[MemoryLevel, float],
    duration_s: float = 1e-3,
    warp_instructions: float | None = None,
) -> Work:
    """Work of some operations and bytes."""
    counts = (OperationCount(kind=kind, operations=number, source="the test") for kind, number in operations.items())
    traffic = (
        Traffic(level=level, bytes=number, source="the test", transactions=number / 32)
        for level, number in moved.items()
    )
    return Work(
        duration_s=duration_s,
        operations={one.kind: one for one in counts},
        traffic={one.level: one for one in traffic},
        warp_instructions=warp_instructions,
    )


def make_roofline(
    *,
    ops_per_s: float | None,
    peaks: Mapping[OperationKind, float],
    traffic: Mapping[MemoryLevel, tuple[float, float]],
    kind: OperationKind = OperationKind.FP32,
    ceilings: Mapping[MemoryLevel, float] | None = None,
) -> KernelRoofline:
    """A kernel of one launch of one second, under measured roofs.

    Args:
        ops_per_s: operations of ``kind``; None for a kernel without any.
        peaks: per second, by type.
        traffic: level → (bytes per second moved, bytes per second at most).
        kind: of its operations.
        ceilings: level → sustainable share, where it is not 1.
    """
    machine = write_machine(peaks, {level: most for level, (_, most) in traffic.items()}, origin=RoofOrigin.EMPIRICAL)
    operations = {} if ops_per_s is None else {kind: ops_per_s}
    work = write_work(operations, {level: moved for level, (moved, _) in traffic.items()}, duration_s=1.0)
    whole = build_roofline(None, work, machine, 1.0)
    roofs = (replace(one, ceiling_ratio=(ceilings or {}).get(one.level, 1.0)) for one in whole.roofs)
    whole = replace(whole, roofs=tuple(sorted(roofs, key=lambda roof: -roof.share_ratio / roof.ceiling_ratio)))
    return KernelRoofline(machine=machine, whole=whole, launches=(whole,))
