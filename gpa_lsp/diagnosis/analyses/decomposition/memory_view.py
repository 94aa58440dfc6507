"""Everything the answer about memory is made of: :class:`MemoryView`."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.load_waits import (
    LoadWaits,
    SampleScale,
    UseWaits,
    count_waits,
    measure_load_waits,
    measure_sample_scale,
)
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import MEMORY_UNITS, UnitUse, list_unit_use
from gpa_lsp.diagnosis.analyses.decomposition.unloaded_latency import (
    L2Traffic,
    LoadTraffic,
    UnloadedLatency,
    average_l1_hits,
    count_lines_per_request,
    estimate_lines,
    estimate_unloaded_latency,
    list_load_traffic,
    read_l2_traffic,
)
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.foundation.prose import Sentence, capitalize, say
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind

QUEUEING = "queueing"
OPERANDS = "operands not yet read"
UNKNOWN = "no cause found"


class StallPart(Struct, frozen=True, kw_only=True):
    """A part of the long-scoreboard time."""

    name: str  # a leg of the way, :data:`QUEUEING`, :data:`OPERANDS` or :data:`UNKNOWN`
    share_ratio: float  # of the long-scoreboard time, 0..1
    cycles: float | None  # of the mean wait for a result; None for what is no such wait


class LatencySplit(Struct, frozen=True, kw_only=True):
    """Where the time goes."""

    # their shares add up to 1; in the order of the way, then queueing, operands and what is unknown
    parts: tuple[StallPart, ...]
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
    legs = [(leg.name, exposed * leg.cycles / unloaded.cycles) for leg in unloaded.parts]
    cycles = [*legs, (QUEUEING, wait - exposed)]
    parts = [
        StallPart(name=name, share_ratio=results * value / wait if wait > 0 else 0.0, cycles=value)
        for name, value in cycles
        if value > 0
    ]
    others = ((OPERANDS, operand_ratio), (UNKNOWN, unknown_ratio))
    parts += [StallPart(name=name, share_ratio=ratio, cycles=None) for name, ratio in others if ratio > 0]
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
