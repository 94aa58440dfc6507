"""How long a kernel's loads would take with nothing else going on: :class:`UnloadedLatency`, level by level."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.instruction_rows import list_kinds
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.gpu.arch.sections import MaybeNumber, MemoryHierarchy
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind


class LoadCounters(Struct, frozen=True, kw_only=True):
    """Where one kind of load is counted."""

    kind: InstructionKind  # of load
    requests: str  # warp-level requests to L1TEX
    sectors: str  # 32-byte sectors looked up
    hits: str  # of these, answered by L1
    hit_rate: str  # the same in percent


def _list_counters(kind: InstructionKind, access: str, rate: str = "") -> LoadCounters:
    return LoadCounters(
        kind=kind,
        requests=f"l1tex__t_requests_{access}.sum",
        sectors=f"l1tex__t_sectors_{access}.sum",
        hits=f"l1tex__t_sectors_{access}_lookup_hit.sum",
        hit_rate=f"l1tex__t_sector_{rate or access}_hit_rate.pct",
    )


# Asynchronous copies (LDGSTS) are counted among the loads from global memory (on real reports the sectors of both are equal where a kernel has no
# other loads). Source: metric names of real reports, 2020.3 to 2026.2.
LOAD_COUNTERS = (
    _list_counters(InstructionKind.GLOBAL_LOAD, "pipe_lsu_mem_global_op_ld"),
    _list_counters(InstructionKind.LOCAL_LOAD, "pipe_lsu_mem_local_op_ld"),
    _list_counters(InstructionKind.TEXTURE, "pipe_tex_mem_texture", "pipe_tex_mem_texture_op_tex"),
    _list_counters(InstructionKind.SURFACE, "pipe_tex_mem_surface_op_ld"),
    _list_counters(InstructionKind.GLOBAL_ATOMIC, "pipe_lsu_mem_global_op_atom"),
)

_L2_LOOKUPS = (
    ("lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum", "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum"),
    ("lts__t_sectors_srcunit_tex_lookup_hit.sum", "lts__t_sectors_srcunit_tex_lookup_miss.sum"),
)
_L2_HIT_RATES = ("lts__t_sector_op_read_hit_rate.pct", "lts__t_sector_hit_rate.pct")
_L2_READS = "lts__t_sectors_srcunit_tex_op_read.sum"
_FABRIC = "lts__t_sectors_srcunit_ltcfabric.sum"
_DRAM_READS = ("dram__sectors_read.sum", "dram__sectors_op_read.sum")


class LoadTraffic(Struct, frozen=True, kw_only=True):
    """One kind of load."""

    kind: InstructionKind  # of load
    requests: float  # of warps, at least one
    sectors_per_request: float | None  # 32-byte sectors of one request
    l1_hit_ratio: float | None  # of its sectors, those L1 answered; None when not collected


class L2Traffic(Struct, frozen=True, kw_only=True):
    """Who answers what L1 did not; the three shares add up to 1."""

    near_ratio: float  # the L2 partition the SM is at, or the only one
    far_ratio: float  # the other partition, through the fabric between them; 0 on chips without one
    dram_ratio: float  # the memory behind L2 (system memory and other GPUs included)
    is_of_reads: bool  # False where only the hit rate of all traffic was collected, stores included, which mostly hit


def list_load_traffic(facts: KernelFacts) -> tuple[LoadTraffic, ...]:
    """The kinds of load that the longest launch did, in the order of :data:`LOAD_COUNTERS`; empty when nothing was counted."""
    found = []
    for counters in LOAD_COUNTERS:
        requests = facts.metric(counters.requests)
        if not requests:
            continue
        sectors, hits, rate = (
            facts.metric(counters.sectors),
            facts.metric(counters.hits),
            facts.metric(counters.hit_rate),
        )
        ratio = hits / sectors if hits is not None and sectors else None
        if ratio is None and rate is not None:
            ratio = rate / 100
        found.append(
            LoadTraffic(
                kind=counters.kind,
                requests=requests,
                sectors_per_request=None if sectors is None else sectors / requests,
                l1_hit_ratio=None if ratio is None else min(1.0, max(0.0, ratio)),
            )
        )
    return tuple(found)


def count_lines_per_request(facts: KernelFacts) -> float | None:
    """128-byte lines that one execution of a load from global memory asks L1 for, on average; None when not collected.

    Tag requests of an instruction over its executions, summed over all loads and launches.
    """
    lines = facts.rows.counter("global_tag_requests")
    if lines is None:
        return None
    executions = facts.rows.executions
    chosen = (list_kinds(facts) == KINDS.index(InstructionKind.GLOBAL_LOAD)) & (lines >= 0) & (executions > 0)
    executed = int(executions[chosen].sum())
    return int(lines[chosen].sum()) / executed if executed else None


def read_l2_traffic(facts: KernelFacts) -> L2Traffic | None:
    """Who answers the reads that reach L2; None when not collected.

    Near hits are lookups that hit over lookups of reads from L1TEX. What misses comes from DRAM, but on chips with two partitions, where a miss
    is first asked of the other one: there the part from DRAM is at most the sectors DRAM delivered over the sectors L1TEX read, and the other
    partition answers the rest. DRAM delivers more than was asked (its bursts are longer than a sector), so that this part is an upper bound.

    Source: Nsight Compute Profiling Guide, Memory Tables, L2 Cache; the split by partition is ours.
    """
    missed, of_reads = _read_miss_ratio(facts)
    if missed is None:
        return None
    dram = missed
    reads, delivered = facts.metric(_L2_READS), facts.metric(*_DRAM_READS)
    if facts.metric(_FABRIC) is not None and reads and delivered is not None:
        dram = min(missed, delivered / reads)
    return L2Traffic(
        near_ratio=1 - missed,
        far_ratio=missed - dram,
        dram_ratio=dram,
        is_of_reads=of_reads,
    )


def _read_miss_ratio(facts: KernelFacts) -> tuple[float | None, bool]:
    """Lookups that missed, 0..1, and whether they are of reads."""
    for number, (hit_name, miss_name) in enumerate(_L2_LOOKUPS):
        hits, misses = facts.metric(hit_name), facts.metric(miss_name)
        if hits is not None and misses is not None and hits + misses > 0:
            return misses / (hits + misses), number == 0
    rates = (facts.metric(name) for name in _L2_HIT_RATES)
    found = next(((number, rate) for number, rate in enumerate(rates) if rate is not None), None)
    if found is None:
        return None, False
    return 1 - min(1.0, max(0.0, found[1] / 100)), found[0] == 0


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
