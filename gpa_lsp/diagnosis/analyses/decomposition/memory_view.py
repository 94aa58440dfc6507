"""Everything the answer about memory is made of: :class:`MemoryView`."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.latency_split import LatencySplit, split_latency
from gpa_lsp.diagnosis.analyses.decomposition.load_traffic import (
    L2Traffic,
    LoadTraffic,
    count_lines_per_request,
    list_load_traffic,
    read_l2_traffic,
)
from gpa_lsp.diagnosis.analyses.decomposition.load_waits import LoadWaits, UseWaits, count_waits, measure_load_waits
from gpa_lsp.diagnosis.analyses.decomposition.sample_scale import SampleScale, measure_sample_scale
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import MEMORY_UNITS, UnitUse, list_unit_use
from gpa_lsp.diagnosis.analyses.decomposition.unloaded_latency import (
    UnloadedLatency,
    average_l1_hits,
    estimate_lines,
    estimate_unloaded_latency,
)
from gpa_lsp.diagnosis.analyses.facts import KernelFacts

# From this part of its peak on a unit is taken to be what others queue for; sustained rates of DRAM are 0.8 to 0.95 of the peak
BUSY_RATIO = 0.6


class MemoryView(Struct, frozen=True, kw_only=True):
    """The memory behind a kernel's long-scoreboard stalls."""

    loads: tuple[LoadTraffic, ...]  # by kind, of the longest launch
    l2: L2Traffic | None  # None when not collected
    unloaded: UnloadedLatency | None  # mean latency without queues; None when a share or a latency is unknown
    scale: SampleScale | None  # what a sample stands for; None when unknown
    waits: LoadWaits | None  # None without samples or blame
    uses: UseWaits | None  # how long waits take, by samples or else by counters; None when neither tells
    split: LatencySplit | None  # None when the waits or the unloaded latency are unknown
    units: tuple[UnitUse, ...]  # on the way, the busiest first

    @property
    def busiest(self) -> UnitUse | None:
        """The busiest unit; None when none was measured."""
        return self.units[0] if self.units else None


def view_memory(facts: KernelFacts) -> MemoryView:
    """Everything about the memory behind a kernel's long-scoreboard stalls."""
    return facts.once(_view_memory)


def _view_memory(facts: KernelFacts) -> MemoryView:
    loads, l2 = list_load_traffic(facts), read_l2_traffic(facts)
    unloaded = _estimate(facts, loads, l2)
    scale = measure_sample_scale(facts)
    waits = measure_load_waits(facts, scale)
    uses = waits.uses if waits is not None and waits.uses is not None else count_waits(facts, loads)
    split = None
    if unloaded is not None and uses is not None:
        whole = 0 if waits is None else waits.samples
        operands = waits.operand_samples / whole if waits is not None and whole else 0.0
        unknown = waits.unknown_samples / whole if waits is not None and whole else 0.0
        split = split_latency(uses, unloaded, operands, unknown)
    return MemoryView(
        loads=loads,
        l2=l2,
        unloaded=unloaded,
        scale=scale,
        waits=waits,
        uses=uses,
        split=split,
        units=list_unit_use(facts, MEMORY_UNITS),
    )


def _estimate(facts: KernelFacts, loads: tuple[LoadTraffic, ...], l2: L2Traffic | None) -> UnloadedLatency | None:
    hits = average_l1_hits(loads)
    if hits is None or facts.architecture is None:
        return None
    lines = count_lines_per_request(facts) or estimate_lines(loads)
    return estimate_unloaded_latency(facts.architecture.hierarchy, hits, l2, lines)
