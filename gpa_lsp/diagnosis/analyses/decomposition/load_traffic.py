"""What loads asked for and which level of the memory answered: counters of the longest launch, by kind of load."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.row_kinds import list_kinds
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind


class LoadCounters(Struct, frozen=True, kw_only=True):
    """Where one kind of load is counted."""

    kind: InstructionKind  # of load
    requests: str  # warp-level requests to L1TEX
    sectors: str  # 32-byte sectors looked up
    hits: str  # of these, answered by L1; empty where L1 never answers
    hit_rate: str  # the same in percent


# Asynchronous copies (LDGSTS) are counted among the loads from global memory (on real reports the sectors of both are equal where a kernel has no
# other loads). Source: metric names of real reports, 2020.3 to 2026.2.
LOAD_COUNTERS = (
    LoadCounters(
        kind=InstructionKind.GLOBAL_LOAD,
        requests="l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        sectors="l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        hits="l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
        hit_rate="l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
    ),
    LoadCounters(
        kind=InstructionKind.LOCAL_LOAD,
        requests="l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
        sectors="l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
        hits="l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_hit.sum",
        hit_rate="l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct",
    ),
    LoadCounters(
        kind=InstructionKind.TEXTURE,
        requests="l1tex__t_requests_pipe_tex_mem_texture.sum",
        sectors="l1tex__t_sectors_pipe_tex_mem_texture.sum",
        hits="l1tex__t_sectors_pipe_tex_mem_texture_lookup_hit.sum",
        hit_rate="l1tex__t_sector_pipe_tex_mem_texture_op_tex_hit_rate.pct",
    ),
    LoadCounters(
        kind=InstructionKind.SURFACE,
        requests="l1tex__t_requests_pipe_tex_mem_surface_op_ld.sum",
        sectors="l1tex__t_sectors_pipe_tex_mem_surface_op_ld.sum",
        hits="l1tex__t_sectors_pipe_tex_mem_surface_op_ld_lookup_hit.sum",
        hit_rate="l1tex__t_sector_pipe_tex_mem_surface_op_ld_hit_rate.pct",
    ),
    LoadCounters(
        kind=InstructionKind.GLOBAL_ATOMIC,
        requests="l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
        sectors="l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
        hits="l1tex__t_sectors_pipe_lsu_mem_global_op_atom_lookup_hit.sum",
        hit_rate="l1tex__t_sector_pipe_lsu_mem_global_op_atom_hit_rate.pct",
    ),
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
