"""Decide what limits a kernel: the one place that does.

The time of a launch is split three ways: the part its busiest unit needs at the rate such a unit sustains, the part in which SMs have no work, and
the rest, in which SMs have warps and none of them keeps a unit busy: latency. The largest part is the limiter, but for a unit that is nearly
full: then nothing else matters before it has less to do.
"""

from collections.abc import Sequence

from gpa_lsp.analyses.balance.units import find_unit, measure_units
from gpa_lsp.analyses.balance.waves import Waves, find_waves
from gpa_lsp.analyses.decomposition.queue_pressure import list_queue_use
from gpa_lsp.analyses.decomposition.row_kinds import list_kinds
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.limiter.model import Confidence, Limit, Limiter, LimiterKind
from gpa_lsp.analyses.limiter.units import find_serial_slice, list_limits, measure_idle
from gpa_lsp.basis.prose import NOTHING, Sentence, begin_lower, count, duration, percent, say

FULL_RATIO = 0.8
"""From this share of what a unit sustains on it is the limiter, whatever else is so: the bound of Nsight Compute's rule for the bottleneck."""

BUSY_RATIO = 0.6
"""From here on it is the likely one, if SMs have work and no larger part of the time is latency; below it nothing is busy (the same rule)."""

IDLE_RATIO = 0.3
"""SM time without work that is worth being called the limiter. Ours."""

SHORT_LAUNCH_NS = 10_000.0
"""A launch takes some microseconds to begin and to end whatever it does (2 to 4 in published reports of kernels of one block)."""

METRICS = (
    "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
)
"""What tells how busy the units are."""

FULL_QUEUE_RATIO = 0.3
"""Of all samples, before a queue that no counter shows to be full. Ours."""

_QUEUES = {
    "lg_throttle": ("l1", "The queue of L1 for global and local memory"),
    "mio_throttle": ("mio", "The MIO queue"),
    "tex_throttle": ("texture", "The texture queue"),
}

_DERIVED = " by the roofline"
"""Beside a unit whose use follows from what the kernel achieves of its peak."""

_MEMORY = frozenset({"dram", "l2", "l1"})

_RUNNING = ("selected", "not_selected")


def find_limiter(facts: KernelFacts) -> Limiter:
    """What limits a kernel; of several launch contexts the heaviest."""
    return find_limiter(facts.main) if facts.main is not None else facts.once(_find_limiter)


def _find_limiter(facts: KernelFacts) -> Limiter:
    limits = list_limits(facts)
    cubin = facts.kernel.cubin
    if cubin is not None and facts.kernel.mangled_name in cubin.debug_functions:
        return _blame_build(limits)
    slice_ratio = find_serial_slice(facts)
    if slice_ratio is not None:
        return _blame_slice(limits, slice_ratio)
    idle = measure_idle(facts)
    if not limits or all(limit.unit == "sm" for limit in limits):
        return _know_nothing(limits)
    first = limits[0]
    if (
        all(limit.is_derived for limit in limits)
        and first.nearness < BUSY_RATIO
        and not _MEMORY & {one.unit for one in limits}
    ):
        return _know_nothing(limits)  # a pipe that is not busy says nothing of the memory
    active = 1.0 if idle is None else 1.0 - idle
    if first.nearness >= FULL_RATIO:
        return _blame_unit(limits, Confidence.LIKELY if first.is_derived else Confidence.SURE)
    latency = max(0.0, active - first.nearness)
    if idle is not None and idle >= IDLE_RATIO and idle >= latency:
        return _blame_parallelism(facts, limits, idle)
    if first.nearness >= BUSY_RATIO * active and first.nearness >= latency and first.nearness >= BUSY_RATIO:
        return _blame_unit(limits, Confidence.LIKELY)
    return _blame_latency(facts, limits)


def _find_next(limits: Sequence[Limit], now: float) -> tuple[Limit | None, float | None]:
    """The first of some limits, and the factor to it from what is used of the limiter now."""
    if not limits or limits[0].nearness <= 0:
        return None, None
    return limits[0], max(1.0, now / limits[0].nearness)


def _blame_build(limits: tuple[Limit, ...]) -> Limiter:
    return Limiter(
        kind=LimiterKind.BUILD,
        unit="debug",
        busy_ratio=None,
        next=None,
        next_factor=None,
        confidence=Confidence.SURE,
        sentence=say(
            "Debug build: compiled with -G, so nothing is optimized. Rebuild without -G first; other figures do not apply."
        ),
        limits=limits,
    )


def _blame_slice(limits: tuple[Limit, ...], slice_ratio: float) -> Limiter:
    following, factor = _find_next(limits, 1.0)
    return Limiter(
        kind=LimiterKind.UNIT,
        unit="l2_slice",
        busy_ratio=slice_ratio,
        next=following,
        next_factor=factor,
        confidence=Confidence.SURE,
        sentence=say(
            "Atomics queue at one slice of L2: it is {busy} busy, with the atomics to a few addresses.",
            busy=percent(slice_ratio),
        ),
        limits=limits,
    )


