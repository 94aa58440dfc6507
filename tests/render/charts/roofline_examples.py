"""Kernels under roofs, made by hand: an RTX 3090-like machine of round numbers, and kernels of chosen intensity and rate."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.diagnosis.analyses.model import (
    InstructionPoint,
    KernelAnalyses,
    KernelRoofline,
    OperationCount,
    Point,
    Roof,
    Roofline,
    Traffic,
)
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
from gpa_lsp.report.model import KernelReport
from tests.report_builder import build_kernel

SM_HZ = 1e9
PEAKS = {
    OperationKind.FP64: 0.5e12,
    OperationKind.FP32: 32e12,
    OperationKind.FP16: 32e12,
    OperationKind.INT32: 16e12,
    OperationKind.TENSOR_FP16: 128e12,
}
BANDWIDTHS = {MemoryLevel.SHARED: 10e12, MemoryLevel.L1: 10e12, MemoryLevel.L2: 3e12, MemoryLevel.DRAM: 1e12}


def make_machine(name: str = "Example GPU", speed: float = 1.0, basis: ClockBasis = ClockBasis.MEASURED) -> Machine:
    """Roofs of round numbers, times ``speed``."""
    clocks = Clocks(basis=basis, sm_hz=SM_HZ * speed, l2_hz=SM_HZ, dram_hz=SM_HZ, source="its own counters")
    return Machine(
        name=name,
        compute_capability=(8, 6),
        sm_count=80,
        clocks=clocks,
        peaks=tuple(
            Peak(
                kind=kind,
                ops_per_cycle=rate / SM_HZ,
                ops_per_s=rate * speed,
                origin=RoofOrigin.DEVICE,
                source="the architecture's table",
            )
            for kind, rate in PEAKS.items()
        ),
        bandwidths=tuple(
            Bandwidth(
                level=level,
                bytes_per_cycle=rate / SM_HZ,
                clock_hz=SM_HZ,
                bytes_per_s=rate * speed,
                origin=RoofOrigin.COUNTERS,
                source="a counter of the report",
            )
            for level, rate in BANDWIDTHS.items()
        ),
        issue_per_cycle=320.0,
    )


def make_roofline(
    machine: Machine,
    *,
    seconds: float = 1e-3,
    rates: Mapping[OperationKind, float] | None = None,
    traffic: Mapping[MemoryLevel, float] | None = None,
    launch_index: int | None = None,
    missing: Sequence[Missing] = (),
) -> Roofline:
    """A launch that ran for some seconds at some operations and bytes per second."""
    rates = {OperationKind.FP32: 1.2e12} if rates is None else rates
    traffic = {MemoryLevel.L1: 2e12, MemoryLevel.L2: 1e12, MemoryLevel.DRAM: 0.8e12} if traffic is None else traffic
    roofs = [
        *(_make_roof(machine, kind, None, rate) for kind, rate in rates.items() if machine.find_peak(kind)),
        *(_make_roof(machine, None, level, rate) for level, rate in traffic.items()),
    ]
    return Roofline(
        launch_index=launch_index,
        duration_s=seconds,
        operations=tuple(
            OperationCount(kind=kind, operations=rate * seconds, source="counters") for kind, rate in rates.items()
        ),
        traffic=tuple(Traffic(level=level, bytes=rate * seconds, source="counters") for level, rate in traffic.items()),
        warp_instructions=1e11 * seconds,
        roofs=tuple(sorted(roofs, key=lambda roof: -roof.share_ratio / roof.ceiling_ratio)),
        points=tuple(
            _make_point(machine, kind, rate, level, size)
            for kind, rate in rates.items()
            for level, size in traffic.items()
            if rate and size
        ),
        instruction_points=tuple(
            InstructionPoint(
                level=level,
                intensity=1e11 / (size / 32),
                achieved_per_s=1e11,
                attainable_per_s=min(machine.issue_per_s or 0.0, 1e11 / (size / 32) * BANDWIDTHS[level] / 32),
                transaction_bytes=32,
            )
            for level, size in traffic.items()
            if size
        ),
        dominant=max(rates, key=lambda kind: rates[kind] / PEAKS[kind], default=None),
        missing=tuple(missing),
    )


def place(
    name: str = "saxpy",
    *rooflines: Roofline,
    machine: Machine | None = None,
    mangled_name: str | None = None,
    missing: Sequence[Missing] = (),
    profile_path: str = "profile.ncu-rep",
) -> KernelReport:
    """A kernel whose launches are the given rooflines (by default one), the first of them standing for the whole."""
    machine = machine or make_machine()
    launches = rooflines or (make_roofline(machine, missing=missing),)
    numbered = tuple(replace(line, launch_index=number) for number, line in enumerate(launches))
    whole = replace(launches[0], duration_s=sum(line.duration_s for line in launches))
    kernel = build_kernel(
        name=name,
        mangled_name=mangled_name,
        durations_ns=[line.duration_s * 1e9 for line in launches],
        profile_path=profile_path,
    )
    analyses = KernelAnalyses(roofline=KernelRoofline(machine=machine, whole=whole, launches=numbered), answers=())
    return replace(kernel, analyses=analyses)


def place_many(count: int) -> list[KernelReport]:
    """Kernels spread over the plane, each of two types and up to four launches."""
    machine = make_machine()
    kernels = []
    for number in range(count):
        scale = 10 ** (2 * (number * 37 % 100) / 100 - 1.5)
        rates = {OperationKind.FP32: 6e12 * scale / (1 + number % 3), OperationKind.INT32: 1e12 * scale**0.7}
        size = 0.9e12 / (1 + 9 * ((number * 53 % 97) / 97))
        traffic = {
            MemoryLevel.SHARED: 3 * size,
            MemoryLevel.L1: 4 * size,
            MemoryLevel.L2: 1.9 * size,
            MemoryLevel.DRAM: size,
        }
        lines = [
            make_roofline(machine, seconds=1e-3 / (1 + number) * (1 + launch / 3), rates=rates, traffic=traffic)
            for launch in range(1 + number % 4)
        ]
        name = f"void solver::step_{number}<float, {number}>(float const*, int)"
        kernels.append(place(name, *lines, machine=machine))
    return kernels


def _make_roof(machine: Machine, kind: OperationKind | None, level: MemoryLevel | None, rate: float) -> Roof:
    if kind is not None:
        peak = machine.find_peak(kind)
        assert peak is not None
        assert peak.ops_per_s is not None
        return Roof(name=f"{kind.value} peak", kind=kind, level=None, limit_per_s=peak.ops_per_s, achieved_per_s=rate)
    assert level is not None
    bandwidth = machine.find_bandwidth(level)
    assert bandwidth is not None
    assert bandwidth.bytes_per_s is not None
    return Roof(
        name=f"{level.value} bandwidth",
        kind=None,
        level=level,
        limit_per_s=bandwidth.bytes_per_s,
        achieved_per_s=rate,
        ceiling_ratio=0.85 if level is MemoryLevel.DRAM else 1.0,
    )


def _make_point(machine: Machine, kind: OperationKind, rate: float, level: MemoryLevel, size: float) -> Point:
    peak, bandwidth = machine.find_peak(kind), machine.find_bandwidth(level)
    assert bandwidth is not None
    slope = bandwidth.bytes_per_s or 0.0
    limit = (peak.ops_per_s if peak else None) or float("inf")
    return Point(
        kind=kind,
        level=level,
        intensity=rate / size,
        achieved_ops_per_s=rate,
        attainable_ops_per_s=min(limit, slope * rate / size),
        is_memory_side=slope * rate / size < limit,
    )
