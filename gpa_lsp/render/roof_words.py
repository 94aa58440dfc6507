"""How close a kernel is to its roofs, in words: a line for a hover, two words for a lens. Pure functions."""

from gpa_lsp.advice.model import BANDWIDTH_BOUND_RATIO, SM_UNIT, KernelAdvice, UnitUse
from gpa_lsp.basis.numbers import format_percent

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


def describe_roofs(advice: KernelAdvice) -> str:
    """The nearest roof, the others, and what that makes of the kernel; or which section of the profiler would tell."""
    if not advice.units:
        return "how close the kernel is to its roofs is unknown: collect the section SpeedOfLight"
    nearest, *others = sorted(advice.units, key=_measure_nearness, reverse=True)
    text = f"{_name(nearest)} at {format_percent(nearest.achieved_ratio)} of its peak"
    if nearest.ceiling_ratio < 1:
        text += f", of which it sustains about {format_percent(nearest.ceiling_ratio)}"
    if others:
        listed = ", ".join(f"{_name(unit)} {format_percent(unit.achieved_ratio)}" for unit in others)
        text += f"; {listed}"
    limiter = name_limiter(advice)
    return f"{text}: {limiter}" if limiter else text


def _measure_nearness(unit: UnitUse) -> float:
    return unit.achieved_ratio / unit.ceiling_ratio if unit.ceiling_ratio else 0.0


def _name(unit: UnitUse) -> str:
    return "the SMs' busiest unit" if unit.name == SM_UNIT else unit.name
