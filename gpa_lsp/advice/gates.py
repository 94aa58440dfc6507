"""What the roofline says about advice: which can help at all, and which comes first.

Below a bandwidth roof more warps only queue for the bytes: advice that does nothing but make more warps resident is silent, with the reason. What
lessens the traffic of the full level comes first. At the peak of an arithmetic pipe, or of issue, what saves operations comes first. Below all
roofs latency and parallelism are what is missing, which is where GPA's estimates apply as they are, and the largest comes first.

Estimates themselves are cut at the roofs they do not move (:mod:`gpa_lsp.advice.bounds`).
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from gpa_lsp.advice.model import BANDWIDTH_BOUND_RATIO, Advice, MemoryLevel, Silence, SilenceStage
from gpa_lsp.advice.reliefs import OccupancyUse, Relief, find_reliefs
from gpa_lsp.advice.roofs import (
    describe_roof,
    describe_sm_use,
    find_level,
    list_sure_roofs,
    measure_roofs,
    measure_sm_use,
)
from gpa_lsp.advice.subject import Subject
from gpa_lsp.analyses.roofline_model import Roof
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import NOTHING, Sentence, factor, say

AT_ROOF_RATIO = 0.8
"""From this share of what a roof sustains on a kernel counts as being at it; the figure of Nsight Compute's rule for the bottleneck."""


class Limit(StrEnum):
    """What holds a kernel up; the values are names for people."""

    MEMORY = "memory-bound"
    COMPUTE = "compute-bound"
    NEITHER = "below its ceilings"
    """Latency, or too little parallel work."""
    UNKNOWN = "of unknown bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a kernel stands below its roofs.

    Attributes:
        limit: what holds it up.
        levels: of the memory that are at their roofs; empty where only the queues before it are full.
        relief: what lessens what holds it up; empty where nothing is at its roof.
        words: one clause with figures; empty where nothing is at its roof.
    """

    limit: Limit
    levels: frozenset[MemoryLevel] = frozenset()
    relief: frozenset[Relief] = frozenset()
    words: Sentence = NOTHING


def find_standing(subject: Subject) -> Standing:
    """Where a kernel stands, by its roofline and by the profiler's percentages; either suffices to be at a roof.

    The roofline counts the nearest of its roofs. The percentages, which are all there is without one, say first whether memory is at its roof.
    """
    roofs = list_sure_roofs(subject.roofline)
    nearest = roofs[0] if roofs and measure_nearness(roofs[0]) >= AT_ROOF_RATIO else None
    measured = measure_roofs(subject)
    busy = {use.level for use in measured.levels if use.achieved_ratio >= BANDWIDTH_BOUND_RATIO}
    near = {find_level(roof.level) for roof in roofs if roof.level and measure_nearness(roof) >= AT_ROOF_RATIO}
    is_memory = nearest is not None and nearest.level is not None
    if is_memory or measured.is_bandwidth_bound:
        words = measured.words if measured.is_bandwidth_bound or nearest is None else describe_roof(nearest)
        relief = frozenset({Relief.BYTES})
        return Standing(limit=Limit.MEMORY, levels=frozenset(busy | near), relief=relief, words=words)
    if nearest is not None:
        relief = frozenset({Relief.OPERATIONS} if nearest.kind is not None else {Relief.OPERATIONS, Relief.ISSUES})
        return Standing(limit=Limit.COMPUTE, relief=relief, words=describe_roof(nearest))
    sm_use = measure_sm_use(subject)
    if sm_use is not None and sm_use >= AT_ROOF_RATIO:
        relief = frozenset({Relief.OPERATIONS, Relief.ISSUES})
        return Standing(limit=Limit.COMPUTE, relief=relief, words=describe_sm_use(sm_use))
    is_memory_known = bool(measured.levels) or any(roof.level is not None for roof in roofs)
    is_compute_known = sm_use is not None or any(roof.level is None for roof in roofs)
    return Standing(limit=Limit.NEITHER if is_memory_known and is_compute_known else Limit.UNKNOWN)


def measure_nearness(roof: Roof) -> float:
    """Share of what a roof sustains; 1 is at the roof."""
    return roof.share_ratio / roof.ceiling_ratio if roof.ceiling_ratio > 0 else 0.0


def find_gate(standing: Standing, subject: Subject, advice: Advice) -> Silence | None:
    """Why a piece of advice cannot help where the kernel stands; None where it can."""
    if standing.limit is not Limit.MEMORY or not _only_raises_occupancy(subject, advice.optimizer):
        return None
    message = say(
        "{published} by the formula alone, but {limit}: more warps would only queue",
        published=factor(advice.speedup.uncapped),
        limit=standing.words,
    )
    return Silence(optimizer=advice.optimizer, stage=SilenceStage.GATED, message=message)


def rank_advice(standing: Standing, advice: Sequence[Advice]) -> tuple[Advice, ...]:
    """Best first: what relieves the roof that the kernel is at, and within that the largest estimate. Who is moved is told why.

    Below one roof remedies gain alike, and the published value still tells them apart.
    """
    by_estimate = sorted(advice, key=_rank)
    ranked = sorted(by_estimate, key=lambda one: not is_relief(standing, one.optimizer))
    places = {one.optimizer: place for place, one in enumerate(by_estimate)}
    return tuple(
        one if places[one.optimizer] == place else replace(one, rank_reason=_explain_rank(standing, one))
        for place, one in enumerate(ranked)
    )


def is_relief(standing: Standing, optimizer: str) -> bool:
    """Whether a remedy lessens what the kernel has most of."""
    reliefs = find_reliefs(optimizer)
    if standing.limit is Limit.MEMORY and standing.levels - {MemoryLevel.ANY}:
        return Relief.BYTES in reliefs.relieves and bool(reliefs.levels & standing.levels)
    return bool(reliefs.relieves & standing.relief)


def _rank(advice: Advice) -> tuple[float, float, float, str]:
    speedup = advice.speedup
    return -speedup.estimate, -speedup.uncapped, -advice.matched_samples, advice.optimizer


def _explain_rank(standing: Standing, advice: Advice) -> Sentence:
    what = "traffic" if standing.limit is Limit.MEMORY else "work"
    if is_relief(standing, advice.optimizer):
        return say(
            "ranked above larger estimates: {limit}, and this reduces that {what}", limit=standing.words, what=what
        )
    return say("ranked below what reduces the {what}: {limit}", what=what, limit=standing.words)


def _only_raises_occupancy(subject: Subject, optimizer: str) -> bool:
    use = find_reliefs(optimizer).occupancy
    launch = subject.launch
    has_full_grid = launch is not None and launch.sm_count is not None and launch.blocks >= launch.sm_count
    return use is OccupancyUse.ALWAYS or (use is OccupancyUse.FULL_GRID and has_full_grid)
