"""The verdict on a kernel's advice: what is worth doing now, what after the first remedy, what gains next to nothing, and what would not help."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.limiter_rules import relieves_unit
from gpa_lsp.diagnosis.advice.model import (
    AT_THE_LIMIT,
    SMALL_SPEEDUP,
    UNPRICED,
    Advice,
    KernelAdvice,
    Refusal,
    Silence,
    SilenceStage,
    Standing,
)
from gpa_lsp.diagnosis.advice.optimizers import Optimizer
from gpa_lsp.diagnosis.analyses.limiter.model import NEAR_RATIO, Limiter, LimiterKind
from gpa_lsp.foundation.prose import Sentence, begin_lower, drop_stop, say


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
        if one.optimizer == AT_THE_LIMIT:
            standing = Standing.NOTHING
        elif _is_small(limiter, one):
            standing = Standing.SMALL
        elif first is not None and _comes_after(limiter, optimizers.get(one.optimizer), first):
            standing = Standing.THEN
        else:
            standing = Standing.NOW
        first = one if first is None and standing is Standing.NOW else first
        decided.append(replace(one, standing=standing))
    return replace(advice, advice=tuple(decided), refusals=_list_refusals(advice.silences, limiter, optimizers))


def _is_small(limiter: Limiter | None, advice: Advice) -> bool:
    unit = None if limiter is None or limiter.kind is not LimiterKind.UNIT else limiter.find(limiter.unit)
    is_full = unit is not None and unit.nearness >= NEAR_RATIO
    return is_full and advice.optimizer not in UNPRICED and advice.speedup.estimate < SMALL_SPEEDUP


def _comes_after(limiter: Limiter | None, optimizer: Optimizer | None, first: Advice) -> bool:
    """Whether another unit limits the kernel once the first suggestion is done, and this remedy relieves that one."""
    if limiter is None:
        return False
    if limiter.kind is LimiterKind.BUILD:
        return True
    if limiter.next is None or limiter.next_factor is None or first.speedup.high < limiter.next_factor:
        return False
    if optimizer is None or (limiter.kind is LimiterKind.UNIT and relieves_unit(limiter.unit, optimizer.reliefs)):
        return False
    return relieves_unit(limiter.next.unit, optimizer.reliefs)


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
