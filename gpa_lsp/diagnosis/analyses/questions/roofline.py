"""Question: how far is the kernel below its machine's ceilings, and what moves it?"""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Finding, Missing, Table, Weight, know_nothing, list_columns
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import BusyUnit, KernelRoofline, LimiterKind, Point, Roof, Roofline
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.roofline.counts import read_span, read_total
from gpa_lsp.diagnosis.analyses.roofline.operations import COUNTED
from gpa_lsp.diagnosis.analyses.roofline.place import ISSUE, TIME
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.numbers import Cell, Quantity
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
from gpa_lsp.gpu.device.model import ClockBasis, Clocks, Machine, MemoryLevel, OperationKind, RoofOrigin, explain_l2
from gpa_lsp.profile.model import Launch

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
    """Describe the distance to the nearest ceiling in one sentence. The limiter says what limits the kernel.

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
        # Ceilings at other clocks than the kernel's are no measure of it.
        *(Finding(text=join([one])) for one in machine.doubts if machine.clocks.basis is not ClockBasis.MEASURED),
    )


def say_factor(value: float) -> Part:
    """Write a speedup, up to a bound.

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
    near = binding.share_ratio / binding.ceiling_ratio
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
    """Describe the use of a ceiling or a unit, and the largest speedup of the same work."""
    text = say(
        "{name}: {share} of the peak is used{sustained}; the same work can run {faster}.",
        name=limit.name,
        share=percent(limit.share_ratio),
        sustained=NOTHING
        if limit.ceiling_ratio == 1
        else say(" (practical maximum {most})", most=percent(limit.ceiling_ratio)),
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
    """Words for a headroom, to follow ``can run``.

    >>> _limit_speed(1.002), _limit_speed(1.27)
    ('no faster', 'at most 1.27× as fast')
    """
    return say("no faster") if headroom < NO_HEADROOM else say("at most {f} as fast", f=say_factor(headroom))


def _choose_remedy(roof: Roof) -> Sentence:
    if roof.level is not None:
        return _REMEDIES[roof.level]
    return _ISSUE_REMEDY if roof.name == ISSUE else _PEAK_REMEDY


def _find_side(roofline: Roofline) -> Iterator[Finding]:
    """Left or right of the ridge point of DRAM, for the type the kernel is about."""
    points = (one for one in roofline.points if one.kind is roofline.dominant and one.level is MemoryLevel.DRAM)
    point = next(points, None)
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
    """Say how many bytes each level serves for one byte of the next."""
    traffic = {one.level: one for one in roofline.traffic}
    for near, far in ((MemoryLevel.L1, MemoryLevel.L2), (MemoryLevel.L2, MemoryLevel.DRAM)):
        if near in traffic and far in traffic and traffic[near].is_exact and traffic[far].bytes > 0:
            moved = number(traffic[near].bytes / traffic[far].bytes, "byte")
            yield Finding(text=say("{near} moves {moved} per byte of {far}.", near=near, moved=moved, far=far))


_NS_PER_S = 1e9

_ORIGINS = {
    RoofOrigin.COUNTERS: "counters of the report",
    RoofOrigin.DEVICE: "device and architecture",
    RoofOrigin.PRODUCT: "published figures",
    RoofOrigin.EMPIRICAL: "measured",
}
_BASES = {
    ClockBasis.MEASURED: "the clocks the longest launch ran at",
    ClockBasis.BASE: "the base clock",
    ClockBasis.BOOST: "the boost clock",
    ClockBasis.UNKNOWN: "unknown clocks",
}


def list_bars(roofline: Roofline) -> tuple[Bar, ...]:
    """One bar per ceiling, nearest first; the busiest unit before them where it is nearer than any."""
    unit = roofline.tighter_unit
    return tuple(
        Bar(
            label=limit.name,
            ratio=min(1.0, limit.share_ratio),
            ceiling_ratio=limit.ceiling_ratio,
            words=say("headroom {factor}", factor=say_factor(limit.headroom)),
        )
        for limit in (*(() if unit is None else (unit,)), *roofline.shown_roofs)
    )


def list_tables(kernel_roofline: KernelRoofline, shown: Roofline) -> tuple[Table, ...]:
    """All tables, in the order to be read."""
    machine = kernel_roofline.machine
    return (
        *_build_points(shown),
        *_build_operations(shown),
        *_build_traffic(shown),
        *_build_instruction_points(shown),
        *_build_launches(kernel_roofline),
        *_build_peaks(machine),
        *_build_bandwidths(machine),
        _build_clocks(machine),
    )


# By what one operation is called
_UNITS = {
    "FLOP": ("floating-point operations", Quantity.FLOPS_PER_S),
    "IOP": ("integer operations", Quantity.INTEGER_OPS_PER_S),
    "OP": ("special functions", Quantity.OPS_PER_S),
}


def _build_points(roofline: Roofline) -> Iterator[Table]:
    """Operations that are counted in another unit stand in a table of their own."""
    for operation, (words, unit) in _UNITS.items():
        points = [point for point in roofline.points if point.kind.operation == operation]
        if points:
            yield Table(
                title=f"Points: {words}",
                columns=list_columns(
                    f"Operations | Over | Per byte [operations/byte] | Achieved [{unit}] | Attainable [{unit}] | "
                    f"Of attainable [ratio] | Lower ceiling"
                ),
                rows=tuple(_list_cells(point) for point in points),
                note=say("Attainable is the lower of the peak and bandwidth × operations per byte."),
            )


def _list_cells(point: Point) -> tuple[Cell, ...]:
    attainable = point.attainable_ops_per_s
    side = None if point.is_memory_side is None else ("memory" if point.is_memory_side else "arithmetic")
    return (
        point.kind.value,
        point.level.value,
        point.intensity,
        point.achieved_ops_per_s,
        attainable,
        point.achieved_ops_per_s / attainable if attainable else None,
        side,
    )


def _build_operations(roofline: Roofline) -> Iterator[Table]:
    counted = [count for count in roofline.operations if count.operations > 0]
    if counted:
        yield Table(
            title="Operations",
            columns=list_columns("Type | Operations [count] | Counted by"),
            rows=tuple((count.kind.value, count.operations, _note(count.source, count.is_exact)) for count in counted),
            note=say(
                "A multiply-add is two; threads whose guard was false do not count. Integers: one per instruction that adds, shifts, compares or "
                "combines bits, addresses included, and two per multiply-add. Special functions are one each, and not part of the vendor's FLOP."
            ),
        )


def _build_traffic(roofline: Roofline) -> Iterator[Table]:
    if roofline.traffic:
        yield Table(
            title="Bytes",
            columns=list_columns("Level | Bytes [bytes] | Rate [bytes/s] | Counted by"),
            rows=tuple(
                (one.level.value, one.bytes, one.bytes / roofline.duration_s, _note(one.source, one.is_exact))
                for one in roofline.traffic
            ),
        )


def _note(source: str, is_exact: bool) -> str:
    return source if is_exact else f"{source} (not exact)"


def _build_instruction_points(roofline: Roofline) -> Iterator[Table]:
    if roofline.instruction_points:
        yield Table(
            title="Instruction roofline",
            columns=list_columns(
                "Over | Warp instructions per transaction [number] | Achieved [warp instructions/s] | "
                "Attainable [warp instructions/s] | Transaction [bytes]"
            ),
            rows=tuple(
                (one.level.value, one.intensity, one.achieved_per_s, one.attainable_per_s, one.transaction_bytes)
                for one in roofline.instruction_points
            ),
            note=say("A transaction is a sector, or a wavefront of shared memory."),
        )


def _build_launches(kernel_roofline: KernelRoofline) -> Iterator[Table]:
    if len(kernel_roofline.launches) < 2:
        return
    left_out = kernel_roofline.left_out
    yield Table(
        title="Launches",
        columns=list_columns("Launch [count] | Time [ns] | Nearest ceiling | Of its peak [ratio] | Operations"),
        rows=tuple(
            (
                launch.launch_index,
                launch.duration_s * _NS_PER_S,
                None if launch.binding is None else launch.binding.name,
                None if launch.binding is None else launch.binding.share_ratio,
                None if launch.dominant is None else launch.dominant.value,
            )
            for launch in kernel_roofline.launches
        ),
        note=join(
            [
                say("Each launch under the ceilings at its own clocks; all together under those of the longest."),
                say("{rest} not listed.", rest=count(left_out, "shorter launch")) if left_out else NOTHING,
            ]
        ),
    )


_INTEGER_NOTE = say(
    "The INT32 peak is of multiply-adds, two operations each, as the vendor counts it; additions and logic in one pipe reach half of it, which that "
    "pipe's own share shows."
)


def _build_peaks(machine: Machine) -> Iterator[Table]:
    for operation, (words, unit) in _UNITS.items():
        peaks = [peak for peak in machine.peaks if peak.kind.operation == operation]
        if peaks:
            yield Table(
                title=f"Peaks of {machine.name}: {words}",
                columns=list_columns(f"Type | Of all SMs, per cycle [number] | Per second [{unit}] | From | Source"),
                rows=tuple(
                    (
                        peak.kind.value,
                        peak.ops_per_cycle,
                        peak.ops_per_s,
                        _ORIGINS[peak.origin],
                        peak.citation,
                    )
                    for peak in peaks
                ),
                note=join([_describe_basis(machine.clocks), _INTEGER_NOTE if operation == "IOP" else NOTHING]),
            )


def _build_bandwidths(machine: Machine) -> Iterator[Table]:
    if machine.bandwidths:
        yield Table(
            title=f"Bandwidths of {machine.name}",
            columns=list_columns("Level | Bytes per cycle [number] | Clock [Hz] | Bandwidth [bytes/s] | From | Source"),
            rows=tuple(
                (
                    one.level.value,
                    one.bytes_per_cycle,
                    one.clock_hz,
                    one.bytes_per_s,
                    _ORIGINS[one.origin],
                    one.citation,
                )
                for one in machine.bandwidths
            ),
            note=join([_describe_basis(machine.clocks), explain_l2(machine)]),
        )


def _build_clocks(machine: Machine) -> Table:
    clocks = machine.clocks
    return Table(
        title=f"Clocks of {machine.name}",
        columns=list_columns("Clock | Frequency [Hz]"),
        rows=(("SM", clocks.sm_hz), ("L2", clocks.l2_hz), ("DRAM", clocks.dram_hz)),
        note=join((_describe_basis(clocks), say("From {source}.", source=clocks.source), *machine.doubts)),
    )


def _describe_basis(clocks: Clocks) -> Sentence:
    return say("At {basis}.", basis=_BASES[clocks.basis])


USED_RATIO = 0.1  # Below this share of its peak a type's mix does not matter

LOW_FUSED_RATIO = 0.8  # From this part of the peak on, the mix is good enough


# Between the limiter of the heaviest launch context and where the kernel as a whole stands
_TOGETHER = say("All launches together:")


def _answer(subject: Subject) -> Answer:
    kernel_roofline = subject.roofline
    if kernel_roofline is None or kernel_roofline.whole is None:
        return know_nothing(_explain_nothing(subject), _find_lacking(subject))
    whole = kernel_roofline.whole
    return Answer(
        summary=join(
            [find_limiter(subject).verdict, _TOGETHER if subject.main is not None else NOTHING, describe_place(whole)]
        ),
        findings=(
            *list_findings(
                whole, kernel_roofline.machine, is_latency=find_limiter(subject).kind is LimiterKind.LATENCY
            ),
            *(() if subject.longest is None else find_unfused(subject.longest, whole)),
        ),
        bars=list_bars(whole),
        tables=list_tables(kernel_roofline, whole),
        missing=whole.missing,
        is_known=bool(whole.roofs or whole.points),
    )


def _explain_nothing(subject: Subject) -> Sentence:
    if not subject.kernel.launches:
        return say("The kernel was not measured.")
    if subject.longest is None:
        return say("The profiler failed on every launch.")
    return say("Unknown: {what}.", what=_find_lacking(subject).what)


def _find_lacking(subject: Subject) -> Missing:
    longest = subject.longest
    if longest is None:
        return Missing(what="the distance to the ceilings", why=say("no launch has numbers"))
    if not longest.read_number("gpu__time_duration.sum"):
        return TIME
    return Missing(what="the ceilings of the GPU", why=say("neither counters nor tables give them"))


def find_unfused(launch: Launch, roofline: Roofline) -> Iterator[Finding]:
    """Types a kernel leans on whose instructions are seldom multiply-adds.

    An instruction that is no multiply-add does half of what its slot could: a share f of multiply-adds reaches (1 + f) / 2 of the peak.
    """
    span = read_span(launch)
    if span is None:
        return
    for roof in roofline.roofs:
        if roof.kind not in COUNTED or roof.share_ratio < USED_RATIO:
            continue
        counts = [read_total(launch, span, counters) for counters, _ in COUNTED[roof.kind]]
        add, multiply, fused = counts
        if add is None or multiply is None or fused is None:
            continue
        every = add.value + multiply.value + fused.value
        reachable = (every + fused.value) / (2 * every) if every else 1.0
        if reachable < LOW_FUSED_RATIO:
            yield Finding(
                text=say(
                    "{kind}: {fused} of the additions, multiplications and multiply-adds are multiply-adds, so at most {most} of the peak is "
                    "reachable.",
                    kind=roof.kind,
                    fused=percent(fused.value / every),
                    most=percent(reachable),
                ),
                remedy=say(
                    "Let the compiler fuse ({expression} in one expression, {option}), or regroup the arithmetic: fewer instructions do the same "
                    "work, and the point rises.",
                    expression=Code(text="a * b + c"),
                    option=Code(text="-fmad=true"),
                ),
            )


ANALYSIS = Analysis(name="roofline", title="Distance to the ceilings", order=10, answer=_answer)
