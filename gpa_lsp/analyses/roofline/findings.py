"""What a kernel's place under the roofs means, and what moves its point where."""

from collections.abc import Iterator

from gpa_lsp.analyses.answers import Finding, Weight
from gpa_lsp.analyses.roofline.under_roofs import ISSUE
from gpa_lsp.analyses.roofline_model import BusyUnit, Point, Roof, Roofline
from gpa_lsp.device.model import ClockBasis, Machine, MemoryLevel, OperationKind

BOUND_RATIO = 0.8
"""From this part of what a roof sustains on it is what bounds the kernel, as in Nsight Compute's rule for the bottleneck."""

LEANING_RATIO = 0.5
"""From this part on, a roof soon stops a kernel that gets faster."""

NO_HEADROOM = 1.005
"""Below this factor nothing is left."""

SLOW_TYPE_FACTOR = 8
"""FP64 at less than an eighth of the FP32 rate: graphics GPUs have 1/32 or 1/64, computing GPUs 1/2."""

_REMEDIES = {
    MemoryLevel.DRAM: (
        "Use each byte more often before it is dropped (tiles in shared memory or registers, fused kernels), or make it smaller (narrower types, "
        "compressed data): the point moves right, and the roof above it rises."
    ),
    MemoryLevel.L2: (
        "Ask L2 for less: keep what a block uses again in shared memory, registers or L1, and let neighbouring threads touch neighbouring "
        "addresses: the point over L2 moves right."
    ),
    MemoryLevel.L1: (
        "Load fewer sectors: coalesced and wider accesses, values kept in registers: the point over L1 moves right."
    ),
    MemoryLevel.SHARED: (
        "Make fewer passes through shared memory: no bank conflicts, wider accesses, more work per thread out of registers: the point over "
        "shared memory moves right."
    ),
}
_PEAK_REMEDY = "The point can rise no further: do fewer operations, or do them in a type with a higher peak (tensor cores, lower precision)."
_ISSUE_REMEDY = (
    "Do more with each instruction: wider loads and stores, multiply-adds, packed halves, tensor cores, less address arithmetic and fewer "
    "branches (unrolling). The point rises with the work per instruction."
)
_UNIT_REMEDY = (
    "Ask less often, and for more each time: accesses of whole sectors by neighbouring threads, wider ones, values kept in registers. Bytes are not "
    "what there is too much of."
)
_PIPE_REMEDY = "Do less of what this unit does: hoist and simplify it, or spread the work over other pipes."
_LATENCY_REMEDY = (
    "More in flight lifts the point: more warps (occupancy, a larger grid), more independent instructions per warp (unrolling, reordering), "
    "fewer waits at barriers. The stalls name the lines."
)


def describe_place(roofline: Roofline) -> str:
    """The nearest roof, in one sentence.

    Shares are of what the roof sustains in its best published kernels, where that is known to be less than its peak.
    """
    binding, unit = roofline.binding, roofline.tighter_unit
    if unit is not None:
        verb = "Leans on" if unit.nearness >= LEANING_RATIO else "Below all roofs; the busiest unit is"
        verb = "Bound by" if unit.nearness >= BOUND_RATIO else verb
        return f"{verb} {unit.phrase}: {100 * unit.share_ratio:.3g} % of the peak, headroom {_write_factor(unit.headroom)}."
    if binding is None:
        return "No roof is known together with what the kernel makes of it."
    near, share = _near(binding), f"{100 * binding.share_ratio:.3g} %"
    if near >= BOUND_RATIO:
        return f"Bound by {binding.name}: {share} of its peak, headroom {binding.headroom:.2f}×."
    verb = "Leans on" if near >= LEANING_RATIO else "Below all roofs; nearest is"
    return f"{verb} {binding.name}: {share} of its peak, headroom {_write_factor(binding.headroom)}."


def list_findings(roofline: Roofline, machine: Machine) -> tuple[Finding, ...]:
    """Findings of a kernel's place, most important first."""
    return (
        *_find_binding(roofline),
        *_find_side(roofline),
        *_find_slow_type(roofline, machine),
        *_find_reuse(roofline),
        *_find_clocks(machine),
    )


def _near(roof: Roof) -> float:
    return roof.share_ratio / roof.ceiling_ratio


def _write_factor(factor: float) -> str:
    return f"{factor:.3g}×" if factor < 1000 else "more than 1000×"


def _find_binding(roofline: Roofline) -> Iterator[Finding]:
    binding, unit = roofline.binding, roofline.tighter_unit
    if unit is not None and unit.nearness >= LEANING_RATIO:
        yield _describe_unit(unit, binding)
        return
    if binding is None:
        return
    near = _near(binding)
    if near < LEANING_RATIO:
        yield Finding(
            text=f"No roof is near: the kernel is at {100 * near:.3g} % of what the nearest, {binding.name}, sustains{_mention(unit)}, so that "
            "latency and too little in flight hold it up.",
            weight=Weight.HIGH,
            remedy=_LATENCY_REMEDY,
        )
        return
    is_bound = near >= BOUND_RATIO
    text = (
        f"{binding.name} is {100 * binding.share_ratio:.3g} % used{_describe_ceiling(binding.ceiling_ratio)}: with the same work the kernel can run "
        f"{_limit_speed(binding.headroom)}."
    )
    remedy = _choose_remedy(binding)
    yield Finding(
        text=_capital(text),
        weight=Weight.HIGH if is_bound else Weight.PLAIN,
        remedy=remedy if is_bound else f"{remedy} Until then: {_LATENCY_REMEDY[0].lower()}{_LATENCY_REMEDY[1:]}",
    )


