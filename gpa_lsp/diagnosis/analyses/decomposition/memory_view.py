"""The memory behind long-scoreboard stalls (:class:`MemoryView`): how long loads take without queues, level by level, and where waits go."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.load_waits import (
    LoadWaits,
    UseWaits,
    measure_load_waits,
    measure_sample_scale,
    read_mean_wait,
)
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import MEMORY_UNITS, UnitUse, count_per_execution, list_unit_use
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, capitalize, say
from gpa_lsp.foundation.records import remembered
from gpa_lsp.gpu.arch.sections import MaybeNumber, MemoryHierarchy
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind, list_kinds

# Kind of load → how its counters call it, and where that of the hit rate differs. Asynchronous copies (LDGSTS) are counted among the loads from
# global memory (on real reports the sectors of both are equal where a kernel has no other loads). Source: metric names of real reports, 2020.3 to
# 2026.2.
LOAD_COUNTERS = {
    InstructionKind.GLOBAL_LOAD: ("pipe_lsu_mem_global_op_ld", ""),
    InstructionKind.LOCAL_LOAD: ("pipe_lsu_mem_local_op_ld", ""),
    InstructionKind.TEXTURE: ("pipe_tex_mem_texture", "pipe_tex_mem_texture_op_tex"),
    InstructionKind.SURFACE: ("pipe_tex_mem_surface_op_ld", ""),
    InstructionKind.GLOBAL_ATOMIC: ("pipe_lsu_mem_global_op_atom", ""),
}


def name_load_counters(access: str) -> tuple[str, str, str]:
    """Metrics of one kind of load: requests of warps to L1TEX, 32-byte sectors looked up, and of these the ones that L1 answered."""
    sectors = f"l1tex__t_sectors_{access}"
    return f"l1tex__t_requests_{access}.sum", f"{sectors}.sum", f"{sectors}_lookup_hit.sum"


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
    """Shares of reads beyond L1 that each level answers; the remainder is answered by the SM's own (or only) L2 partition."""

    far_ratio: float  # the other partition, through the fabric between them; 0 on chips without one
    dram_ratio: float  # the memory behind L2 (system memory and other GPUs included)
    is_of_reads: bool  # False where only the hit rate of all traffic was collected, stores included, which mostly hit


def list_load_traffic(subject: Subject) -> tuple[LoadTraffic, ...]:
    """The kinds of load that the longest launch did, in the order of :data:`LOAD_COUNTERS`; empty when nothing was counted."""
    found = []
    for kind, (access, rate_access) in LOAD_COUNTERS.items():
        requests, sectors, hits = map(subject.metric, name_load_counters(access))
        if not requests:
            continue
        rate = subject.metric(f"l1tex__t_sector_{rate_access or access}_hit_rate.pct")
        ratio = hits / sectors if hits is not None and sectors else None
        if ratio is None and rate is not None:
            ratio = rate / 100
        found.append(
            LoadTraffic(
                kind=kind,
                requests=requests,
                sectors_per_request=None if sectors is None else sectors / requests,
                l1_hit_ratio=None if ratio is None else min(1.0, max(0.0, ratio)),
            )
        )
    return tuple(found)


def read_l2_traffic(subject: Subject) -> L2Traffic | None:
    """Read the shares of levels that answer reads of L2; None when not collected.

    Near hits are lookups that hit over lookups of reads from L1TEX. What misses comes from DRAM, but on chips with two partitions, where a miss
    is first asked of the other one: there the part from DRAM is at most the sectors DRAM delivered over the sectors L1TEX read, and the other
    partition answers the rest. DRAM delivers more than was asked (its bursts are longer than a sector), so that this part is an upper bound.

    Source: Nsight Compute Profiling Guide, Memory Tables, L2 Cache; the split by partition is ours.
    """
    missed, of_reads = _read_miss_ratio(subject)
    if missed is None:
        return None
    dram = missed
    reads, delivered = subject.metric(_L2_READS), subject.metric(*_DRAM_READS)
    if subject.metric(_FABRIC) is not None and reads and delivered is not None:
        dram = min(missed, delivered / reads)
    return L2Traffic(far_ratio=missed - dram, dram_ratio=dram, is_of_reads=of_reads)


