"""How close a launch is to what the memory sustains: the roof that a faster kernel with the same traffic would hit.

The profiler states each unit's throughput as a percentage of its peak, the unit's busiest part counting. No memory reaches 100 % of it for
long, so each level has a *ceiling* below its peak.
"""

from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from gpa_lsp.diagnosis.advice.estimators import bound_by_traffic
from gpa_lsp.diagnosis.advice.model import MemoryLevel
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline, Roof
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, percent, say
from gpa_lsp.gpu.device.model import MemoryLevel as MachineLevel

# Parts of the GPU as the limiter names them → levels as advice does
_UNITS = {"dram": MemoryLevel.DRAM, "l2": MemoryLevel.L2, "l1": MemoryLevel.L1, "memory": MemoryLevel.ANY}

_SM_METRIC = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


class LevelUse(Struct, frozen=True, kw_only=True):
    """How busy one level is."""

    level: MemoryLevel  # which
    achieved_ratio: float  # share of its peak, averaged over the launch
    ceiling_ratio: float  # share of its peak that it sustains

    @property
    def largest_speedup(self) -> float:
        """What a kernel with the same traffic can gain until this level is at its ceiling; at least 1."""
        return bound_by_traffic(self.achieved_ratio, self.ceiling_ratio)


def measure_levels(subject: Subject) -> tuple[LevelUse, ...]:
    """How busy each level of the memory is that the profile measures, DRAM first."""
    return subject.once(_measure_levels)


def measure_sm_use(subject: Subject) -> float | None:
    """Share of its peak that the busiest unit of the SMs has (issue, an arithmetic pipe, L1), 0..1; None when not collected."""
    percent = subject.metric(_SM_METRIC)
    return None if percent is None else percent / 100


def list_sure_roofs(roofline: KernelRoofline | None) -> tuple[Roof, ...]:
    """The roofs of a kernel's launches together that can be relied on, nearest first.

    Left out are those of which the machine's table only assumes the limit, and peaks of operations that were only estimated.
    """
    whole = None if roofline is None else roofline.whole
    if roofline is None or whole is None:
        return ()
    machine = roofline.machine
    guessed = {count.kind for count in whole.operations if not count.is_exact}
    assumed_kinds = {peak.kind for peak in machine.peaks if not peak.is_certain}
    assumed_levels = {bandwidth.level for bandwidth in machine.bandwidths if not bandwidth.is_certain}
    sure = (
        roof
        for roof in whole.roofs
        if roof.kind not in (guessed | assumed_kinds) and roof.level not in assumed_levels and roof.limit_per_s > 0
    )
    return tuple(sorted(sure, key=lambda roof: roof.headroom))


def find_level(level: MachineLevel) -> MemoryLevel:
    """A level of a machine as advice names it.

    >>> find_level(MachineLevel.DRAM)
    <MemoryLevel.DRAM: 'DRAM'>
    """
    return MemoryLevel(level.value)


@lru_cache(maxsize=256)
def describe_roof(roof: Roof) -> Sentence:
    """How close a kernel is to a roof, one clause.

    >>> describe_roof(Roof(name="FP32 peak", kind=None, level=None, limit_per_s=20e12, achieved_per_s=18e12))
    'the kernel reaches 90 % of the FP32 peak'
    """
    reached = say("the kernel reaches {share} of the {limit}", share=percent(roof.share_ratio), limit=roof.name)
    if roof.ceiling_ratio >= 1:
        return reached
    return say("{reached} (ceiling {ceiling})", reached=reached, ceiling=percent(roof.ceiling_ratio))


def describe_sm_use(ratio: float) -> Sentence:
    """How busy the SMs are, one clause.

    >>> describe_sm_use(0.7)
    'the busiest SM unit runs at 70 % of peak'
    """
    return say("the busiest SM unit runs at {share} of peak", share=percent(ratio))


def _measure_levels(subject: Subject) -> tuple[LevelUse, ...]:
    return tuple(_list_levels(subject))


def _list_levels(subject: Subject) -> Iterator[LevelUse]:
    for unit, level in _UNITS.items():
        limit = find_limiter(subject).find(unit)
        if limit is not None:
            yield LevelUse(level=level, achieved_ratio=limit.busy_ratio, ceiling_ratio=limit.sustained_ratio)
