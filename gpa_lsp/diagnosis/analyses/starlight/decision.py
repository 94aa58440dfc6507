"""Starlight's decision tree: what the roofline and a few ratios of the whole kernel say before any line is looked at.

Memory-bound: fewer bytes per operation. Compute-bound and far below the peak: first whether the SMs have enough warps and work, then whether the
warps are whole. The paper gives no thresholds; those here are ours, each with its reason.

Source: A. Zeni et al., "Starlight: a kernel optimizer for GPU processing", section 4.4; metrics as its public code reads them.
"""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.diagnosis.analyses.starlight.suggestions import (
    Bottleneck,
    Position,
    find_position,
    make_intensity,
    make_rate,
)
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.foundation.prose import Sentence, say

# Below this share of the attainable rate a kernel is far from its ceiling, as Nsight Compute's rule for the bottleneck has it
FAR_RATIO = 0.6

OCCUPANCY = "occupancy"  # The check that more warps are the remedy of

_WARP_THREADS = 32.0
_PERCENT = 100.0


class Check(Struct, frozen=True, kw_only=True):
    """One ratio of the whole kernel."""

    title: str  # what it is
    metric: str  # its aggregate
    scale: float  # the aggregate's value that is all of it
    least_ratio: float  # below this share it counts as poor
    row: Bottleneck  # of Table 1 that is then suggested from
    remedy: Sentence  # what then to do
    section: str  # of the profiler that collects it
    # where the metric itself is missing: active cycles, and behind them names of the cycles in all
    of_cycles: tuple[str, ...] = ()

    def is_poor(self, ratio: float | None) -> bool:
        """Measured, and below what is taken as enough."""
        return ratio is not None and ratio < self.least_ratio


# In the order of the tree
CHECKS = (
    Check(
        title=OCCUPANCY,
        metric="sm__warps_active.avg.pct_of_peak_sustained_active",
        scale=_PERCENT,
        least_ratio=0.5,  # ours: by GPA's Equation 9 more warps gain ever less
        row=Bottleneck.RESOURCES,
        remedy=say("Raise occupancy: more threads per block, or fewer registers and less shared memory."),
        section="Occupancy",
    ),
    Check(
        title="SM efficiency",
        metric="smsp__cycles_active.avg.pct_of_peak_sustained_elapsed",
        scale=_PERCENT,
        least_ratio=0.8,  # as Nsight Compute's rule for the tail
        row=Bottleneck.RESOURCES,
        remedy=say("Launch more blocks, of even length, so that no SM idles."),
        section="SpeedOfLight",
        of_cycles=("sm__cycles_active.avg", "sm__cycles_elapsed.max", "gpc__cycles_elapsed.max"),
    ),
    Check(
        title="branch efficiency",
        metric="smsp__sass_average_branch_targets_threads_uniform.pct",
        scale=_PERCENT,
        least_ratio=0.8,  # ours
        row=Bottleneck.SYNCHRONISATION,
        remedy=say("Keep the threads of a warp on one side of each branch."),
        section="SourceCounters",
    ),
    Check(
        title="threads predicated on per instruction",
        metric="smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
        scale=_WARP_THREADS,
        least_ratio=0.75,  # 24 of 32 threads, as Nsight Compute's rule for divergence
        row=Bottleneck.SYNCHRONISATION,
        remedy=say("Fill whole warps: sort or compact the work, and branch per warp or per block."),
        section="WarpStateStats",
    ),
)


class Decision(Struct, frozen=True, kw_only=True):
    """What the tree says of a kernel."""

    position: Position | None  # where it stands on the chart; None when unknown
    is_memory_bound: bool | None  # left of the ridge point; None when unknown
    is_far: bool | None  # far below what is attainable; None when unknown
    # the checks, asked in every case, each with the share that was measured, 0..1, None where it was not collected; only a compute-bound kernel far
    # from its ceiling acts on them
    results: tuple[tuple[Check, float | None], ...]
    verdict: Sentence  # a clause
    missing: tuple[Missing, ...]  # what the tree could not ask

    @property
    def asks_checks(self) -> bool:
        """The branch of the tree that acts on the checks."""
        return self.is_memory_bound is False and self.is_far is True

    @property
    def poor(self) -> tuple[Check, ...]:
        """Checks the tree acts on."""
        return tuple(check for check, ratio in self.results if check.is_poor(ratio)) if self.asks_checks else ()


def decide(subject: Subject) -> Decision:
    """Walk the tree."""
    position = find_position(subject.roofline)
    results = tuple((check, _measure(subject, check)) for check in CHECKS)
    missing = [lack(check.title, check.metric, section=check.section) for check, ratio in results if ratio is None]
    is_memory_bound = _is_memory_bound(subject, position)
    if position is None or is_memory_bound is None:
        why = say("no operations or no bytes of this kernel are known")
        missing.insert(0, Missing(what="the kernel's place on the roofline", why=why))
    is_far = _is_far(position)
    return Decision(
        position=position,
        is_memory_bound=is_memory_bound,
        is_far=is_far,
        results=results,
        verdict=_judge(position, is_memory_bound, is_far),
        missing=tuple(missing),
    )


def _measure(subject: Subject, check: Check) -> float | None:
    value = subject.metric(check.metric)
    if value is not None:
        return value / check.scale
    if not check.of_cycles:
        return None
    active, every = subject.metric(check.of_cycles[0]), subject.metric(*check.of_cycles[1:])
    return None if active is None or not every else min(1.0, active / every)


def _is_memory_bound(subject: Subject, position: Position | None) -> bool | None:
    """By the side of the ridge point; where no operation was counted, by the nearest ceiling."""
    if position is not None and position.point.is_memory_side is not None:
        return position.point.is_memory_side
    whole = None if subject.roofline is None else subject.roofline.whole
    return None if whole is None else whole.is_memory_bound


def _is_far(position: Position | None) -> bool | None:
    roof = None if position is None else position.roof_ops_per_s
    if position is None or roof is None:
        return None
    return position.point.achieved_ops_per_s < FAR_RATIO * roof


def _judge(position: Position | None, is_memory_bound: bool | None, is_far: bool | None) -> Sentence:
    if is_memory_bound is None:
        return say("on which side of the ridge point the kernel lies is unknown")
    side = "on the memory side" if is_memory_bound else "on the compute side"
    if position is None:
        return say("{side} by the nearest ceiling; no operation was counted", side=side)
    point, roof = position.point, position.roof_ops_per_s
    words = say(
        "{side}: {intensity} of {level} is {hand} of the ridge point",
        side=side,
        intensity=make_intensity(point.intensity),
        level=point.level,
        hand="left" if is_memory_bound else "right",
    )
    if roof is None:
        return words
    return say(
        "{words}, and {rate} is {distance} the {ceiling} attainable there",
        words=words,
        rate=make_rate(point.achieved_ops_per_s, position.kind),
        distance="far below" if is_far else "near",
        ceiling=make_rate(roof, position.kind),
    )
