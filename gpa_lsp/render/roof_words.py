"""How close a kernel is to its ceilings, in words: a line for a hover, two words for a lens. Pure functions."""

from gpa_lsp.advice.model import BANDWIDTH_BOUND_RATIO, SM_UNIT, KernelAdvice, UnitUse
from gpa_lsp.basis.prose import Code, Sentence, join, percent, say

LATENCY_BOUND_RATIO = 0.6
"""Below this share of every peak neither the memory nor the SMs are what holds a kernel up. Source: Nsight Compute's rule for the bottleneck, which
calls a kernel latency-bound when both are below 60 %."""


def name_limiter(advice: KernelAdvice) -> str | None:
    """``memory-bound``, ``compute-bound`` or ``latency-bound``; None where the profile does not say, or nothing stands out.

    Latency-bound only where the SMs and the memory were both measured: what is not known may be the limit.
    """
    if advice.is_bandwidth_bound:
        return "memory-bound"
    sm_ratio = next((unit.achieved_ratio for unit in advice.units if unit.name == SM_UNIT), None)
    if sm_ratio is None:
        return None
    if sm_ratio >= BANDWIDTH_BOUND_RATIO:
        return "compute-bound"
    memory = [unit.achieved_ratio for unit in advice.units if unit.name != SM_UNIT]
    is_idle = bool(memory) and max(sm_ratio, *memory) < LATENCY_BOUND_RATIO
    return "latency-bound" if is_idle else None


def describe_roofs(advice: KernelAdvice) -> Sentence:
    """The nearest ceiling, the others, and what that makes of the kernel; or which section of the profiler would tell."""
    if not advice.units:
        option = Code(text="--section SpeedOfLight")
        return say("how close the kernel is to its ceilings is unknown: collect {option}", option=option)
    nearest, *others = sorted(advice.units, key=_measure_nearness, reverse=True)
    text = say("{unit} at {share} of its peak", unit=_name(nearest), share=percent(nearest.achieved_ratio))
    if nearest.ceiling_ratio < 1:
        text = say("{text} (about {share} can be sustained)", text=text, share=percent(nearest.ceiling_ratio))
    listed = join(
        (say("{unit} {share}", unit=_name(unit), share=percent(unit.achieved_ratio)) for unit in others), ", "
    )
    return join((join((text, listed), "; "), name_limiter(advice) or ""), ": ")


def _measure_nearness(unit: UnitUse) -> float:
    return unit.achieved_ratio / unit.ceiling_ratio if unit.ceiling_ratio else 0.0


def _name(unit: UnitUse) -> str:
    return "the SMs' busiest unit" if unit.name == SM_UNIT else unit.name
