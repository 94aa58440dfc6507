"""The verdict on a kernel's advice: what is worth doing now, what after the first remedy, what gains next to nothing, and what would not help."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import (
    AT_THE_LIMIT,
    DEBUG_BUILD,
    SM_UNIT,
    SMALL_SPEEDUP,
    UNPRICED,
    Advice,
    KernelAdvice,
    MemoryLevel,
    Refusal,
    Silence,
    SilenceStage,
    Standing,
    UnitUse,
)
from gpa_lsp.diagnosis.advice.optimizers import Optimizer
from gpa_lsp.diagnosis.advice.pricing import NO_GAIN
from gpa_lsp.diagnosis.analyses.model import Confidence, Limit, Limiter, LimiterKind
from gpa_lsp.foundation.prose import NOTHING, Sentence, begin_lower, drop_stop, percent, say

# Units that are full when too many bytes go through them → the level they are counted as
_BANDWIDTHS = {
    "dram": MemoryLevel.DRAM,
    "l2": MemoryLevel.L2,
    "l1": MemoryLevel.L1,
    "shared": MemoryLevel.L1,
    "texture": MemoryLevel.L1,
    "memory": MemoryLevel.ANY,
}


def describe_memory(limiter: Limiter) -> Sentence:
    """Describe the utilization of the memory level that is nearest to what it sustains, one clause; empty where none was measured."""
    nearest = next((limit for limit in limiter.limits if limit.unit in _BANDWIDTHS), None)
    if nearest is None:
        return NOTHING
    return say("{label} is {busy} busy", label=nearest.label, busy=percent(nearest.busy_ratio))


def is_memory_full(limiter: Limiter) -> bool:
    """Whether a level of the memory limits the kernel for sure, so that only less traffic helps."""
    is_sure = limiter.kind is LimiterKind.UNIT and limiter.confidence is Confidence.SURE
    return is_sure and limiter.unit in _BANDWIDTHS


def list_units(limiter: Limiter) -> tuple[UnitUse, ...]:
    """List the utilization of the memory levels, and then of the SMs' busiest unit."""
    found: dict[str, Limit] = {}
    for limit in limiter.limits:  # nearest to what it sustains first
        found.setdefault(_BANDWIDTHS.get(limit.unit, SM_UNIT), limit)
    return tuple(
        UnitUse(name=str(name), achieved_ratio=found[name].busy_ratio, ceiling_ratio=found[name].sustained_ratio)
        for name in (*MemoryLevel, SM_UNIT)
        if name in found
    )


def rank(limiter: Limiter, advice: Sequence[Advice], optimizers: Mapping[str, Optimizer]) -> tuple[Advice, ...]:
    """Rank advice, best first: by estimate, with advice that may gain next to nothing behind the rest.

    A debug build comes before all others, and changes outside the kernel come after all others.
    """

    def place(one: Advice) -> tuple[object, ...]:
        known = optimizers.get(one.optimizer)
        is_build = limiter.kind is LimiterKind.BUILD and one.optimizer == DEBUG_BUILD
        is_outside = known is not None and known.is_outside
        speedup = one.speedup
        return (
            not is_build,
            is_outside,
            speedup.low <= NO_GAIN,
            -speedup.estimate,
            -speedup.uncapped,
            -one.matched_samples,
            one.optimizer,
        )

    return tuple(sorted(advice, key=place))


def decide_standing(advice: KernelAdvice, limiter: Limiter | None, optimizers: Mapping[str, Optimizer]) -> KernelAdvice:
    """The same advice, with the standing of each piece and what would not help.

    Args:
        advice: ranked, best first.
        limiter: of the kernel; None where it is unknown.
        optimizers: by name. Advice of others stands on its own.
    """
    first: Advice | None = None
    decided = []
    for one in advice.advice:
        known = optimizers.get(one.optimizer)
        if one.optimizer == AT_THE_LIMIT:
            standing = Standing.NOTHING
        elif known is not None and known.is_outside:
            standing = Standing.OUTSIDE
        elif one.optimizer not in (*UNPRICED, DEBUG_BUILD) and one.speedup.estimate < SMALL_SPEEDUP:
            standing = Standing.SMALL
        elif first is not None and _comes_after(limiter, one, first):
            standing = Standing.THEN
        else:
            standing = Standing.NOW
        first = one if first is None and standing is Standing.NOW else first
        decided.append(replace(one, standing=standing))
    silences = advice.silences
    gaining = (one for one in decided if one.standing in (Standing.NOW, Standing.THEN))
    better = next((one for one in gaining if one.speedup.estimate >= SMALL_SPEEDUP), None)
    if better is not None and any(one.optimizer == AT_THE_LIMIT for one in decided):
        decided = [one for one in decided if one.optimizer != AT_THE_LIMIT]
        message = say("it has less to do by another suggestion: {title}", title=begin_lower(better.title))
        silences = (*silences, Silence(optimizer=AT_THE_LIMIT, stage=SilenceStage.NOT_MATCHED, message=message))
    refusals = _list_refusals(silences, limiter, optimizers)
    return replace(advice, advice=tuple(decided), silences=silences, refusals=refusals)


def _comes_after(limiter: Limiter | None, one: Advice, first: Advice) -> bool:
    """Whether a remedy pays only once the first one is done: another unit limits the kernel then, and this one relieves that."""
    if limiter is None:
        return False
    if limiter.kind is LimiterKind.BUILD:
        return True
    if limiter.next is None or limiter.next_factor is None or first.speedup.high < limiter.next_factor:
        return False
    return bool(first.relieves_limiter) and not one.relieves_limiter


def _list_refusals(
    silences: Sequence[Silence], limiter: Limiter | None, optimizers: Mapping[str, Optimizer]
) -> tuple[Refusal, ...]:
    unit = None if limiter is None else limiter.find(limiter.unit)
    busy = say("{label} would stay as busy", label="the limiter" if unit is None else begin_lower(unit.label))
    titles: dict[Sentence, list[str]] = {}
    for one in silences:
        if not one.contradicted_by and one.stage is not SilenceStage.GATED:
            continue
        if limiter is not None and limiter.sentence and drop_stop(limiter.sentence) in one.message:
            why = say("not what limits the kernel")
        else:
            why = busy if one.contradicted_by == "limiter" else begin_lower(drop_stop(one.message))
        known = optimizers.get(one.optimizer)
        title = one.optimizer.replace("_", " ") if known is None else known.title
        titles.setdefault(why, []).append(title)
    refusals = [Refusal(why=why, titles=tuple(names)) for why, names in titles.items()]
    return tuple(sorted(refusals, key=lambda one: -len(one.titles)))
