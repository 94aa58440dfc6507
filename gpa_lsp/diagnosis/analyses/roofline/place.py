"""Place a kernel under its machine's roofs: :func:`place_kernel`; or under other ones, measured or of another GPU: :func:`place_under`.

Every launch stands under the roofs at its own clocks. All launches together are total work over total time, so that each counts by how long it
took, under the roofs of the longest launch: launches of one kernel in one session run at clocks a percent or two apart, short ones at lower ones.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.diagnosis.analyses.model import (
    MOST_LAUNCHES,
    InstructionPoint,
    KernelRoofline,
    OperationCount,
    Point,
    Roof,
    Roofline,
)
from gpa_lsp.diagnosis.analyses.roofline.counts import (
    THREAD_TABLES,
    WARP_TABLES,
    count_launch,
    find_busiest,
    find_device_dram_ceiling,
    read_span,
)
from gpa_lsp.diagnosis.analyses.roofline.operations import COUNTED
from gpa_lsp.diagnosis.analyses.roofline.work import RECIPES, TRANSACTION_BYTES, Work, measure_work, sum_work
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import say
from gpa_lsp.gpu.device.empirical import apply_roofs
from gpa_lsp.gpu.device.find import find_machine
from gpa_lsp.gpu.device.model import (
    HBM_CEILING,
    L1_CEILING,
    L2_CEILING,
    TRANSFERS_PER_CLOCK,
    Bandwidth,
    EmpiricalRoofs,
    Machine,
    MemoryLevel,
    OperationKind,
    RoofOrigin,
    find_dram_ceiling,
)
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.model import Launch

_MIX_SECTION = "SourceCounters"
_COUNTED_SECTIONS = {
    OperationKind.FP64: "SpeedOfLight_RooflineChart",
    OperationKind.FP32: "SpeedOfLight_RooflineChart",
    OperationKind.FP16: "SpeedOfLight_HierarchicalHalfRooflineChart",
}
_MEMORY_SECTION = "MemoryWorkloadAnalysis_Tables"

TIME = Missing(what="the time of the launches", metrics=("gpu__time_duration.sum",), section="SpeedOfLight")

# The counters to ask for
_WANTED = {
    MemoryLevel.SHARED: RECIPES[MemoryLevel.SHARED][0],
    MemoryLevel.L1: RECIPES[MemoryLevel.L1][1],
    MemoryLevel.L2: RECIPES[MemoryLevel.L2][0],
    MemoryLevel.DRAM: RECIPES[MemoryLevel.DRAM][0],
}

# Later GPUs count the bytes of DRAM under other names, and a name that a GPU lacks makes the profiler give up
_LAST_OF_THESE_NAMES = (9, 0)


def list_missing(work: Work, machine: Machine) -> tuple[Missing, ...]:
    """Types and levels with a ceiling, or a possible one, whose work is unknown; and ceilings that are unknown."""
    return (*_list_operations(work, machine), *_list_traffic(work, machine), *_list_unknown_roofs(work, machine))


def _list_operations(work: Work, machine: Machine) -> Iterator[Missing]:
    unknown = [kind for kind in OperationKind if kind not in work.operations]
    for kind in unknown:
        if kind in COUNTED:
            names = tuple(f"{counters[0]}.sum" for counters, _ in COUNTED[kind])
            yield Missing(what=f"{kind} operations", metrics=names, needs_all=True, section=_COUNTED_SECTIONS[kind])
    if OperationKind.INT32 in unknown or OperationKind.SPECIAL in unknown:
        yield Missing(what="integer operations and special functions", metrics=THREAD_TABLES[:1], section=_MIX_SECTION)
    tensor = [kind.value for kind in unknown if kind.is_tensor and machine.find_peak(kind) is not None]
    if tensor:
        yield Missing(
            what=f"operations of the tensor cores ({', '.join(tensor)})", metrics=WARP_TABLES[:1], section=_MIX_SECTION
        )


def _list_traffic(work: Work, machine: Machine) -> Iterator[Missing]:
    is_later = machine.compute_capability is not None and machine.compute_capability > _LAST_OF_THESE_NAMES
    for level, recipe in _WANTED.items():
        traffic = work.traffic.get(level)
        counters = () if level is MemoryLevel.DRAM and is_later else recipe.counters
        if traffic is None or not traffic.is_exact:
            yield Missing(
                what=f"bytes of {level}" if traffic is None else f"bytes of {level} as counted",
                metrics=tuple(f"{counter}.sum" for counter in counters),
                needs_all=len(counters) > 1,
                section=_MEMORY_SECTION,
            )


def _list_unknown_roofs(work: Work, machine: Machine) -> Iterator[Missing]:
    for kind, count in work.operations.items():
        peak = machine.find_peak(kind)
        if count.operations > 0 and (peak is None or not peak.ops_per_s):
            yield Missing(what=f"the {kind} peak", why=say("{gpu} has no published figure for it", gpu=machine.name))
    for level in work.traffic:
        bandwidth = machine.find_bandwidth(level)
        if bandwidth is None or not bandwidth.bytes_per_s:
            yield Missing(
                what=f"the bandwidth of {level}", why=say("{gpu} has no published figure for it", gpu=machine.name)
            )


# Work under a machine's roofs: points, ceilings by nearness, and what is missing.
#
# Source: Zeni et al., "Starlight: A kernel optimizer for GPU processing", Equation 1, min(peak, bandwidth · intensity), for every type of operation
# over every level of the memory; Ding and Williams, "An Instruction Roofline Model for GPUs" (PMBS 2019), for warp instructions per transaction.

LEVELS = (MemoryLevel.SHARED, MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.DRAM)  # From the SM outwards

ISSUE = "instruction issue"

# Types that most kernels need on the side: for addresses and loops, and inside functions of the others
SIDE_KINDS = frozenset({OperationKind.INT32, OperationKind.SPECIAL})

NEGLIGIBLE_RATIO = 0.01  # A type with a smaller part of all operations says nothing about what a kernel is for

# From this share of its peak on, a type of the side is what the kernel is about. Ours: of published reports only a generator of random numbers has
# one, at 0.54; floating-point kernels have integers at up to 0.35.
NEAR_RATIO = 0.4


def build_roofline(launch_index: int | None, work: Work, machine: Machine, dram_ceiling: float) -> Roofline:
    """Place work under a machine's roofs.

    ``launch_index``: position in the profile; None for several launches together.
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
        # Without a known peak: the type with the most operations.
        dominant=_find_dominant(work, roofs) or next((count.kind for count in _list_worthy(work)), None),
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
    """Sustainable share of a bandwidth; 1 for a measured one."""
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