def _read_miss_ratio(subject: Subject) -> tuple[float | None, bool]:
    """Lookups that missed, 0..1, and whether they are of reads."""
    for number, (hit_name, miss_name) in enumerate(_L2_LOOKUPS):
        hits, misses = subject.metric(hit_name), subject.metric(miss_name)
        if hits is not None and misses is not None and hits + misses > 0:
            return misses / (hits + misses), number == 0
    rates = (subject.metric(name) for name in _L2_HIT_RATES)
    found = next(((number, rate) for number, rate in enumerate(rates) if rate is not None), None)
    if found is None:
        return None, False
    return 1 - min(1.0, max(0.0, found[1] / 100)), found[0] == 0


QUEUEING = "queueing"
OPERANDS = "operands not yet read"
UNKNOWN = "no cause found"
_CYCLES_PER_FURTHER_LINE = 2
_SECTORS_PER_LINE = 4


class LatencyPart(Struct, frozen=True, kw_only=True):
    """A leg of the way, or another part of the long-scoreboard time."""

    name: str  # for people: a leg, :data:`QUEUEING`, :data:`OPERANDS` or :data:`UNKNOWN`
    # of a load on average, or of the mean wait for a result; loads that do not go a leg count 0. None for what is no such wait
    cycles: float | None
    share_ratio: float  # of the loads, those that go it, or of the long-scoreboard time; 0..1


class UnloadedLatency(Struct, frozen=True, kw_only=True):
    """A mean over loads."""

    parts: tuple[LatencyPart, ...]  # from L1 outwards, then what many lines per request add
    doubts: tuple[str, ...] = ()  # what makes it uncertain, a clause each

    @property
    def cycles(self) -> float:
        """Cycles of all parts."""
        return sum(part.cycles or 0.0 for part in self.parts)


def estimate_unloaded_latency(
    hierarchy: MemoryHierarchy, l1_hit_ratio: float, l2: L2Traffic | None, lines_per_request: float | None
) -> UnloadedLatency | None:
    """The mean latency of a load that finds no queue.

    A warp waits for the slowest line of its request. With h the part of sectors that L1 answers, n, f, d the parts of the rest that the near L2,
    the far L2 and DRAM answer, m = 1 − h, and k lines per request that are answered independently of each other, a request goes beyond L1
    with the probability p₁ = 1 − hᵏ, beyond the near L2 with p₂ = 1 − (1 − m·(f + d))ᵏ, and to DRAM with p₃ = 1 − (1 − m·d)ᵏ:

        unloaded = L1 + p₁ · (near − L1) + (p₂ − p₃) · (far − near) + p₃ · (DRAM − near) + 2 · (k − 1)

    The last term is what each further 128-byte line of a request adds. Sectors of one line are taken to be answered together, lines to be
    independent; lines that come and go together make it shorter, down to the same with p₁ = m, p₂ = m·(f + d), p₃ = m·d. Returns None when a latency
    or a share that is needed is unknown. ``lines_per_request``: k, 128-byte lines; None when unknown, and taken as 1.

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


class LatencySplit(Struct, frozen=True, kw_only=True):
    """Division of long-scoreboard time among the legs of a load's way, queueing and other parts."""

    # their shares add up to 1; in the order of the way, then queueing, operands and what is unknown
    parts: tuple[LatencyPart, ...]
    wait_cycles: float  # mean wait for a result
    passed_cycles: float  # mean time since the load's issue when the wait began
    unloaded_cycles: float  # mean latency without queues
    exposed_cycles: float  # what of it had to be waited for

    @property
    def queueing_ratio(self) -> float:
        """The part of waits for results that unloaded latencies do not explain, 0..1."""
        return 1 - self.exposed_cycles / self.wait_cycles if self.wait_cycles > 0 else 0.0


