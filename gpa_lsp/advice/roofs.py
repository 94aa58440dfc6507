"""How close a launch is to what the memory sustains: the roof that a faster kernel with the same traffic would hit.

The profiler states each unit's throughput as a percentage of its peak, the unit's busiest part counting. No memory reaches 100 % of it for
long, so each level has a *ceiling* below its peak.
"""

from collections.abc import Iterator

from gpa_lsp.advice.blamed_stalls import find_edges
from gpa_lsp.advice.estimators import bound_by_traffic
from gpa_lsp.advice.model import BANDWIDTH_BOUND_RATIO, SM_UNIT, MemoryLevel, UnitUse
from gpa_lsp.advice.residency import measure_active_part
from gpa_lsp.advice.subject import Subject
from gpa_lsp.analyses.roofline_model import KernelRoofline, Roof
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import Sentence, list_of, percent, say
from gpa_lsp.dataflow.instruction_kinds import find_kind
from gpa_lsp.dataflow.queues import MEMORY_KINDS, QUEUES
from gpa_lsp.device.model import HBM_CEILING, L1_CEILING, L2_CEILING, find_dram_ceiling
from gpa_lsp.device.model import MemoryLevel as MachineLevel

THROTTLE_SHARE = 0.2
"""From this share of all samples on, full queues are what holds the kernel up. Ours: of the kernels in published reports only one at 0.97 of the
L1's peak has more, 0.72; those at 0.74 to 0.81 of some level's peak have 0.16 to 0.19, and one at 0.25 has 0.10."""

_METRICS = {
    MemoryLevel.DRAM: (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__cycles_active.avg.pct_of_peak_sustained_elapsed",
    ),
    MemoryLevel.L2: (
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    ),
    MemoryLevel.L1: (
        "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
    ),
    MemoryLevel.ANY: ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",),
}
"""In percent of the peak; the first that a launch has is read. Source: metric names of real reports, 2020.3 to 2026.2."""

_SM_METRIC = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelUse:
    """How busy one level is.

    Attributes:
        level: which.
        achieved_ratio: share of its peak, averaged over the launch.
        ceiling_ratio: share of its peak that it sustains.
        metric: what says so.
    """

    level: MemoryLevel
    achieved_ratio: float
    ceiling_ratio: float
    metric: str

    @property
    def largest_speedup(self) -> float:
        """What a kernel with the same traffic can gain until this level is at its ceiling; at least 1."""
        return bound_by_traffic(self.achieved_ratio, self.ceiling_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoofs:
    """How busy the memory is in the longest launch.

    Attributes:
        levels: those the profile measures, DRAM first.
        binding: the one that a faster kernel would saturate first; None when none was measured.
        throttle_ratio: share of the kernel's samples in front of queues that memory instructions fill.
        is_bandwidth_bound: the memory is what limits the kernel already.
        words: one clause about it; empty when nothing was measured and nothing throttles.
    """

    levels: tuple[LevelUse, ...]
    binding: LevelUse | None
    throttle_ratio: float
    is_bandwidth_bound: bool
    words: Sentence

    @property
    def largest_speedup(self) -> float | None:
        """What a kernel with the same traffic can gain; None when no level was measured."""
        return None if self.binding is None else self.binding.largest_speedup

    def find(self, level: MemoryLevel) -> LevelUse | None:
        """One level; None when it was not measured."""
        return next((use for use in self.levels if use.level is level), None)


def measure_roofs(subject: Subject) -> MemoryRoofs:
    """How busy each level of the memory is."""
    return subject.once(_measure_roofs)


def _measure_roofs(subject: Subject) -> MemoryRoofs:
    levels = tuple(_measure_levels(subject))
    binding = min(levels, key=lambda use: use.largest_speedup, default=None)
    total = subject.total_samples
    throttle_ratio = _count_throttled(subject) / total if total else 0.0
    busiest = max(levels, key=lambda use: use.achieved_ratio, default=None)
    is_saturated = busiest is not None and busiest.achieved_ratio >= BANDWIDTH_BOUND_RATIO
    is_throttled = throttle_ratio >= THROTTLE_SHARE
    return MemoryRoofs(
        levels=levels,
        binding=binding,
        throttle_ratio=throttle_ratio,
        is_bandwidth_bound=is_saturated or is_throttled,
        words=_describe(
            busiest if is_saturated else binding, throttle_ratio, is_saturated=is_saturated, is_throttled=is_throttled
        ),
    )


def _count_throttled(subject: Subject) -> float:
    """Samples in front of queues that memory instructions fill; special functions, conversions and shuffles fill the same ones, but no memory."""
    is_memory = subject.rows.spread_by_mnemonic(lambda name: find_kind(name) in MEMORY_KINDS, unknown=0) > 0
    edges = find_edges(subject, is_memory, QUEUES)
    return float(subject.blame.edges.all_samples[edges].sum())


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


def list_units(subject: Subject, roofs: MemoryRoofs) -> tuple[UnitUse, ...]:
    """How busy the kernel's parts of the GPU are: the levels of the memory, then the SMs. No part of an SM has a ceiling below its peak."""
    units = [
        UnitUse(name=use.level.value, achieved_ratio=use.achieved_ratio, ceiling_ratio=use.ceiling_ratio)
        for use in roofs.levels
    ]
    sm_ratio = measure_sm_use(subject)
    if sm_ratio is not None:
        units.append(UnitUse(name=SM_UNIT, achieved_ratio=sm_ratio, ceiling_ratio=1.0))
    return tuple(units)


def _measure_levels(subject: Subject) -> Iterator[LevelUse]:
    ceilings = {
        MemoryLevel.DRAM: find_dram_ceiling(
            subject.kernel.device.attributes.get("device__attribute_global_memory_bus_width")
        ),
        MemoryLevel.L2: L2_CEILING,
        MemoryLevel.L1: L1_CEILING,
        MemoryLevel.ANY: HBM_CEILING,
    }
    is_any_known = False
    for level, metrics in _METRICS.items():
        name = next((name for name in metrics if subject.metric(name) is not None), None)
        # The throughput of all levels together says nothing new beside them.
        if name is None or (level is MemoryLevel.ANY and is_any_known):
            continue
        is_any_known = True
        ratio = (subject.metric(name) or 0.0) / 100
        if name.endswith("_active"):
            ratio *= measure_active_part(subject)
        yield LevelUse(level=level, achieved_ratio=ratio, ceiling_ratio=ceilings[level], metric=name)


def _describe(level: LevelUse | None, throttle_ratio: float, *, is_saturated: bool, is_throttled: bool) -> Sentence:
    clauses = []
    if level is not None:
        clauses.append(
            say(
                "{level} {runs} at {share} of peak",
                level=level.level,
                runs="already runs" if is_saturated else "runs",
                share=percent(level.achieved_ratio),
            )
        )
    if is_throttled:
        clauses.append(say("{share} of the samples are stalled on full memory queues", share=percent(throttle_ratio)))
    return list_of(clauses)
