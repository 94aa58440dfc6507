"""How many issue slots were used, and how many could be: :class:`IssueSlots`."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.facts import KernelFacts

_SCHEDULERS = 4


class IssueSlots(Struct, frozen=True, kw_only=True):
    """The issue slots of one launch, one per scheduler and active cycle."""

    used_ratio: float  # of the slots, 0..1
    # of the elapsed cycles, those in which an SM held warps, on average; None when not collected
    active_ratio: float | None
    busiest_ratio: float | None  # how close the busiest unit of SMs or memory is to its peak; None when not collected
    busiest_name: str  # which of the two, for people
    source: str  # the counter, one clause

    @property
    def idle_ratio(self) -> float:
        """Slots without an instruction."""
        return 1 - self.used_ratio


def read_issue_slots(facts: KernelFacts) -> IssueSlots | None:
    """How many issue slots the longest launch used; None when nothing tells.

    ``smsp__issue_active.avg.per_cycle_active`` is the part of active cycles in which a scheduler issued. Without it: instructions per cycle over
    the schedulers of an SM (1 − IPC/4 are idle). Without that: warp-cycles per issue are known from samples, but not how many warps there were,
    so that nothing can be said.

    Source: DrGPU (Hao et al., ICPE 2023), idle share 1 − IPC/4, bounded by the highest speed of light.
    """
    used, source = _read_used(facts)
    if used is None:
        return None
    active, elapsed = facts.metric("sm__cycles_active.avg"), facts.metric("gpc__cycles_elapsed.max")
    units = [
        ("the SMs", facts.metric("sm__throughput.avg.pct_of_peak_sustained_elapsed")),
        ("the memory", facts.metric("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")),
    ]
    known = [(percent / 100, name) for name, percent in units if percent is not None]
    busiest, name = max(known, default=(None, ""))
    return IssueSlots(
        used_ratio=min(1.0, max(0.0, used)),
        active_ratio=min(1.0, active / elapsed) if active is not None and elapsed else None,
        busiest_ratio=busiest,
        busiest_name=name,
        source=source,
    )


def _read_used(facts: KernelFacts) -> tuple[float | None, str]:
    used = facts.metric("smsp__issue_active.avg.per_cycle_active")
    if used is not None:
        return used, "cycles in which a scheduler issued"
    schedulers = _SCHEDULERS
    if facts.architecture is not None:
        schedulers = facts.architecture.sm.sub_partitions_per_sm.value
    per_cycle = facts.metric("sm__inst_issued.avg.per_cycle_active", "sm__inst_executed.avg.per_cycle_active")
    return (None, "") if per_cycle is None else (per_cycle / schedulers, "instructions per cycle")
