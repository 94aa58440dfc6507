"""How long a kernel's loads would take with nothing else going on: :class:`UnloadedLatency`, level by level."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from gpa_lsp.analyses.decomposition.load_traffic import L2Traffic, LoadTraffic
from gpa_lsp.arch.sections import MaybeNumber, MemoryHierarchy

_CYCLES_PER_FURTHER_LINE = 2
_SECTORS_PER_LINE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPart:
    """A leg of the way.

    Attributes:
        name: for people.
        cycles: of SM cycles, averaged over all loads: those that do not go this leg count 0.
        share_ratio: of the loads, those that go it, 0..1.
    """

    name: str
    cycles: float
    share_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadedLatency:
    """A mean over loads.

    Attributes:
        parts: from L1 outwards, then what many lines per request add.
        doubts: what makes it uncertain, a sentence each.
    """

    parts: tuple[LatencyPart, ...]
    doubts: tuple[str, ...] = ()

    @property
    def cycles(self) -> float:
        """Of all parts."""
        return sum(part.cycles for part in self.parts)


def estimate_unloaded_latency(
    hierarchy: MemoryHierarchy, l1_hit_ratio: float, l2: L2Traffic | None, lines_per_request: float | None
) -> UnloadedLatency | None:
    """The mean latency of a load that finds no queue.

    With h the part L1 answers, and n, f, d the parts of the rest that the near L2, the far L2 and DRAM answer:

        unloaded = h · L1 + (1 − h) · (n · near + f · far + d · DRAM) + 2 · (lines − 1)

    written as legs: everybody pays L1; who missed pays near − L1 more; of these, who missed there pays far − near or DRAM − near more. The last
    term is what each further 128-byte line of a request adds. A warp waits for its slowest sector, while the parts are of sectors: where the
    sectors of one request are answered by different levels, the true mean is longer.

    Args:
        hierarchy: of the architecture.
        l1_hit_ratio: h.
        l2: n, f and d; not needed when L1 answers everything.
        lines_per_request: 128-byte lines; None when unknown (the term is left out).

    Returns:
        None when a latency or a share that is needed is unknown.

    Source: DrGPU (Hao et al., ICPE 2023), latency of the memory hierarchy and 2 cycles per line; latencies by level from the tables.
    """
    l1 = hierarchy.l1_hit_cycles.value
    if l1 is None or (l2 is None and l1_hit_ratio < 1):
        return None
    doubts: list[str] = []
    parts = [LatencyPart(name="L1", cycles=l1, share_ratio=1.0)]
    missed = 1 - l1_hit_ratio
    if l2 is not None and missed > 0:
        legs = _list_legs(hierarchy, l2, missed, l1, doubts)
        if legs is None:
            return None
        parts += legs
    if lines_per_request is not None and lines_per_request > 1:
        further = _CYCLES_PER_FURTHER_LINE * (lines_per_request - 1)
        parts.append(LatencyPart(name="several lines per request", cycles=further, share_ratio=1.0))
    return UnloadedLatency(parts=tuple(parts), doubts=tuple(doubts))


def _list_legs(
    hierarchy: MemoryHierarchy, l2: L2Traffic, missed: float, l1: float, doubts: list[str]
) -> list[LatencyPart] | None:
    near = hierarchy.l2_near_cycles.value
    if near is None:
        return None
    legs = [LatencyPart(name="L1 to L2", cycles=missed * (near - l1), share_ratio=missed)]
    if l2.far_ratio > 0:
        far = _take(hierarchy.l2_far_cycles, near, "the far partition of L2", doubts)
        share = missed * l2.far_ratio
        legs.append(LatencyPart(name="to the far partition of L2", cycles=share * (far - near), share_ratio=share))
    if l2.dram_ratio > 0:
        dram = hierarchy.dram_tlb_warm_cycles.value
        if dram is None:
            return None
        share = missed * l2.dram_ratio
        legs.append(LatencyPart(name="L2 to DRAM", cycles=share * (dram - near), share_ratio=share))
    if not l2.is_of_reads:
        doubts.append("The hit rate of L2 is of all its traffic, stores included, which makes it look better")
    return legs


def _take(figure: MaybeNumber, otherwise: float, what: str, doubts: list[str]) -> float:
    if figure.value is not None:
        return figure.value
    doubts.append(f"The latency of {what} is not known for this architecture, and is taken as that of the near one")
    return otherwise


def average_l1_hits(loads: Sequence[LoadTraffic]) -> float | None:
    """The part of the sectors of all loads that L1 answered, weighted by requests; None when one kind's is unknown.

    >>> from gpa_lsp.analyses.decomposition.instruction_kinds import InstructionKind
    >>> load = LoadTraffic(kind=InstructionKind.GLOBAL_LOAD, requests=10, sectors_per_request=4, l1_hit_ratio=0.5)
    >>> average_l1_hits([load])
    0.5
    """
    known = [(load.requests, load.l1_hit_ratio) for load in loads if load.l1_hit_ratio is not None]
    total = sum(requests for requests, _ in known)
    if len(known) < len(loads) or total == 0:
        return None
    return sum(requests * ratio for requests, ratio in known) / total


def estimate_lines(loads: Sequence[LoadTraffic]) -> float | None:
    """128-byte lines per request at least: a line has four sectors; None when the sectors of one kind are unknown.

    >>> from gpa_lsp.analyses.decomposition.instruction_kinds import InstructionKind
    >>> estimate_lines([LoadTraffic(kind=InstructionKind.GLOBAL_LOAD, requests=10, sectors_per_request=16, l1_hit_ratio=0.5)])
    4.0
    """
    known = [
        (load.requests, ceil(load.sectors_per_request / _SECTORS_PER_LINE - 1e-9))
        for load in loads
        if load.sectors_per_request is not None
    ]
    total = sum(requests for requests, _ in known)
    if len(known) < len(loads) or total == 0:
        return None
    return sum(requests * max(1, lines) for requests, lines in known) / total
