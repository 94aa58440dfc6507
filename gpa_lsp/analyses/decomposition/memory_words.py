"""What to do about time spent in the memory: words for each kind of load, each leg of the way and each level."""

from gpa_lsp.analyses.decomposition.instruction_kinds import InstructionKind
from gpa_lsp.analyses.decomposition.latency_split import OPERANDS, QUEUEING

START_EARLIER = (
    "Start loads earlier than their values are needed (prefetch into registers or shared memory), several at once, "
    "or keep more warps resident"
)

KIND_REMEDIES: dict[InstructionKind, str] = {
    InstructionKind.LOCAL_LOAD: (
        "Local memory holds spilled registers and arrays indexed at run time: allow more registers per thread, shorten lifetimes, "
        "or index such arrays with constants"
    ),
    InstructionKind.GLOBAL_ATOMIC: (
        "Combine in registers, in the warp or in shared memory first; an atomic whose result is not used need not be waited for"
    ),
    InstructionKind.ASYNC_COPY: "Keep more stages of the copy in flight, so that a stage is asked for earlier than it is needed",
    InstructionKind.BULK_COPY: "Keep more stages of the copy in flight, so that a stage is asked for earlier than it is needed",
    InstructionKind.TEXTURE: "Fetch earlier than the texel is needed, and neighbouring texels together",
    InstructionKind.SURFACE: "Access surfaces in neighbouring threads at neighbouring places, and earlier than the value is needed",
    InstructionKind.CONSTANT_LOAD: (
        "Constants indexed at run time go through the caches: let all threads of a warp ask for the same one, or use shared memory"
    ),
}
"""Kinds of load with a remedy of their own."""

LEG_REMEDIES: dict[str, str] = {
    "L1": START_EARLIER,
    "L1 to L2": "Keep what is used again in L1, shared memory or registers (blocking, a smaller stride between uses); "
    + START_EARLIER,
    "to the far partition of L2": "Let the same SMs use the same data again, so that it is found in their own partition",
    "L2 to DRAM": "Let data be used again while it is in L2 (blocking, order of blocks, persisting accesses); "
    + START_EARLIER,
    "several lines per request": "Let neighbouring threads access neighbouring addresses, so that a request needs fewer lines",
    QUEUEING: "Ask for less, or for the same in fewer requests",
    OPERANDS: "Stores and loads hold their operands until the queue before L1 takes them: fewer and wider accesses empty it",
}
"""Each part of the long-scoreboard time; a test holds it against the parts there are."""

LEVEL_REMEDIES: dict[str, str] = {
    "L1": "Needs fewer wavefronts: dense and aligned accesses, wider ones, values kept in registers instead of being read again",
    "crossbar": "Move less between L1 and L2: reuse in L1 or shared memory, and use all of each sector",
    "L2": "Ask L2 for fewer sectors: reuse in L1 or shared memory, dense accesses, fewer atomics on the same addresses",
    "DRAM": "Move less from DRAM: reuse in caches, use all of each sector, narrower types; more warps do not help",
    "system memory": "Keep the data in the GPU's own memory: copy or prefetch it before the kernel runs",
}
"""What helps when a level is busy; a test holds it against the levels of the units."""

NOT_BUSY_REMEDY = (
    "No unit is busy on average. That leaves misses of the TLB (large strides, huge working sets), requests in bursts, and SMs that do not "
    "all work at the same time"
)
