"""What a kernel's place under the ceilings means, and what moves its point where."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Finding, Weight
from gpa_lsp.diagnosis.analyses.roofline.under_roofs import ISSUE
from gpa_lsp.diagnosis.analyses.roofline_model import BusyUnit, Point, Roof, Roofline
from gpa_lsp.foundation.prose import (
    NOTHING,
    Code,
    Part,
    Sentence,
    capitalize,
    count,
    factor,
    join,
    number,
    percent,
    say,
)
from gpa_lsp.gpu.device.model import ClockBasis, Machine, MemoryLevel, OperationKind

# From this part of what a ceiling sustains on the kernel is close to it, as in Nsight Compute's rule for the bottleneck
BOUND_RATIO = 0.8

LEANING_RATIO = 0.5  # From this part on, a ceiling soon stops a kernel that gets faster

NO_HEADROOM = 1.005  # Below this factor nothing is left

# FP64 at less than an eighth of the FP32 rate: graphics GPUs have 1/32 or 1/64, computing GPUs 1/2
SLOW_TYPE_FACTOR = 8

_MOST_FACTOR = 1000  # A larger headroom is not told more exactly

_REMEDIES = {
    MemoryLevel.DRAM: say(
        "Reuse each byte before it is evicted (tile in shared memory or registers, fuse kernels), or shrink the data (narrower types, compression): "
        "the point moves right, under a higher ceiling."
    ),
    MemoryLevel.L2: say(
        "Cut L2 traffic: keep data that a block reuses in shared memory, registers or L1, and coalesce accesses: the point over L2 moves right."
    ),
    MemoryLevel.L1: say(
        "Load fewer sectors: coalesce and widen accesses, keep values in registers: the point over L1 moves right."
    ),
    MemoryLevel.SHARED: say(
        "Take fewer shared-memory wavefronts: no bank conflicts, wider accesses, more work per thread from registers: the point over shared memory "
        "moves right."
    ),
}
_PEAK_REMEDY = say(
    "The point can rise no further: do fewer operations, or use a type with a higher peak (tensor cores, lower precision)."
)
_ISSUE_REMEDY = say(
    "Do more with each instruction: wider loads and stores, multiply-adds, packed halves, tensor cores, less address arithmetic, fewer branches "
    "(unroll). The point rises with the work per instruction."
)
_UNIT_REMEDY = say(
    "Issue fewer, larger requests: whole sectors by neighbouring threads, wider accesses, values kept in registers. Requests fill it, not bytes."
)
_PIPE_REMEDY = say("Do less of what this unit does: hoist and simplify it, or spread the work over other pipes.")
_LATENCY_REMEDY = say(
    "keep more in flight: more warps (occupancy, a larger grid), more independent instructions per warp (unroll, reorder), fewer barrier stalls. "
    "The stalls name the lines."
)


def describe_place(roofline: Roofline) -> Sentence:
    """How far the nearest ceiling is, in one sentence. What limits the kernel is the limiter's to say.

    Shares are of what the ceiling sustains in its best published kernels, where that is known to be less than its peak.
    """
    binding, unit = roofline.binding, roofline.tighter_unit
    if unit is not None:
        return _say_place("Busiest unit", unit)
    if binding is None:
        return say("Unknown: no ceiling has both a limit and a measured rate.")
    return _say_place("Nearest ceiling", binding)


def _say_place(what: str, limit: Roof | BusyUnit) -> Sentence:
    return say(
        "{what}: {name}, {share} of its peak, headroom {headroom}.",
        what=what,
        name=limit.name,
        share=percent(limit.share_ratio),
        headroom=say_factor(limit.headroom),
    )


def list_findings(roofline: Roofline, machine: Machine, *, is_latency: bool) -> tuple[Finding, ...]:
    """Findings of a kernel's place, most important first."""
    return (
        *_find_binding(roofline, is_latency),
        *_find_side(roofline),
        *_find_slow_type(roofline, machine),
        *_find_reuse(roofline),
        *_find_clocks(machine),
    )


def _near(roof: Roof) -> float:
    return roof.share_ratio / roof.ceiling_ratio


def say_factor(value: float) -> Part:
    """How many times faster, up to a bound.

    >>> str(say_factor(1.27)), str(say_factor(4e6))
    ('1.27×', 'more than 1,000×')
    """
    return factor(value) if value < _MOST_FACTOR else say("more than {most}", most=factor(_MOST_FACTOR))


def _find_binding(roofline: Roofline, is_latency: bool) -> Iterator[Finding]:
    binding, unit = roofline.binding, roofline.tighter_unit
    if unit is not None and unit.nearness >= LEANING_RATIO:
        yield _describe_unit(unit, binding, is_latency)
        return
    if binding is None:
        return
    near = _near(binding)
    if near < LEANING_RATIO:
        yield Finding(
            text=say(
                "No ceiling is near: the kernel reaches {share} of what the nearest, {name}, sustains{unit}.",
                share=percent(near),
                name=binding.name,
                unit=_mention(unit),
            ),
            weight=Weight.HIGH if is_latency else Weight.PLAIN,
            remedy=capitalize(_LATENCY_REMEDY) if is_latency else NOTHING,
        )
        return
    yield _describe_limit(binding, near >= BOUND_RATIO, _choose_remedy(binding), is_latency)


def _mention(unit: BusyUnit | None) -> Sentence:
    if unit is None:
        return NOTHING
    share = percent(unit.share_ratio)
    return say(" (the busiest unit, {name}, is at {share} of its peak)", name=unit.name, share=share)


