"""What the limiter says about a kernel's advice: whether a piece of it can help at all, how much at most, and which comes first.

* A unit that is nearly full: what leaves its work as it is gains nothing (more warps and earlier loads only queue for it), and is silent.
* A debug build: stalls overlap with code that an optimized build does not have, so that estimates from samples count half, on a logarithmic scale.
* Otherwise estimates stand, cut at what the units that keep their work allow.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import SM_UNIT, Advice, MemoryLevel, Silence, SilenceStage, Speedup, UnitUse
from gpa_lsp.diagnosis.advice.reliefs import OccupancyUse, Relief, Reliefs
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import NEAR_RATIO, Confidence, Limit, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Sentence, begin_lower, percent, say

# Of an estimate's way in a debug build. Two edits of -G builds of a matrix product on an RTX 4090 gained 1.18× and 1.15× where stalls alone promised
# 1.30× and 1.54×.
DEBUG_REACH = 0.5

# Of an estimate's way where a unit is nearly full and keeps its work: what else warps wait for overlaps with waiting for it. Ours.
KEPT_REACH = 0.5

# Part of the way from what a unit sustains to its peak that more warps go. One kernel: 1.086× of at most 1.099× (RTX 4080 Laptop, L2).
OCCUPANCY_REACH = 0.5

# Units of the memory → the levels whose traffic is theirs. The others are the SMs', which fewer operations or issues relieve.
_LEVELS = {
    "dram": frozenset({MemoryLevel.DRAM}),
    "l2": frozenset({MemoryLevel.L2}),
    "l2_slice": frozenset({MemoryLevel.L2}),
    "l1": frozenset({MemoryLevel.L1, MemoryLevel.SHARED}),
    "mio": frozenset({MemoryLevel.L1, MemoryLevel.SHARED}),
    "shared": frozenset({MemoryLevel.SHARED}),
    "texture": frozenset({MemoryLevel.L1}),
    "memory": frozenset(MemoryLevel),
}


# Units that are full when too many bytes go through them → the level they are counted as
_BANDWIDTHS = {
    "dram": MemoryLevel.DRAM,
    "l2": MemoryLevel.L2,
    "l1": MemoryLevel.L1,
    "shared": MemoryLevel.L1,
    "texture": MemoryLevel.L1,
    "memory": MemoryLevel.ANY,
}


# Labels of limiters of which no counter says how busy they are
_QUEUES = {
    "l2_slice": "One slice of L2",
    "mio": "The MIO queue",
    "l1": "The queue of L1",
    "texture": "The texture queue",
}


def list_bandwidths(limiter: Limiter) -> tuple[Limit, ...]:
    """The levels of the memory among the limits, nearest to what they sustain first."""
    return tuple(limit for limit in limiter.limits if limit.unit in _BANDWIDTHS)


def describe_memory(limiter: Limiter) -> Sentence:
    """How busy the level of the memory is that is nearest to what it sustains, one clause; empty where none was measured."""
    nearest = next(iter(list_bandwidths(limiter)), None)
    if nearest is None:
        return NOTHING
    return say("{label} is {busy} busy", label=nearest.label, busy=percent(nearest.busy_ratio))


def is_memory_full(limiter: Limiter) -> bool:
    """Whether a level of the memory limits the kernel for sure, so that only less traffic helps."""
    is_sure = limiter.kind is LimiterKind.UNIT and limiter.confidence is Confidence.SURE
    return is_sure and limiter.unit in _BANDWIDTHS


def list_units(limiter: Limiter) -> tuple[UnitUse, ...]:
    """How busy the levels of the memory are, and then the busiest unit of the SMs."""
    found: dict[str, Limit] = {}
    for limit in limiter.limits:  # nearest to what it sustains first
        found.setdefault(_BANDWIDTHS.get(limit.unit, SM_UNIT), limit)
    return tuple(
        UnitUse(name=str(name), achieved_ratio=found[name].busy_ratio, ceiling_ratio=found[name].sustained_ratio)
        for name in (*MemoryLevel, SM_UNIT)
        if name in found
    )


def relieves_unit(unit: str, reliefs: Reliefs) -> bool:
    """Whether a remedy takes work from a unit.

    >>> bytes_of_l2 = Reliefs(relieves=frozenset({Relief.BYTES}), levels=frozenset({MemoryLevel.L2}))
    >>> relieves_unit("l2", bytes_of_l2), relieves_unit("dram", bytes_of_l2), relieves_unit("issue", bytes_of_l2)
    (True, False, False)
    """
    if unit in _LEVELS:
        return Relief.BYTES in reliefs.relieves and bool(reliefs.levels & _LEVELS[unit])
    return bool({Relief.OPERATIONS, Relief.ISSUES} & reliefs.relieves)


def relieves_limiter(limiter: Limiter, reliefs: Reliefs) -> bool:
    """Whether a remedy takes work from what limits a kernel; in a debug build from its busiest unit."""
    if limiter.kind is LimiterKind.PARALLELISM:
        return Relief.PARALLELISM in reliefs.relieves
    unit = _find_unit(limiter)
    return unit is not None and relieves_unit(unit.unit, reliefs)


def forbids(limiter: Limiter, reliefs: Reliefs) -> bool:
    """Whether a nearly full unit keeps all its work, so that nothing is gained."""
    first = _find_unit(limiter)
    is_full = first is not None and first.nearness >= NEAR_RATIO and limiter.confidence is Confidence.SURE
    return limiter.kind is LimiterKind.UNIT and is_full and not relieves_unit(limiter.unit, reliefs)


def describe_unrelieved(limiter: Limiter, limit: Limit) -> Sentence:
    """Why a change that leaves a unit all its work gains no more."""
    which = "is the current limit" if limit.unit == limiter.unit else "becomes the next limit"
    return say(
        "{label}, at {busy}, {which}; this does not relieve it",
        label=limit.label,
        busy=percent(limit.busy_ratio),
        which=which,
    )


def hold_to_limiter(subject: Subject, advice: Advice, reliefs: Reliefs, *, is_priced: bool) -> Advice | Silence:
    """An estimate as the limiter leaves it, or why it cannot help."""
    limiter = find_limiter(subject)
    if limiter.kind is LimiterKind.BUILD:
        return advice if advice.optimizer == "debug_build" else replace(advice, speedup=_halve(advice.speedup))
    if is_priced or limiter.kind is not LimiterKind.UNIT or limiter.confidence is not Confidence.SURE:
        return advice
    first = _find_unit(limiter)
    is_relieved = relieves_limiter(limiter, reliefs) if advice.relieves_limiter is None else advice.relieves_limiter
    if first is None or is_relieved:
        return advice
    most = max(1.0, 1 / first.busy_ratio) if first.busy_ratio > 0 else 1.0
    bound = describe_unrelieved(limiter, first)
    if _only_raises_occupancy(subject, reliefs):
        expected = min(advice.speedup.estimate, most**OCCUPANCY_REACH)
        speedup = Speedup(
            estimate=expected, low=1.0, high=most, bound=most, bound_reason=bound, uncapped=advice.speedup.uncapped
        )
        return replace(advice, speedup=speedup)
    if first.nearness >= NEAR_RATIO:
        message = say("{why}, so it gains nothing", why=bound)
        return Silence(optimizer=advice.optimizer, stage=SilenceStage.GATED, message=message, contradicted_by="limiter")
    likely = max(1.0, min(advice.speedup.estimate, first.headroom))
    cut = likely**KEPT_REACH
    return replace(
        advice,
        speedup=replace(
            advice.speedup,
            estimate=cut,
            low=1.0,
            high=likely,
            bound=min(advice.speedup.bound, most) if advice.speedup.bound >= cut else most,
        ),
    )


def rank_by_limiter(limiter: Limiter, advice: Sequence[Advice], reliefs: Mapping[str, Reliefs]) -> tuple[Advice, ...]:
    """Best first: what relieves the limiter, and within that the largest estimate. Who is moved is told why."""
    unit = _find_unit(limiter)

    def comes_first(one: Advice) -> bool:
        known = one.relieves_limiter
        return relieves_limiter(limiter, reliefs[one.optimizer]) if known is None else known

    by_estimate = sorted(advice, key=_rank)
    build = "debug_build" if limiter.kind is LimiterKind.BUILD else ""
    ranked = sorted(by_estimate, key=lambda one: (one.optimizer != build, not comes_first(one)))
    places = {one.optimizer: place for place, one in enumerate(by_estimate)}
    return tuple(
        one
        if places[one.optimizer] == place
        else replace(one, rank_reason=_explain(unit, comes_first(one) or one.optimizer == build))
        for place, one in enumerate(ranked)
    )


def _find_unit(limiter: Limiter) -> Limit | None:
    """The unit whose relief comes first: the limiter's; in a debug build the busiest; none where nothing is busy."""
    if limiter.kind is LimiterKind.UNIT:
        own = limiter.find(limiter.unit)
        label = _QUEUES.get(limiter.unit, "It")
        return own or Limit(unit=limiter.unit, label=label, busy_ratio=limiter.busy_ratio or 0.0, sustained_ratio=1.0)
    return limiter.limits[0] if limiter.kind is LimiterKind.BUILD and limiter.limits else None


def _rank(advice: Advice) -> tuple[float, float, float, str]:
    speedup = advice.speedup
    return -speedup.estimate, -speedup.uncapped, -advice.matched_samples, advice.optimizer


def _explain(unit: Limit | None, comes_first: bool) -> Sentence:
    if unit is None:
        what = say("adds parallel work" if comes_first else "does not add parallel work")
    else:
        what = say(
            "relieves {label}, the current limit" if comes_first else "does not relieve {label}, the current limit",
            label=begin_lower(unit.label),
        )
    return say("ranked above larger estimates: {what}" if comes_first else "ranked lower: {what}", what=what)


def _halve(speedup: Speedup) -> Speedup:
    estimate = speedup.estimate**DEBUG_REACH
    return replace(speedup, estimate=estimate, low=min(speedup.low, estimate) ** DEBUG_REACH)


def _only_raises_occupancy(subject: Subject, reliefs: Reliefs) -> bool:
    use = reliefs.occupancy
    return use is OccupancyUse.ALWAYS or (use is OccupancyUse.FULL_GRID and subject.fills_sms)
