"""How long a kernel's loads would take with nothing else going on: :class:`UnloadedLatency`, level by level."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.load_traffic import L2Traffic, LoadTraffic
from gpa_lsp.gpu.arch.sections import MaybeNumber, MemoryHierarchy

_CYCLES_PER_FURTHER_LINE = 2
_SECTORS_PER_LINE = 4


class LatencyPart(Struct, frozen=True, kw_only=True):
    """A leg of the way."""

    name: str  # for people
    cycles: float  # of SM cycles, averaged over all loads: those that do not go this leg count 0
    share_ratio: float  # of the loads, those that go it, 0..1


class UnloadedLatency(Struct, frozen=True, kw_only=True):
    """A mean over loads."""

    parts: tuple[LatencyPart, ...]  # from L1 outwards, then what many lines per request add
    doubts: tuple[str, ...] = ()  # what makes it uncertain, a clause each

    @property
    def cycles(self) -> float:
        """Of all parts."""
        return sum(part.cycles for part in self.parts)


def estimate_unloaded_latency(
    hierarchy: MemoryHierarchy, l1_hit_ratio: float, l2: L2Traffic | None, lines_per_request: float | None
) -> UnloadedLatency | None:
    """The mean latency of a load that finds no queue.

    A warp waits for the slowest line of its request. With h the part of sectors that L1 answers, n, f, d the parts of the rest that the near L2,
    the far L2 and DRAM answer, m = 1 − h, and k lines per request that are answered independently of each other, a request goes beyond L1
    with the probability p₁ = 1 − hᵏ, beyond the near L2 with p₂ = 1 − (1 − m·(f + d))ᵏ, and to DRAM with p₃ = 1 − (1 − m·d)ᵏ:

        unloaded = L1 + p₁ · (near − L1) + (p₂ − p₃) · (far − near) + p₃ · (DRAM − near) + 2 · (k − 1)

    The last term is what each further 128-byte line of a request adds. Sectors of one line are taken to be answered together, lines to be
    independent; lines that come and go together make it shorter, down to the same with p₁ = m, p₂ = m·(f + d), p₃ = m·d.

    Args:
        lines_per_request: k, 128-byte lines; None when unknown, and taken as 1.

    Returns:
        None when a latency or a share that is needed is unknown.

    Source: DrGPU (Hao et al., ICPE 2023), latency of the memory hierarchy and 2 cycles per line; latencies by level from the tables.
    """
    l1 = hierarchy.l1_hit_cycles.value
    if l1 is None or (l2 is None and l1_hit_ratio < 1):
        return None
    doubts: list[str] = []
    lines = 1.0 if lines_per_request is None else max(1.0, lines_per_request)
    parts = [LatencyPart(name="L1", cycles=l1, share_ratio=1.0)]
    if l2 is not None and l1_hit_ratio < 1:
        legs = _list_legs(hierarchy, l2, 1 - l1_hit_ratio, lines, doubts)
        if legs is None:
            return None
        parts += legs
    if lines > 1:
        further = _CYCLES_PER_FURTHER_LINE * (lines - 1)
        parts.append(LatencyPart(name="several lines per request", cycles=further, share_ratio=1.0))
    return UnloadedLatency(parts=tuple(parts), doubts=tuple(doubts))


def _list_legs(
    hierarchy: MemoryHierarchy, l2: L2Traffic, missed: float, lines: float, doubts: list[str]
) -> list[LatencyPart] | None:
    l1, near, dram = (
        hierarchy.l1_hit_cycles.value,
        hierarchy.l2_near_cycles.value,
        hierarchy.dram_tlb_warm_cycles.value,
    )
    if l1 is None or near is None or (dram is None and l2.dram_ratio > 0):
        return None
    beyond_l1 = reach_level(missed, lines)
    legs = [LatencyPart(name="L1 to L2", cycles=beyond_l1 * (near - l1), share_ratio=beyond_l1)]
    to_dram = reach_level(missed * l2.dram_ratio, lines)
    if l2.far_ratio > 0:
        far = _take(hierarchy.l2_far_cycles, near, "the far partition of L2", doubts)
        share = reach_level(missed * (l2.far_ratio + l2.dram_ratio), lines) - to_dram
        legs.append(LatencyPart(name="to the far partition of L2", cycles=share * (far - near), share_ratio=share))
    if dram is not None and to_dram > 0:
        legs.append(LatencyPart(name="L2 to DRAM", cycles=to_dram * (dram - near), share_ratio=to_dram))
    if not l2.is_of_reads:
        doubts.append("the L2 hit rate is of all its traffic, stores included, which makes it look better")
    return legs


def reach_level(sector_ratio: float, lines: float) -> float:
    """The part of requests of which at least one line goes to a level, when a part of all sectors does.

    >>> reach_level(0.5, 1.0), reach_level(0.5, 2.0), reach_level(1.0, 4.0)
    (0.5, 0.75, 1.0)
    """
    return float(1 - (1 - min(1.0, max(0.0, sector_ratio))) ** lines)


def _take(figure: MaybeNumber, otherwise: float, what: str, doubts: list[str]) -> float:
    if figure.value is not None:
        return figure.value
    doubts.append(f"the latency of {what} is unknown for this architecture, and taken as that of the near one")
    return otherwise


def average_l1_hits(loads: Sequence[LoadTraffic]) -> float | None:
    """The part of the sectors of all loads that L1 answered, weighted by requests; None when one kind's is unknown.

    >>> from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind
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

    >>> from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind
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
