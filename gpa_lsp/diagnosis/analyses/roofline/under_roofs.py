"""Work under a machine's roofs: points, ceilings by nearness, and what is missing.

Source: Zeni et al., "Starlight: A kernel optimizer for GPU processing", Equation 1, min(peak, bandwidth · intensity), for every type of operation
over every level of the memory; Ding and Williams, "An Instruction Roofline Model for GPUs" (PMBS 2019), for warp instructions per transaction.
"""

from collections.abc import Iterable, Iterator

from gpa_lsp.diagnosis.analyses.roofline.busy_units import find_busiest
from gpa_lsp.diagnosis.analyses.roofline.traffic import TRANSACTION_BYTES
from gpa_lsp.diagnosis.analyses.roofline.unknown import list_missing
from gpa_lsp.diagnosis.analyses.roofline.work import Work
from gpa_lsp.diagnosis.analyses.roofline_model import InstructionPoint, OperationCount, Point, Roof, Roofline
from gpa_lsp.gpu.device.model import L1_CEILING, L2_CEILING, Bandwidth, Machine, MemoryLevel, OperationKind, RoofOrigin

LEVELS = (MemoryLevel.SHARED, MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.DRAM)  # From the SM outwards

ISSUE = "instruction issue"

# Types that most kernels need on the side: for addresses and loops, and inside functions of the others
SIDE_KINDS = frozenset({OperationKind.INT32, OperationKind.SPECIAL})

NEGLIGIBLE_RATIO = 0.01  # A type with a smaller part of all operations says nothing about what a kernel is for

# From this share of its peak on, a type of the side is what the kernel is about. Ours: of published reports only a generator of random numbers has
# one, at 0.54; floating-point kernels have integers at up to 0.35.
NEAR_RATIO = 0.4


def build_roofline(launch_index: int | None, work: Work, machine: Machine, dram_ceiling: float) -> Roofline:
    """Where work stands under a machine's roofs.

    Args:
        launch_index: position in the profile; None for several launches together.
    """
    roofs = sorted(_list_roofs(work, machine, dram_ceiling), key=_rank)
    operations = [
        count for kind, count in work.operations.items() if count.operations > 0 or machine.find_peak(kind) is not None
    ]
    return Roofline(
        launch_index=launch_index,
        duration_s=work.duration_s,
        operations=tuple(sorted(operations, key=lambda count: -count.operations)),
        traffic=tuple(work.traffic[level] for level in LEVELS if level in work.traffic),
        warp_instructions=work.warp_instructions,
        roofs=tuple(roofs),
        points=tuple(_list_points(work, machine)),
        instruction_points=tuple(_list_instruction_points(work, machine)),
        dominant=_find_dominant(work, roofs) or _find_most(work),
        missing=list_missing(work, machine),
        busiest=find_busiest(work.busy_s, work.duration_s, dram_ceiling),
    )


def _rank(roof: Roof) -> float:
    return -roof.share_ratio / roof.ceiling_ratio


def _find_dominant(work: Work, roofs: Iterable[Roof]) -> OperationKind | None:
    """The type nearest to its peak, types of the side last; None when no peak is known."""
    shares = {roof.kind: roof.share_ratio for roof in roofs if roof.kind is not None}
    if not shares:
        return None
    nearest = max(shares, key=lambda kind: shares[kind])
    if nearest not in SIDE_KINDS or shares[nearest] >= NEAR_RATIO:
        return nearest
    least = NEGLIGIBLE_RATIO * sum(count.operations for count in work.operations.values())
    main = [kind for kind in shares if kind not in SIDE_KINDS and work.operations[kind].operations >= least]
    return max(main, key=lambda kind: shares[kind], default=nearest)


def _find_most(work: Work) -> OperationKind | None:
    """The type with the most operations, where no peak is known."""
    counts = [count for count in work.operations.values() if count.operations > 0]
    return max(counts, key=lambda count: count.operations).kind if counts else None


def _list_worthy(work: Work) -> list[OperationCount]:
    """The types that are drawn, most operations first: moves that compilers write as arithmetic are not among them."""
    least = NEGLIGIBLE_RATIO * sum(count.operations for count in work.operations.values())
    worthy = [count for count in work.operations.values() if count.operations > 0 and count.operations >= least]
    return sorted(worthy, key=lambda count: -count.operations)


