"""What to do about time spent in the memory: words for each kind of load, each leg of the way and each level."""

from gpa_lsp.diagnosis.analyses.decomposition.latency_split import OPERANDS, QUEUEING
from gpa_lsp.foundation.prose import Sentence, capitalize, say
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind

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