def split_latency(
    uses: UseWaits, unloaded: UnloadedLatency, operand_ratio: float = 0.0, unknown_ratio: float = 0.0
) -> LatencySplit:
    """Share the long-scoreboard time out.

    A wait for a result begins when the warp arrives at the instruction that needs it, a while after the load's issue. Of the unloaded latency,
    what had not passed by then has to be waited for in any case: the exposed latency. What is waited beyond that is queueing (misses of the
    TLB, for which there is no counter, included). Nobody can say which leg of the way the exposed part is; it is taken to consist of the same
    legs as the whole.

    Source: after DrGPU (Hao et al., ICPE 2023), which sets latency against throughput by level; exposure and queueing as defined here.
    """
    wait, exposed = uses.mean_wait_cycles, uses.expose(unloaded.cycles)
    results = 1 - operand_ratio - unknown_ratio
    legs = [(leg.name, exposed * (leg.cycles or 0.0) / unloaded.cycles) for leg in unloaded.parts]
    cycles = [*legs, (QUEUEING, wait - exposed)]
    parts = [
        LatencyPart(name=name, share_ratio=results * value / wait if wait > 0 else 0.0, cycles=value)
        for name, value in cycles
        if value > 0
    ]
    others = ((OPERANDS, operand_ratio), (UNKNOWN, unknown_ratio))
    parts += [LatencyPart(name=name, share_ratio=ratio, cycles=None) for name, ratio in others if ratio > 0]
    return LatencySplit(
        parts=tuple(parts),
        wait_cycles=wait,
        passed_cycles=uses.mean_passed_cycles,
        unloaded_cycles=unloaded.cycles,
        exposed_cycles=exposed,
    )


# From this part of its peak on a unit is taken to be what others queue for; sustained rates of DRAM are 0.8 to 0.95 of the peak
BUSY_RATIO = 0.6


class MemoryView(Struct, frozen=True, kw_only=True):
    """The memory behind a kernel's long-scoreboard stalls."""

    loads: tuple[LoadTraffic, ...]  # by kind, of the longest launch
    l2: L2Traffic | None  # None when not collected
    unloaded: UnloadedLatency | None  # mean latency without queues; None when a share or a latency is unknown
    scale_cycles: float | None  # warp-cycles that a sample stands for; None when unknown
    waits: LoadWaits | None  # None without samples or blame
    uses: UseWaits | None  # how long waits take, by samples or else by counters; None when neither tells
    split: LatencySplit | None  # None when the waits or the unloaded latency are unknown
    units: tuple[UnitUse, ...]  # on the way, the busiest first

    @property
    def full_unit(self) -> UnitUse | None:
        """The busiest unit, if it is at :data:`BUSY_RATIO` of its peak or more; None otherwise."""
        return self.units[0] if self.units and self.units[0].ratio >= BUSY_RATIO else None

    @property
    def queueing_remedy(self) -> Sentence:
        """Remedy for queueing, by the busiest unit on the way."""
        if self.full_unit is not None:
            return LEVEL_REMEDIES[self.full_unit.level]
        return NOT_BUSY_REMEDY if self.units else LEG_REMEDIES[QUEUEING]


@remembered
def view_memory(subject: Subject) -> MemoryView:
    """Collect facts about the memory behind a kernel's long-scoreboard stalls."""
    loads, l2 = list_load_traffic(subject), read_l2_traffic(subject)
    unloaded = _estimate(subject, loads, l2)
    scale = measure_sample_scale(subject)
    waits = measure_load_waits(subject, scale)
    uses = (
        waits.uses
        if waits is not None and waits.uses is not None
        else read_mean_wait(subject, sum(load.requests for load in loads))
    )
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
        scale_cycles=scale,
        waits=waits,
        uses=uses,
        split=split,
        units=list_unit_use(subject, MEMORY_UNITS),
    )