def _list_roofs(work: Work, machine: Machine, dram_ceiling: float) -> Iterator[Roof]:
    for kind, count in work.operations.items():
        peak = machine.find_peak(kind)
        if peak is not None and peak.ops_per_s and count.operations > 0:
            achieved = count.operations / work.duration_s
            yield Roof(name=f"{kind} peak", kind=kind, level=None, limit_per_s=peak.ops_per_s, achieved_per_s=achieved)
    for level, traffic in work.traffic.items():
        bandwidth = machine.find_bandwidth(level)
        if bandwidth is not None and bandwidth.bytes_per_s:
            yield Roof(
                name=f"{level} bandwidth",
                kind=None,
                level=level,
                limit_per_s=bandwidth.bytes_per_s,
                achieved_per_s=traffic.bytes / work.duration_s,
                ceiling_ratio=_find_ceiling(bandwidth, dram_ceiling),
            )
    if work.warp_instructions is not None and machine.issue_per_s:
        yield Roof(
            name=ISSUE,
            kind=None,
            level=None,
            limit_per_s=machine.issue_per_s,
            achieved_per_s=work.warp_instructions / work.duration_s,
        )


def _find_ceiling(bandwidth: Bandwidth, dram_ceiling: float) -> float:
    """What was measured is sustainable already."""
    if bandwidth.origin is RoofOrigin.EMPIRICAL:
        return 1.0
    if bandwidth.level is MemoryLevel.DRAM:
        return dram_ceiling
    return L2_CEILING if bandwidth.level is MemoryLevel.L2 else L1_CEILING


def _list_points(work: Work, machine: Machine) -> Iterator[Point]:
    """One per type worth drawing and level with bytes; no bytes would be an infinite intensity."""
    for count in _list_worthy(work):
        for level in LEVELS:
            traffic = work.traffic.get(level)
            if traffic is None or traffic.bytes <= 0 or level in work.unused_levels:
                continue
            intensity = count.operations / traffic.bytes
            peak, bandwidth = machine.find_peak(count.kind), machine.find_bandwidth(level)
            limit = None if peak is None else peak.ops_per_s
            slope = None if bandwidth is None else bandwidth.bytes_per_s
            yield Point(
                kind=count.kind,
                level=level,
                intensity=intensity,
                achieved_ops_per_s=count.operations / work.duration_s,
                attainable_ops_per_s=find_attainable(limit, slope, intensity),
                is_memory_side=None if limit is None or slope is None else slope * intensity < limit,
            )


def find_attainable(peak_per_s: float | None, bandwidth_per_s: float | None, intensity: float) -> float | None:
    """The lower of the two roofs at an intensity; None where one of them is unknown.

    >>> find_attainable(19.5e12, 1555e9, 0.25), find_attainable(19.5e12, 1555e9, 100.0), find_attainable(None, 1555e9, 1.0)
    (388750000000.0, 19500000000000.0, None)

    Source: Starlight, Equation 1.
    """
    if peak_per_s is None or bandwidth_per_s is None:
        return None
    return min(peak_per_s, bandwidth_per_s * intensity)


def _list_instruction_points(work: Work, machine: Machine) -> Iterator[InstructionPoint]:
    if not work.warp_instructions:
        return
    for level in LEVELS:
        traffic = work.traffic.get(level)
        if traffic is None or not traffic.transactions or level in work.unused_levels:
            continue
        intensity = work.warp_instructions / traffic.transactions
        bandwidth = machine.find_bandwidth(level)
        slope = (
            None
            if bandwidth is None or bandwidth.bytes_per_s is None
            else bandwidth.bytes_per_s / TRANSACTION_BYTES[level]
        )
        yield InstructionPoint(
            level=level,
            intensity=intensity,
            achieved_per_s=work.warp_instructions / work.duration_s,
            attainable_per_s=find_attainable(machine.issue_per_s, slope, intensity),
            transaction_bytes=TRANSACTION_BYTES[level],
        )
