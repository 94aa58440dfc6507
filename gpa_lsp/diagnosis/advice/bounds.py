"""What an estimate cannot exceed, and what sets it."""

from collections.abc import Collection, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, Advice, MemoryLevel, Speedup
from gpa_lsp.diagnosis.advice.reliefs import Relief, Reliefs
from gpa_lsp.diagnosis.advice.roofs import (
    describe_roof,
    describe_sm_use,
    find_level,
    list_sure_roofs,
    measure_levels,
    measure_sm_use,
)
from gpa_lsp.diagnosis.analyses.limiter.find import SHORT_LAUNCH_NS
from gpa_lsp.diagnosis.analyses.roofline_model import Roof
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, count, duration, factor, percent, say


class Bound(Struct, frozen=True, kw_only=True):
    """A speedup that cannot be exceeded."""

    speedup: float  # less than 1 counts as 1
    reason: Sentence  # what sets it, one clause


def find_roof(subject: Subject, relieved: Collection[MemoryLevel] = ()) -> tuple[Bound, ...]:
    """The bounds that the memory sets on a kernel with unchanged traffic; empty where the profile measures no level of it.

    One is by the profiler's percentages, one by the roofline, which knows other levels and other limits; the tighter one holds.
    """
    is_all_relieved = set(relieved) >= {MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1}
    spared = {*relieved, MemoryLevel.ANY} if is_all_relieved else {*relieved}
    uses = [use for use in measure_levels(subject) if use.level not in spared]
    use = min(uses, key=lambda one: one.largest_speedup, default=None)
    roofs = list_sure_roofs(subject.roofline)
    bounds = tuple(
        Bound(speedup=roof.headroom, reason=_leave(roof, "its traffic is"))
        for roof in roofs
        if roof.level and find_level(roof.level) not in spared
    )
    if use is None:
        return bounds
    reason = say(
        "{level} runs at {achieved} of peak (ceiling {ceiling}) and its traffic is unchanged",
        level=use.level,
        achieved=percent(use.achieved_ratio),
        ceiling=percent(use.ceiling_ratio),
    )
    return (Bound(speedup=use.largest_speedup, reason=reason), *bounds)


def find_sm_roof(subject: Subject) -> tuple[Bound, ...]:
    """The bounds that the SMs set on a kernel that executes the same instructions; empty where nothing of them was measured.

    One is that of the SMs' busiest unit, one that of the nearest of the roofline's peaks (issue included).
    """
    use = measure_sm_use(subject)
    return (
        *((Bound(speedup=1 / use, reason=describe_sm_use(use)),) if use else ()),
        *(
            Bound(speedup=roof.headroom, reason=_leave(roof, "its instructions are"))
            for roof in list_sure_roofs(subject.roofline)
            if roof.level is None
        ),
    )


def find_peak_roof(subject: Subject, reliefs: Reliefs) -> tuple[Bound, ...]:
    """The bounds that the peaks of arithmetic set on a remedy which leaves the threads' operations as they are; empty for one that saves some.

    Instructions that are saved take their integer arithmetic (addresses, counters) with them, so integers bound no remedy that saves any.
    """
    if Relief.OPERATIONS in reliefs.relieves:
        return ()
    return tuple(
        Bound(speedup=roof.headroom, reason=_leave(roof, "its operations are"))
        for roof in list_sure_roofs(subject.roofline)
        if roof.kind is not None and not (roof.kind.is_integer and Relief.ISSUES in reliefs.relieves)
    )


@lru_cache(maxsize=256)
def _leave(roof: Roof, what: str) -> Sentence:
    return say("{reached} and {what} unchanged", reached=describe_roof(roof), what=what)


def cut_speedup(values: Sequence[float], published: float, bounds: Sequence[Bound]) -> Speedup:
    """An estimate cut at the smallest of some bounds; no part of it is below 1.

    Args:
        bounds: at least one.

    >>> bounds = [Bound(speedup=1.8, reason=say("the ceiling")), Bound(speedup=3, reason=say("the grid"))]
    >>> found = cut_speedup((1.2, 1.5, 2.0), 1.5, bounds)
    >>> found.low, found.estimate, found.high, found.bound_reason
    (1.2, 1.5, 1.8, 'the ceiling')
    """
    bound = min(bounds, key=lambda one: one.speedup)
    most = max(1.0, bound.speedup)
    low, estimate, high = (min(max(1.0, value), most) for value in values)
    return Speedup(
        estimate=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        bound=most,
        bound_reason=bound.reason,
        uncapped=published,
    )