def _estimate(subject: Subject, loads: tuple[LoadTraffic, ...], l2: L2Traffic | None) -> UnloadedLatency | None:
    hits = average_l1_hits(loads)
    if hits is None or subject.architecture is None:
        return None
    is_load = list_kinds(subject.rows) == KINDS.index(InstructionKind.GLOBAL_LOAD)
    lines = count_per_execution(subject, "global_tag_requests", is_load) or estimate_lines(loads)
    return estimate_unloaded_latency(subject.architecture.hierarchy, hits, l2, lines)


_START_EARLIER = "issue loads earlier (prefetch into registers or shared memory), several at once"
START_EARLIER = capitalize(say(_START_EARLIER))
_MORE_STAGES = say("Keep more stages of the copy in flight, so that each is issued well before it is needed")

# Kinds of load with a remedy of their own
KIND_REMEDIES: dict[InstructionKind, Sentence] = {
    InstructionKind.LOCAL_LOAD: say(
        "Local memory holds spilled registers and arrays indexed at run time: allow more registers per thread, shorten live ranges, "
        "or index such arrays with constants"
    ),
    InstructionKind.GLOBAL_ATOMIC: say(
        "Combine in registers, in the warp or in shared memory first; an atomic whose result is unused need not stall its warp"
    ),
    InstructionKind.ASYNC_COPY: _MORE_STAGES,
    InstructionKind.BULK_COPY: _MORE_STAGES,
    InstructionKind.TEXTURE: say("Fetch before the texel is needed, and neighbouring texels together"),
    InstructionKind.SURFACE: say(
        "Let neighbouring threads access neighbouring surface elements, before the value is needed"
    ),
    InstructionKind.CONSTANT_LOAD: say(
        "Constants indexed at run time go through the caches: let all threads of a warp read the same one, or use shared memory"
    ),
}

# Each part of the long-scoreboard time; a test holds it against the parts there are
LEG_REMEDIES: dict[str, Sentence] = {
    "L1": START_EARLIER,
    "L1 to L2": say(
        "Keep reused data in L1, shared memory or registers (tiling, shorter reuse distance); {earlier}",
        earlier=_START_EARLIER,
    ),
    "to the far partition of L2": say(
        "Let the same SMs reuse the same data, so that it is found in their own partition"
    ),
    "L2 to DRAM": say(
        "Reuse data while it is in L2 (tiling, block order, persisting accesses); {earlier}", earlier=_START_EARLIER
    ),
    "several lines per request": say(
        "Coalesce: neighbouring threads at neighbouring addresses need fewer lines per request"
    ),
    QUEUEING: say("Request less, or the same in fewer requests"),
    OPERANDS: say(
        "Memory instructions hold their operands until the queue before L1 takes them: fewer and wider accesses empty it"
    ),
}

# What helps when a level is busy; a test holds it against the levels of the units
LEVEL_REMEDIES: dict[str, Sentence] = {
    "L1": say("Take fewer wavefronts: coalesced, aligned and wider accesses, reused values kept in registers"),
    "crossbar": say("Move less between L1 and L2: reuse in L1 or shared memory, and use all of each sector"),
    "L2": say(
        "Request fewer sectors from L2: reuse in L1 or shared memory, coalesced accesses, fewer atomics on the same addresses"
    ),
    "DRAM": say("Move less from DRAM: reuse in caches, use all of each sector, narrower types"),
    "system memory": say("Keep the data in GPU memory: copy or prefetch it before the kernel runs"),
}

NOT_BUSY_REMEDY = say(
    "No unit is busy on average. Possible causes: TLB misses (large strides, huge working sets), bursts of requests, SMs not all active at once"
)