def _mention(unit: BusyUnit | None) -> str:
    return (
        "" if unit is None else f" (and the busiest unit, {unit.phrase}, at {100 * unit.share_ratio:.3g} % of its peak)"
    )


def _describe_unit(unit: BusyUnit, binding: Roof | None) -> Finding:
    """A kernel that is far from all roofs for what it moves and computes, and yet has filled a unit."""
    roof = (
        "" if binding is None else f" The nearest roof, {binding.name}, is only {100 * binding.share_ratio:.3g} % used."
    )
    text = (
        f"{unit.name} {'are' if unit.name.endswith('s') else 'is'} at {100 * unit.share_ratio:.3g} % of the peak"
        f"{_describe_ceiling(unit.ceiling_ratio)}: with the same work the kernel can run {_limit_speed(unit.headroom)}.{roof}"
    )
    is_bound = unit.nearness >= BOUND_RATIO
    remedy = _UNIT_REMEDY if unit.is_memory else _PIPE_REMEDY
    return Finding(
        text=_capital(text),
        weight=Weight.HIGH if is_bound else Weight.PLAIN,
        remedy=remedy if is_bound else f"{remedy} Until then: {_LATENCY_REMEDY[0].lower()}{_LATENCY_REMEDY[1:]}",
    )


def _limit_speed(headroom: float) -> str:
    """To follow ``can run``.

    >>> _limit_speed(1.002), _limit_speed(1.27)
    ('no faster', 'at most 1.27× as fast')
    """
    return "no faster" if headroom < NO_HEADROOM else f"at most {_write_factor(headroom)} as fast"


def _describe_ceiling(ceiling_ratio: float) -> str:
    return "" if ceiling_ratio == 1 else f", of about {100 * ceiling_ratio:.3g} % that can be sustained"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _choose_remedy(roof: Roof) -> str:
    if roof.level is not None:
        return _REMEDIES[roof.level]
    return _ISSUE_REMEDY if roof.name == ISSUE else _PEAK_REMEDY


def _find_side(roofline: Roofline) -> Iterator[Finding]:
    """Left or right of the ridge point of DRAM, for the type the kernel is about."""
    point = find_point(roofline, MemoryLevel.DRAM)
    if point is None or point.attainable_ops_per_s is None or not point.attainable_ops_per_s:
        return
    reached = f"{100 * point.achieved_ops_per_s / point.attainable_ops_per_s:.3g} % of what is attainable there"
    where = f"{point.kind} does {point.intensity:.3g} operations for each byte of DRAM"
    if point.is_memory_side:
        yield Finding(
            text=f"{where}: left of the ridge point, on the memory's side of the roofline, at {reached}.",
            remedy="More operations per byte (locality, narrower types) raise what is attainable; faster arithmetic does not.",
        )
        return
    is_near = point.achieved_ops_per_s >= LEANING_RATIO * point.attainable_ops_per_s
    yield Finding(
        text=f"{where}: right of the ridge point, where arithmetic is the lower roof, at {reached}.",
        remedy=f"Fewer bytes of DRAM change nothing; {'fewer and cheaper operations do' if is_near else 'the arithmetic is not what limits either'}.",
    )


def find_point(roofline: Roofline, level: MemoryLevel) -> Point | None:
    """The point of the type the kernel is about over a level; None when there is none."""
    return next((point for point in roofline.points if point.kind is roofline.dominant and point.level is level), None)


def _find_slow_type(roofline: Roofline, machine: Machine) -> Iterator[Finding]:
    slow, fast = machine.find_peak(OperationKind.FP64), machine.find_peak(OperationKind.FP32)
    used = next((roof for roof in roofline.roofs if roof.kind is OperationKind.FP64), None)
    if slow is None or fast is None or used is None or not slow.ops_per_cycle or not fast.ops_per_cycle:
        return
    factor = fast.ops_per_cycle / slow.ops_per_cycle
    if factor >= SLOW_TYPE_FACTOR and used.share_ratio >= LEANING_RATIO / 5:
        yield Finding(
            text=f"FP64 has 1/{factor:.0f} of the FP32 rate on {machine.name}, and the kernel uses {100 * used.share_ratio:.3g} % of it.",
            weight=Weight.HIGH if used.share_ratio >= LEANING_RATIO else Weight.PLAIN,
            remedy="Do in FP32 what need not be in FP64 (constants written without f promote to double): the point moves under a higher roof.",
        )


def _find_reuse(roofline: Roofline) -> Iterator[Finding]:
    """How many bytes each level serves for one of the next."""
    traffic = {one.level: one for one in roofline.traffic}
    for near, far in ((MemoryLevel.L1, MemoryLevel.L2), (MemoryLevel.L2, MemoryLevel.DRAM)):
        if near in traffic and far in traffic and traffic[near].is_exact and traffic[far].bytes > 0:
            factor = traffic[near].bytes / traffic[far].bytes
            yield Finding(
                text=f"{near} moves {factor:.3g} {'byte' if f'{factor:.3g}' == '1' else 'bytes'} for each byte of {far}."
            )


def _find_clocks(machine: Machine) -> Iterator[Finding]:
    """Roofs at other clocks than the kernel's are no measure of it."""
    if machine.clocks.basis is not ClockBasis.MEASURED:
        yield from (Finding(text=doubt) for doubt in machine.doubts)