def _blame_unit(limits: tuple[Limit, ...], confidence: Confidence) -> Limiter:
    first = limits[0]
    following, factor = _find_next(limits[1:], first.nearness)
    is_below = first.busy_ratio < first.sustained_ratio < 1
    most = say(" (practical maximum {most})", most=percent(first.sustained_ratio)) if is_below else NOTHING
    return Limiter(
        kind=LimiterKind.UNIT,
        unit=first.unit,
        busy_ratio=first.busy_ratio,
        next=following,
        next_factor=factor,
        confidence=confidence,
        sentence=say(
            "Limited by {label}: {busy} of peak{by}{most}.",
            label=begin_lower(first.label),
            busy=percent(first.busy_ratio),
            by="," * first.is_derived + _DERIVED * first.is_derived,
            most=most,
        ),
        limits=limits,
    )


def _blame_parallelism(facts: KernelFacts, limits: tuple[Limit, ...], idle: float) -> Limiter:
    unit, why = _explain_idle(facts, idle)
    following, factor = _find_next(limits, 1.0 - idle)
    return Limiter(
        kind=LimiterKind.PARALLELISM,
        unit=unit,
        busy_ratio=idle,
        next=following,
        next_factor=factor,
        confidence=Confidence.SURE if idle >= 0.5 else Confidence.LIKELY,
        sentence=say("SMs have no work for {idle} of the time: {why}.", idle=percent(idle), why=why),
        limits=limits,
    )


def _explain_idle(facts: KernelFacts, idle: float) -> tuple[str, Sentence]:
    """Short name and clause of what leaves SMs without work: the largest of grid, tail or imbalance, and launch."""
    launch = facts.longest
    waves = None if launch is None else find_waves(facts, launch)
    sms = find_unit(measure_units(facts), "sm__cycles_active.avg")
    elapsed = facts.metric("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")
    ends = max(0.0, 1 - sms.most / elapsed) if sms is not None and elapsed else None
    if waves is not None and waves.idle_sms / waves.sm_count >= idle / 2:
        return "grid", say("{blocks} on {sms}", blocks=count(waves.blocks, "block"), sms=count(waves.sm_count, "SM"))
    time_ns = facts.metric("gpu__time_duration.sum")
    if (ends is not None and ends >= idle / 2) or (sms is None and time_ns is not None and time_ns < SHORT_LAUNCH_NS):
        taken = (
            say("the launch takes {time}", time=duration(time_ns))
            if time_ns is not None
            else say("the launch is short")
        )
        return "launch", say("{taken}, much of it to begin and to end", taken=taken)
    if waves is not None and waves.rounds <= 4 and waves.lost_by_waves_ratio >= idle / 2:
        return "tail", _describe_tail(waves)
    return "imbalance", say("some SMs are done long before the others")


def _describe_tail(waves: Waves) -> Sentence:
    last = say("{last} of {capacity}", last=count(waves.last_blocks), capacity=count(waves.capacity_blocks, "block"))
    return say("the last wave has {last}", last=last)


def _blame_queue(facts: KernelFacts, limits: tuple[Limit, ...], reason: str, ratio: float) -> Limiter:
    """No counter of the unit is high, but warps queue for it: each access takes it several passes that nothing counts."""
    unit, label = _QUEUES[reason]
    use = list_queue_use(facts, list_kinds(facts), reason)
    most = f", mostly {use[0].kind}" if use else ""
    following, factor = _find_next([limit for limit in limits if limit.unit != unit], 1.0)
    return Limiter(
        kind=LimiterKind.UNIT,
        unit=unit,
        busy_ratio=ratio,
        next=following,
        next_factor=factor,
        confidence=Confidence.LIKELY,
        sentence=say(
            "{label} is full: {share} of the samples are stalled on {reason}{most}.",
            label=label,
            share=percent(ratio),
            reason=reason,
            most=most,
        ),
        limits=limits,
    )


def _blame_latency(facts: KernelFacts, limits: tuple[Limit, ...]) -> Limiter:
    first = limits[0]
    total = facts.kernel.total_samples
    counts = {reason: facts.rows.count_reason(reason) for reason in facts.kernel.reasons if reason not in _RUNNING}
    reason = max(counts, key=lambda name: (counts[name], name), default=None) if total else None
    following, factor = _find_next(limits, 1.0)
    is_derived = all(limit.is_derived for limit in limits)
    if reason in _QUEUES and counts[reason] >= FULL_QUEUE_RATIO * total:
        return _blame_queue(facts, limits, reason, counts[reason] / total)
    if reason is None or not counts[reason]:
        stalls, unit, ratio = NOTHING, "", None
    else:
        unit, ratio = reason, counts[reason] / total
        stalls = say("; {share} of the samples are stalled on {reason}", share=percent(ratio), reason=reason)
    return Limiter(
        kind=LimiterKind.LATENCY,
        unit=unit,
        busy_ratio=ratio,
        next=following,
        next_factor=factor,
        confidence=Confidence.SURE if first.nearness < BUSY_RATIO and reason and not is_derived else Confidence.LIKELY,
        sentence=say(
            "Latency: no unit is{known} more than {busy} busy ({label}{by}){stalls}.",
            known=" known to be" * is_derived,
            busy=percent(first.busy_ratio),
            label=first.label.removeprefix("The "),
            by="," * first.is_derived + _DERIVED * first.is_derived,
            stalls=stalls,
        ),
        limits=limits,
    )


def _know_nothing(limits: tuple[Limit, ...]) -> Limiter:
    return Limiter(
        kind=LimiterKind.UNKNOWN,
        unit="",
        busy_ratio=None,
        next=None,
        next_factor=None,
        confidence=Confidence.UNKNOWN,
        sentence=say("Unknown: the utilization of the units was not collected."),
        missing=METRICS,
        limits=limits,
    )
