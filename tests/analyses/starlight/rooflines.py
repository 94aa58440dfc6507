"""Rooflines by hand: one type of operation, some levels of the memory, round numbers."""

from collections.abc import Mapping

from gpa_lsp.diagnosis.analyses.model import KernelRoofline, OperationCount, Point, Roof, Roofline, Traffic
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

SECOND = 1.0


def make_roofline(
    *,
    ops_per_s: float | None,
    peaks: Mapping[OperationKind, float],
    traffic: Mapping[MemoryLevel, tuple[float, float]],
    kind: OperationKind = OperationKind.FP32,
    ceilings: Mapping[MemoryLevel, float] | None = None,
    is_certain: bool = True,
    is_exact: bool = True,
) -> KernelRoofline:
    """A kernel of one launch of one second.

    Args:
        ops_per_s: operations of ``kind``; None for a kernel without any.
        peaks: per second, by type.
        traffic: level → (bytes per second moved, bytes per second at most).
        kind: of its operations.
        ceilings: level → sustainable share, where it is not 1.
        is_certain: of every peak and bandwidth.
        is_exact: of the count of operations.
    """
    machine = Machine(
        name="Test GPU",
        compute_capability=(8, 6),
        sm_count=4,
        clocks=Clocks(basis=ClockBasis.MEASURED, sm_hz=1e9, l2_hz=1e9, dram_hz=1e9, source="a test"),
        peaks=tuple(
            Peak(
                kind=one,
                ops_per_cycle=None,
                ops_per_s=peak,
                origin=RoofOrigin.EMPIRICAL,
                source="a test",
                is_certain=is_certain,
            )
            for one, peak in peaks.items()
        ),
        bandwidths=tuple(
            Bandwidth(
                level=level,
                bytes_per_cycle=None,
                clock_hz=None,
                bytes_per_s=most,
                origin=RoofOrigin.EMPIRICAL,
                source="a test",
                is_certain=is_certain,
            )
            for level, (_, most) in traffic.items()
        ),
        issue_per_cycle=16.0,
    )
    roofs = [
        Roof(
            name=f"{level} bandwidth",
            kind=None,
            level=level,
            limit_per_s=most,
            achieved_per_s=moved,
            ceiling_ratio=(ceilings or {}).get(level, 1.0),
        )
        for level, (moved, most) in traffic.items()
    ]
    points: list[Point] = []
    if ops_per_s is not None:
        roofs.append(
            Roof(name=f"{kind} peak", kind=kind, level=None, limit_per_s=peaks[kind], achieved_per_s=ops_per_s)
        )
        points = [_make_point(kind, level, ops_per_s, peaks[kind], rates) for level, rates in traffic.items()]
    roofs.sort(key=lambda roof: -roof.share_ratio / roof.ceiling_ratio)
    whole = Roofline(
        launch_index=None,
        duration_s=SECOND,
        operations=()
        if ops_per_s is None
        else (OperationCount(kind=kind, operations=ops_per_s * SECOND, source="a test", is_exact=is_exact),),
        traffic=tuple(
            Traffic(level=level, bytes=moved * SECOND, source="a test") for level, (moved, _) in traffic.items()
        ),
        warp_instructions=None,
        roofs=tuple(roofs),
        points=tuple(points),
        instruction_points=(),
        dominant=None if ops_per_s is None else kind,
    )
    return KernelRoofline(machine=machine, whole=whole, launches=(whole,))


def _make_point(
    kind: OperationKind, level: MemoryLevel, ops_per_s: float, peak: float, rates: tuple[float, float]
) -> Point:
    moved, most = rates
    intensity = ops_per_s / moved
    return Point(
        kind=kind,
        level=level,
        intensity=intensity,
        achieved_ops_per_s=ops_per_s,
        attainable_ops_per_s=min(peak, most * intensity),
        is_memory_side=most * intensity < peak,
    )