def explain_cut(speedup: Speedup) -> tuple[Sentence, ...]:
    """A clause about what a bound took away; empty where it took nothing.

    >>> explain_cut(cut_speedup((1, 3, 3), 3, [Bound(speedup=2, reason=say("the grid has no more blocks"))]))
    ('cut from 3.00× to 2.00×: the grid has no more blocks',)
    """
    is_cut = speedup.estimate >= speedup.bound * (1 - 1e-9)
    if not is_cut or speedup.uncapped <= speedup.estimate * (1 + 1e-9):
        return ()
    published, estimate = factor(speedup.uncapped), factor(speedup.estimate)
    return (
        say(
            "cut from {published} to {estimate}: {why}",
            published=published,
            estimate=estimate,
            why=speedup.bound_reason,
        ),
    )


# High over low of a range that is still a number: that of a debug build, the widest that measured edits gave (``optimizers/debug_build.py``)
_WIDEST = 4.0

_NOTHING_GAINED = 1.03  # Launches differ by as much without any change (:mod:`gpa_lsp.report.compare`)

_MUCH_GAINED = 2.0

_FEWEST_SAMPLES = 10  # Of a match: with fewer its share is off by a third or more, one standard deviation (1/√n)

# Of any launch, by the counter of its duration. Ours: empty kernels take one to two microseconds.
_LEAST_LAUNCH_NS = 1000.0

_SHORTENS_LAUNCHES = "kernel_fusion"


def doubt_gain(advice: Advice) -> Advice:
    """An advice whose numbers, and those of its regions, say so where they are not worth printing."""
    is_counted = not advice.by_counters and advice.matched_samples > 0
    regions = tuple(
        replace(one, speedup=_doubt(one.speedup, one.matched_samples if is_counted else None)) for one in advice.regions
    )
    return replace(
        advice, speedup=_doubt(advice.speedup, advice.matched_samples if is_counted else None), regions=regions
    )


def _doubt(speedup: Speedup, samples: float | None) -> Speedup:
    if samples is not None and samples < _FEWEST_SAMPLES:
        return replace(speedup, doubt=say("only {samples} match", samples=count(round(samples), "sample")))
    if speedup.low <= _NOTHING_GAINED and speedup.high >= _MUCH_GAINED:
        return replace(speedup, doubt=say("it may gain nothing or a multiple"))
    if speedup.high > _WIDEST * (1 + 1e-6) * speedup.low:
        return replace(speedup, doubt=say("the estimate spans more than a factor of {widest}", widest=count(_WIDEST)))
    return speedup


def bound_by_launch(subject: Subject, advice: Advice) -> Advice:
    """An advice on a launch of a few microseconds, within what it takes to begin and to end, which no change of the kernel shortens."""
    time_ns = subject.metric("gpu__time_duration.sum")
    if not time_ns or time_ns >= SHORT_LAUNCH_NS or advice.optimizer in (_SHORTENS_LAUNCHES, AT_THE_LIMIT):
        return advice
    busiest, elapsed = subject.metric("sm__cycles_active.max"), subject.metric("sm__cycles_elapsed.max")
    ends_ns = time_ns * max(0.0, 1 - busiest / elapsed) if busiest and elapsed else 0.0
    bound = max(1.0, time_ns / max(ends_ns, _LEAST_LAUNCH_NS))
    speedup = advice.speedup
    if bound >= speedup.bound:
        return advice
    low, estimate, high = (min(bound, one) for one in (speedup.low, speedup.estimate, speedup.high))
    reason = say("the launch takes {time} to begin and to end", time=duration(max(ends_ns, _LEAST_LAUNCH_NS)))
    return replace(
        advice,
        speedup=replace(speedup, low=low, estimate=estimate, high=high, bound=bound, bound_reason=reason),
        regions=tuple(replace(one, speedup=_cap(one.speedup, bound)) for one in advice.regions),
    )


def _cap(speedup: Speedup, bound: float) -> Speedup:
    low, estimate, high, most = (
        min(bound, one) for one in (speedup.low, speedup.estimate, speedup.high, speedup.bound)
    )
    return replace(speedup, low=low, estimate=estimate, high=high, bound=most)
