"""One advice for a kernel from that of its launch contexts: each context's gain counts by its part of the time."""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import decide, list_optimizers
from gpa_lsp.diagnosis.advice.model import (
    LEAST_SPEEDUP,
    MOST_REGIONS,
    UNPRICED,
    Advice,
    Hotspot,
    KernelAdvice,
    Region,
    Silence,
    SilenceStage,
    Speedup,
)
from gpa_lsp.diagnosis.advice.pricing import doubt_range
from gpa_lsp.diagnosis.advice.verdict import rank
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.figures import Share, measure_share, sum_known
from gpa_lsp.foundation.prose import count, join, percent, say

# Where an optimizer could not look: its gain there is unknown, not none.
_UNSEEN = frozenset(
    {
        SilenceStage.NO_SAMPLES,
        SilenceStage.NO_CODE,
        SilenceStage.NOT_KNOWN,
        SilenceStage.NO_METRICS,
        SilenceStage.FAILED,
    }
)

Part = tuple[float, KernelAdvice]  # Share of a context of the kernel's time, and the advice on it

_Gain = tuple[float, Speedup]


def combine_advice(parts: Sequence[Part], subject: Subject) -> KernelAdvice:
    """The advice on a kernel as a whole, from that on its contexts that were judged, heaviest first."""
    limiter = find_limiter(subject)
    found, silences = [], []
    for name in list_optimizers():
        answer = _combine(name, parts)
        if isinstance(answer, Advice):
            found.append(count_shares(answer, subject))
        elif answer is not None:
            silences.append(answer)
    ranked = replace(parts[0][1], advice=rank(limiter, found, list_optimizers()), silences=tuple(silences))
    return decide(ranked, limiter)


def _combine(name: str, parts: Sequence[Part]) -> Advice | Silence | None:
    """Combine one optimizer's answers for all contexts; None where it was not asked."""
    given = [
        (number, ratio, one)
        for number, (ratio, advice) in enumerate(parts)
        for one in advice.advice
        if one.optimizer == name
    ]
    silent = [(ratio, one) for ratio, advice in parts for one in advice.silences if one.optimizer == name]
    if not given or (name in UNPRICED and silent):
        return silent[0][1] if silent else None
    if name in UNPRICED:
        return given[0][2]
    unseen = sum(ratio for ratio, one in silent if one.stage in _UNSEEN) + max(0.0, 1 - sum(one for one, _ in parts))
    gains = [(ratio, one) for _, ratio, one in given]
    main = max(gains, key=lambda one: (_measure_saving(one[0], one[1].speedup), one[0]))[1]
    speedup = _combine_gains([(ratio, one.speedup) for ratio, one in gains], unseen, main.speedup)
    if speedup.estimate < LEAST_SPEEDUP:
        saved = percent(1 - 1 / speedup.estimate)
        message = say("would save {saved} of the time of all launches, too little for a change", saved=saved)
        return Silence(optimizer=name, stage=SilenceStage.TOO_SMALL, message=message)
    is_partial = len(given) < len(parts)
    part, every = count(len(given)), count(len(parts), "launch context")
    weighed = say("gains are weighted by time; it applies to {part} of {every}", part=part, every=every)
    return replace(
        main,
        speedup=speedup,
        matched_samples=sum(one.matched_samples for _, one in gains),
        matched_latency_samples=sum_known(one.matched_latency_samples for _, one in gains),
        regions=_combine_regions(gains, unseen),
        reasons=(*main.reasons, weighed),
        contexts=tuple(number for number, _, _ in given) if is_partial else (),
    )


def _measure_saving(ratio: float, speedup: Speedup) -> float:
    """Part of the time of the kernel that a gain in one context saves."""
    return ratio * (1 - 1 / speedup.estimate)


def _combine_gains(gains: Sequence[_Gain], unseen: float, main: Speedup) -> Speedup:
    """Time before over time after, of all contexts together. What was not judged gains as much as the rest, and at least nothing."""
    estimate = _weigh(gains, lambda one: one.estimate, unseen)
    low = min(estimate, _weigh(gains, lambda one: one.low, 0.0))
    high = max(estimate, _weigh(gains, lambda one: one.high, unseen))
    return Speedup(
        estimate=estimate,
        low=low,
        high=high,
        bound=max(high, _weigh(gains, lambda one: one.bound, unseen)),
        bound_reason=join((main.bound_reason, say("weighted by the time of the launch contexts")), ", "),
        uncapped=_weigh(gains, lambda one: one.uncapped, unseen),
        doubt=doubt_range(low, high) or main.doubt,
    )


def _weigh(gains: Iterable[_Gain], read: Callable[[Speedup], float], unseen: float) -> float:
    """The speedup of the whole; the part that is unseen is left out of it."""
    seen = 1 - unseen
    left = seen - sum(ratio * (1 - 1 / read(speedup)) for ratio, speedup in gains)
    return seen / left if left > 1e-9 else float("inf")


def _combine_regions(given: Sequence[tuple[float, Advice]], unseen: float) -> tuple[Region, ...]:
    """Regions of one scope become one; those that gain most stay."""
    by_scope: dict[object, list[tuple[float, Region]]] = {}
    for ratio, advice in given:
        for region in advice.regions:
            by_scope.setdefault(region.scope, []).append((ratio, region))
    merged = [_combine_region(parts, unseen) for parts in by_scope.values()]
    return tuple(sorted(merged, key=lambda one: -one.speedup.estimate)[:MOST_REGIONS])


def _combine_region(parts: Sequence[tuple[float, Region]], unseen: float) -> Region:
    main = max(parts, key=lambda one: _measure_saving(one[0], one[1].speedup))[1]
    spots: dict[object, list[Hotspot]] = {}
    for _, region in parts:
        for spot in region.hotspots:
            spots.setdefault((spot.def_row, spot.use_row, spot.reason), []).append(spot)
    hotspots = sorted(map(_add_up, spots.values()), key=lambda spot: -spot.samples)
    return replace(
        main,
        matched_samples=sum(region.matched_samples for _, region in parts),
        matched_latency_samples=sum_known(region.matched_latency_samples for _, region in parts),
        speedup=_combine_gains([(ratio, region.speedup) for ratio, region in parts], unseen, main.speedup),
        hotspots=tuple(hotspots[:MOST_REGIONS]),
    )


def _add_up(spots: Sequence[Hotspot]) -> Hotspot:
    return replace(
        spots[0],
        samples=sum(spot.samples for spot in spots),
        latency_samples=sum_known(spot.latency_samples for spot in spots),
    )


def count_shares(advice: Advice, subject: Subject) -> Advice:
    """Shares of the kernel's samples in place of a context's."""

    def share_of(one: Advice | Region) -> Share:
        total = subject.total_samples
        return measure_share(min(round(one.matched_samples), total), total, subject.dropped_samples)

    regions = tuple(replace(one, share=share_of(one)) for one in advice.regions)
    share = share_of(advice)
    scope = regions[0].scope if regions else advice.scope
    return replace(advice, share=share, regions=regions, scope=scope)