def _describe_unit(unit: BusyUnit, binding: Roof | None, is_latency: bool) -> Finding:
    """A kernel that is far from all ceilings for what it moves and computes, and yet has filled a unit."""
    remedy = _UNIT_REMEDY if unit.is_memory else _PIPE_REMEDY
    nearest = NOTHING
    if binding is not None:
        share = percent(binding.share_ratio)
        nearest = say("The nearest ceiling, {name}, is only {share} used.", name=binding.name, share=share)
    return _describe_limit(unit, unit.nearness >= BOUND_RATIO, remedy, is_latency, nearest)


def _describe_limit(
    limit: Roof | BusyUnit, is_near: bool, remedy: Sentence, is_latency: bool, nearest: Sentence = NOTHING
) -> Finding:
    """How much of a ceiling or a unit is used, and how much faster the same work could run."""
    text = say(
        "{name}: {share} of the peak is used{sustained}; the same work can run {faster}.",
        name=limit.name,
        share=percent(limit.share_ratio),
        sustained=_describe_ceiling(limit.ceiling_ratio),
        faster=_limit_speed(limit.headroom),
    )
    return Finding(
        text=join([capitalize(text), nearest]),
        weight=Weight.HIGH if is_near else Weight.PLAIN,
        remedy=say("{change} Until then: {latency}", change=remedy, latency=_LATENCY_REMEDY)
        if is_latency and not is_near
        else remedy,
    )


def _limit_speed(headroom: float) -> Sentence:
    """To follow ``can run``.

    >>> _limit_speed(1.002), _limit_speed(1.27)
    ('no faster', 'at most 1.27× as fast')
    """
    return say("no faster") if headroom < NO_HEADROOM else say("at most {f} as fast", f=say_factor(headroom))


def _describe_ceiling(ceiling_ratio: float) -> Sentence:
    return NOTHING if ceiling_ratio == 1 else say(" (practical maximum {most})", most=percent(ceiling_ratio))


def _choose_remedy(roof: Roof) -> Sentence:
    if roof.level is not None:
        return _REMEDIES[roof.level]
    return _ISSUE_REMEDY if roof.name == ISSUE else _PEAK_REMEDY


def _find_side(roofline: Roofline) -> Iterator[Finding]:
    """Left or right of the ridge point of DRAM, for the type the kernel is about."""
    point = find_point(roofline, MemoryLevel.DRAM)
    if point is None or point.attainable_ops_per_s is None or not point.attainable_ops_per_s:
        return
    side = "left of the ridge point, the memory side"
    remedy = say(
        "More operations per byte (locality, narrower types) raise what is attainable; faster arithmetic does not."
    )
    if not point.is_memory_side:
        side = "right of the ridge point, where arithmetic is the lower ceiling"
        remedy = say("Moving fewer bytes of DRAM does not raise what is attainable.")
    yield Finding(
        text=say(
            "{kind} does {intensity} operations per byte of DRAM: {side}, at {share} of what is attainable there.",
            kind=point.kind,
            intensity=number(point.intensity),
            side=side,
            share=percent(point.achieved_ops_per_s / point.attainable_ops_per_s),
        ),
        remedy=remedy,
    )


def find_point(roofline: Roofline, level: MemoryLevel) -> Point | None:
    """The point of the type the kernel is about over a level; None when there is none."""
    return next((point for point in roofline.points if point.kind is roofline.dominant and point.level is level), None)


def _find_slow_type(roofline: Roofline, machine: Machine) -> Iterator[Finding]:
    slow, fast = machine.find_peak(OperationKind.FP64), machine.find_peak(OperationKind.FP32)
    used = next((roof for roof in roofline.roofs if roof.kind is OperationKind.FP64), None)
    if slow is None or fast is None or used is None or not slow.ops_per_cycle or not fast.ops_per_cycle:
        return
    times = fast.ops_per_cycle / slow.ops_per_cycle
    if times >= SLOW_TYPE_FACTOR and used.share_ratio >= LEANING_RATIO / 5:
        yield Finding(
            text=say(
                "FP64 runs at 1/{times} of the FP32 rate on {gpu}, and the kernel uses {share} of it.",
                times=count(times),
                gpu=machine.name,
                share=percent(used.share_ratio),
            ),
            weight=Weight.HIGH if used.share_ratio >= LEANING_RATIO else Weight.PLAIN,
            remedy=say(
                "Do in FP32 what need not be FP64 (literals without the suffix {f} promote to double): the point moves under a higher ceiling.",
                f=Code(text="f"),
            ),
        )


def _find_reuse(roofline: Roofline) -> Iterator[Finding]:
    """How many bytes each level serves for one of the next."""
    traffic = {one.level: one for one in roofline.traffic}
    for near, far in ((MemoryLevel.L1, MemoryLevel.L2), (MemoryLevel.L2, MemoryLevel.DRAM)):
        if near in traffic and far in traffic and traffic[near].is_exact and traffic[far].bytes > 0:
            moved = number(traffic[near].bytes / traffic[far].bytes, "byte")
            yield Finding(text=say("{near} moves {moved} per byte of {far}.", near=near, moved=moved, far=far))


def _find_clocks(machine: Machine) -> Iterator[Finding]:
    """Ceilings at other clocks than the kernel's are no measure of it."""
    if machine.clocks.basis is not ClockBasis.MEASURED:
        yield from (Finding(text=join([doubt])) for doubt in machine.doubts)