def place_kernel(kernel: Kernel, roofs: EmpiricalRoofs | None = None) -> KernelRoofline | None:
    """Place a kernel's launches, and all of them together, under its machine's roofs.

    Args:
        kernel: joined.
        roofs: measured ones, to stand in place of the theoretical. Those of another GPU are not used, and the machine's doubts say so.

    Returns:
        None when nothing is known of the machine, or no launch has a time.
    """
    spans = [(launch, span) for launch in kernel.launches if (span := read_span(launch)) is not None]
    timed = sorted(spans, key=lambda one: -one[1].duration_s)
    longest = _find_machines(kernel, timed[0][0], roofs) if timed else None
    if longest is None:
        return None
    ceiling = find_device_dram_ceiling(kernel.device)
    works: list[Work] = []
    placed: list[Roofline] = []
    for number, (launch, span) in enumerate(timed):
        is_shown = number < MOST_LAUNCHES
        theoretical, shown = (_find_machines(kernel, launch, roofs) if is_shown and number else None) or longest
        works.append(measure_work(launch, span, count_launch(kernel, launch, len(timed)), theoretical))
        if is_shown:
            placed.append(build_roofline(launch.index, works[-1], shown, ceiling))
    together = None if kernel.has_mixed_launches else sum_work(works)
    return KernelRoofline(
        machine=longest[1],
        whole=None if together is None else build_roofline(None, together, longest[1], ceiling),
        launches=tuple(placed),
        left_out=len(timed) - len(placed),
    )


def _find_machines(kernel: Kernel, launch: Launch, roofs: EmpiricalRoofs | None) -> tuple[Machine, Machine] | None:
    """Find the machine that stored shares of peaks refer to, and the one the launch is placed under, with measured roofs if given."""
    machine = find_machine(launch.device, kernel.architecture, launch)
    if machine is None:
        return None
    if roofs is None:
        return machine, machine
    try:
        return machine, apply_roofs(machine, roofs)
    except InputError as error:
        doubt = f"The measured ceilings are not used: {error.message}."
        return machine, replace(machine, doubts=(*machine.doubts, doubt))


def place_under(roofline: KernelRoofline, choose_machine: Callable[[Machine], Machine]) -> KernelRoofline:
    """The same work under other roofs.

    Args:
        roofline: of a kernel; all its launches go under the roofs of its longest one, since the clocks of the others are not kept.
        choose_machine: from its machine to the one whose roofs are wanted.

    Raises:
        InputError: what ``choose_machine`` raises.
    """
    machine = choose_machine(roofline.machine)
    is_same_gpu = machine.name == roofline.machine.name
    return KernelRoofline(
        machine=machine,
        whole=None if roofline.whole is None else _place(roofline.whole, machine, is_same_gpu=is_same_gpu),
        launches=tuple(_place(launch, machine, is_same_gpu=is_same_gpu) for launch in roofline.launches),
        left_out=roofline.left_out,
    )


def _place(line: Roofline, machine: Machine, *, is_same_gpu: bool) -> Roofline:
    work = Work(
        duration_s=line.duration_s,
        operations={count.kind: count for count in line.operations},
        traffic={traffic.level: traffic for traffic in line.traffic},
        warp_instructions=line.warp_instructions,
        unused_levels=_find_undrawn(line),
    )
    ceiling = _find_dram_ceiling(line, machine, is_same_gpu=is_same_gpu)
    placed = build_roofline(line.launch_index, work, machine, ceiling)
    # A unit's share of its peak is that of the GPU it ran on.
    return replace(placed, busiest=line.busiest) if is_same_gpu else placed


def _find_undrawn(line: Roofline) -> frozenset[MemoryLevel]:
    """Levels with bytes of which nothing was drawn: no instruction goes there."""
    drawn = {point.level for point in line.points} | {point.level for point in line.instruction_points}
    return frozenset(one.level for one in line.traffic if drawn and one.bytes > 0 and one.level not in drawn)


def _find_dram_ceiling(line: Roofline, machine: Machine, *, is_same_gpu: bool) -> float:
    """Sustainable share of DRAM: as before on the same GPU; on another by its bus width, which the bytes of a memory clock tell."""
    if is_same_gpu:
        return next((roof.ceiling_ratio for roof in line.roofs if roof.level is MemoryLevel.DRAM), HBM_CEILING)
    dram = machine.find_bandwidth(MemoryLevel.DRAM)
    if dram is None or dram.bytes_per_cycle is None:
        return HBM_CEILING
    return find_dram_ceiling(dram.bytes_per_cycle * 8 / TRANSFERS_PER_CLOCK)
