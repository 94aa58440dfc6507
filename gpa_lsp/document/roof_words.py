"""How close a kernel is to its ceilings, in words. What limits it is for :mod:`gpa_lsp.diagnosis.analyses.limiter` to say."""

from gpa_lsp.diagnosis.advice.model import SM_UNIT, KernelAdvice, UnitUse
from gpa_lsp.foundation.prose import Code, Sentence, join, percent, say


def describe_roofs(advice: KernelAdvice) -> Sentence:
    """The nearest ceiling and the others; or which section of the profiler would tell."""
    if not advice.units:
        option = Code(text="--section SpeedOfLight")
        return say("how close the kernel is to its ceilings is unknown: collect {option}", option=option)
    nearest, *others = sorted(advice.units, key=_measure_nearness, reverse=True)
    text = say("{unit} at {share} of its peak", unit=_name(nearest), share=percent(nearest.achieved_ratio))
    if nearest.ceiling_ratio < 1:
        text = say("{text} (practical maximum {share})", text=text, share=percent(nearest.ceiling_ratio))
    listed = join(
        (say("{unit} {share}", unit=_name(unit), share=percent(unit.achieved_ratio)) for unit in others), ", "
    )
    return join((text, listed), "; ")


def _measure_nearness(unit: UnitUse) -> float:
    return unit.achieved_ratio / unit.ceiling_ratio if unit.ceiling_ratio else 0.0


def _name(unit: UnitUse) -> str:
    return "the SMs' busiest unit" if unit.name == SM_UNIT else unit.name
