"""A stall reason beyond its sources: a sentence with what the counters say of it, and what to do about it."""

from collections.abc import Callable
from math import prod

import numpy as np

from gpa_lsp.diagnosis.analyses.decomposition.load_waits import measure_sample_scale
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import LEVEL_REMEDIES
from gpa_lsp.diagnosis.analyses.decomposition.stall_split import Source, StallSplit
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import (
    MEMORY_UNITS,
    PIPE_UNITS,
    QUEUE_UNITS,
    SHARED_KINDS,
    list_queue_use,
    list_unit_use,
)
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import find_warp_state
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, join, number, percent, say, size
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind, select_kinds

# Bank conflicts per wavefront that are worth a word. Source: DrGPU's threshold (Hao et al., ICPE 2023).
_CONFLICTS_RATIO = 0.1
_MANY_CONFLICTS_RATIO = 0.25
_SCATTERED = 2.0  # Times the fewest lines per access from which scattered accesses are the first thing to fix
_DENSE = 1.1  # Times the fewest passes up to which accesses are dense
# Of its peak, from which on loads queue for a level of the memory; the fullest DRAM of published reports has 0.74 to 0.96
_FULL_RATIO = 0.7
_FEW_FP64_LANES = 4
_CACHE_LINE_BYTES = 128
_INSTRUCTION_BYTES = 16


def note_reason(subject: Subject, split: StallSplit) -> Sentence:
    """A sentence with the counters that belong to a reason; empty when there is nothing to add."""
    write = _NOTES.get(split.reason)
    return NOTHING if write is None else write(subject, split)


REMOVE_CONFLICTS = say(
    "Remove the bank conflicts first: let the threads of a warp access different banks (pad rows by one word, swizzle, or swap the loops)"
)
ACCESS_DENSER = say(
    "Coalesce: neighbouring threads at neighbouring addresses, so that an access needs fewer lines; or, where the accesses of one thread are "
    "adjacent, make them one wide access"
)
STORE_AND_GO_ON = say(
    "Each warp stores and exits at once: let it process several elements (a grid-stride loop), so that other work overlaps its stores"
)
STORES_ARE_DENSE = say("The stores are fully coalesced.")


def choose_remedy(subject: Subject, split: StallSplit, leading: Source) -> Sentence:
    """Choose the remedy for a reason: by its counters where they are conclusive, else by its leading source.

    Bank conflicts and scattered accesses fill queues as wide accesses do, but are not helped by still wider ones.
    """
    is_shared = leading.kind in SHARED_KINDS
    if split.reason in ("short_scoreboard", "mio_throttle") and is_shared:
        conflicts = measure_bank_conflicts(subject)
        if conflicts is not None and conflicts >= _MANY_CONFLICTS_RATIO:
            return REMOVE_CONFLICTS
    if split.reason == "lg_throttle":
        uses = [use for use in list_queue_use(subject, split.reason) if use.kind is leading.kind]
        if any(use.passes and use.least_passes and use.passes >= _SCATTERED * use.least_passes for use in uses):
            return ACCESS_DENSER
    if split.reason == "drain" and _note_stores(subject, split) == STORES_ARE_DENSE:
        return STORE_AND_GO_ON
    if split.reason == LONG_SCOREBOARD and leading.kind is InstructionKind.GLOBAL_LOAD:
        busiest = next(iter(list_unit_use(subject, MEMORY_UNITS)), None)
        if busiest is not None and busiest.ratio >= _FULL_RATIO:
            return say("{less}; loads issued earlier only queue longer", less=LEVEL_REMEDIES[busiest.level])
    return find_source_remedy(split.reason, leading.kind)


def _note_shared(subject: Subject, _split: StallSplit) -> Sentence:
    conflicts = measure_bank_conflicts(subject)
    if conflicts is None:
        return NOTHING
    if conflicts < _CONFLICTS_RATIO:
        return say("Shared memory has hardly any bank conflicts.") if _uses_shared(subject) else NOTHING
    return say("{share} of the shared-memory wavefronts are bank conflicts.", share=percent(conflicts))


def measure_bank_conflicts(subject: Subject) -> float | None:
    """Share of shared-memory wavefronts that conflicts added, 0..1; None when not collected or without shared accesses.

    By instruction, wavefronts beyond the fewest that could do over wavefronts; without these counters the aggregates
    ``l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum`` over ``l1tex__data_pipe_lsu_wavefronts_mem_shared.sum``, whose conflicts also count
    passes that wait for other traffic and lie higher.
    """
    wavefronts, ideal = subject.rows.counter("shared_wavefronts"), subject.rows.counter("shared_wavefronts_ideal")
    if wavefronts is not None and ideal is not None:
        counted = (wavefronts > 0) & (ideal >= 0)
        total = int(wavefronts[counted].sum())
        return 1 - int(ideal[counted].sum()) / total if total else None
    conflicts = subject.metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum")
    total_wavefronts = subject.metric("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")
    if conflicts is None or not total_wavefronts or not _uses_shared(subject):
        return None
    return min(1.0, conflicts / total_wavefronts)


def _uses_shared(subject: Subject) -> bool:
    return bool(select_kinds(subject.rows, SHARED_KINDS).any())


def _note_mio(subject: Subject, split: StallSplit) -> Sentence:
    return join([_note_queue(subject, split), _note_shared(subject, split)])


def _note_queue(subject: Subject, split: StallSplit) -> Sentence:
    uses = list_queue_use(subject, split.reason)
    if not uses:
        return NOTHING
    first = uses[0]
    width = passes = busiest = NOTHING
    if first.thread_bytes is not None:
        width = say(" of {width} per thread", width=count(first.thread_bytes, "byte"))
    if first.passes is not None and first.least_passes and first.passes > _DENSE * first.least_passes:
        least = number(first.least_passes)
        passes = say(
            ", with {passes} each where {least} would suffice", passes=number(first.passes, "pass"), least=least
        )
    for use in list_unit_use(subject, QUEUE_UNITS)[:1]:
        busiest = say(
            "; the busiest unit behind it is {level} ({unit}), at {share} of its peak",
            level=use.level,
            unit=use.name,
            share=percent(use.ratio),
        )
    return say(
        "{share} of the instructions in that queue are {kind}{width}{passes}{busiest}.",
        share=percent(first.share_ratio),
        kind=first.kind.value,
        width=width,
        passes=passes,
        busiest=busiest,
    )


def _note_pipes(subject: Subject, split: StallSplit) -> Sentence:
    busiest = few = NOTHING
    for use in list_unit_use(subject, PIPE_UNITS)[:1]:
        share = percent(use.ratio)
        busiest = say("The busiest pipe is {pipe}, at {share} of its peak.", pipe=use.level, share=share)
    lanes = None if subject.architecture is None else subject.architecture.sm.fp64_lanes_per_sm.value
    of_fp64 = sum(source.samples for source in split.sources if source.kind is InstructionKind.FP64)
    if lanes is not None and lanes <= _FEW_FP64_LANES and of_fp64 > 0:
        few = say(
            "This GPU has {lanes} per SM: a warp occupies the pipe for {cycles}.",
            lanes=count(lanes, "double-precision lane"),
            cycles=count(WARP_THREADS // lanes, "cycle"),
        )
    return join([busiest, few])


def _note_code_size(subject: Subject, split: StallSplit) -> Sentence:
    """Say how much code was executed, and how many of the stalls are at the start of an instruction cache line."""
    executed = subject.rows.executions > 0
    reason = subject.kernel.reasons.index(split.reason)
    at_start = subject.rows.pc_offsets % _CACHE_LINE_BYTES == 0
    share = float(subject.rows.all_samples[at_start, reason].sum()) / split.samples
    code = NOTHING
    if executed.any():
        code = say("{code} of code was executed; ", code=size(int(executed.sum()) * _INSTRUCTION_BYTES))
    return say(
        "{code}{share} of these samples are at the start of a {line}-byte line of code.",
        code=code,
        share=percent(share),
        line=count(_CACHE_LINE_BYTES),
    )


def _note_barriers(subject: Subject, split: StallSplit) -> Sentence:
    if subject.longest is None or subject.longest.block is None:
        return NOTHING
    wait = _measure_barrier_wait(subject, split.samples)
    return say(
        "{warps} of a block synchronise at {places}{each}.",
        warps=count(-(-prod(subject.longest.block) // WARP_THREADS), "warp"),
        places=count(len(split.sources), "place"),
        each=NOTHING if wait is None else say(", stalled for {wait} each time on average", wait=count(wait, "cycle")),
    )


def _measure_barrier_wait(subject: Subject, samples: int) -> float | None:
    """Mean warp-cycles of one stall at a barrier: warp-cycles over executions of barriers (Little's law); None when unknown."""
    scale = measure_sample_scale(subject)
    chosen = select_kinds(subject.rows, frozenset({InstructionKind.BLOCK_BARRIER})) & (subject.rows.executions > 0)
    executed = int(subject.rows.executions[chosen].sum())
    return None if scale is None or executed == 0 else samples * scale / executed


def _note_stores(subject: Subject, _split: StallSplit) -> Sentence:
    """Say how dense the stores are that must leave before a warp exits."""
    uses = list_queue_use(subject, "lg_throttle")
    stores = next((use for use in uses if use.kind is InstructionKind.GLOBAL_STORE), None)
    if stores is None or stores.passes is None or stores.least_passes is None:
        return NOTHING
    if stores.passes <= _DENSE * stores.least_passes:
        return STORES_ARE_DENSE
    return say(
        "A store takes {lines} of {size} bytes where {least} would suffice.",
        lines=number(stores.passes, "line"),
        size=count(_CACHE_LINE_BYTES),
        least=number(stores.least_passes),
    )


def _note_encoded(subject: Subject, _split: StallSplit) -> Sentence:
    """The cycles that the compiler encoded after an instruction, on average over executions: how long a warp stalls if it does nothing else."""
    known = subject.rows.has_control & (subject.rows.mnemonic_index >= 0)
    counts = np.maximum(0, subject.rows.executions[known])
    executed, encoded = int(counts.sum()), int((counts * np.maximum(1, subject.rows.control.stall_cycles[known])).sum())
    if not executed:
        return NOTHING
    return say(
        "The compiler encoded {cycles} per instruction on average.", cycles=number(encoded / executed, "stall cycle")
    )


# Modifier of a fence → whose accesses it orders, the widest first. Source: NVIDIA CUDA Binary Utilities; PTX ISA, membar and fence.
_SCOPES = {"SYS": "the whole system", "GPU": "the GPU", "CTA": "the block"}


def _note_fences(subject: Subject, split: StallSplit) -> Sentence:
    modifiers = {
        part
        for source in split.sources
        if source.row is not None
        for part in subject.rows.mnemonic(source.row).split(".")
    }
    widest = next((words for scope, words in _SCOPES.items() if scope in modifiers), "")
    return say("The widest of these fences covers {scope}.", scope=widest) if widest else NOTHING


_NOTES: dict[str, Callable[[Subject, StallSplit], Sentence]] = {
    "short_scoreboard": _note_shared,
    "mio_throttle": _note_mio,
    "lg_throttle": _note_queue,
    "tex_throttle": _note_queue,
    "math_pipe_throttle": _note_pipes,
    "no_instructions": _note_code_size,
    "barrier": _note_barriers,
    "drain": _note_stores,
    "wait": _note_encoded,
    "membar": _note_fences,
}


_TEXTS: dict[str, dict[InstructionKind, str]] = {
    "long_scoreboard": {
        InstructionKind.LOCAL_LOAD: (
            "Spilled registers or arrays indexed at run time: allow more registers per thread, or index with constants"
        ),
        InstructionKind.GLOBAL_ATOMIC: "Combine in the warp or in shared memory first, and do not use the result needlessly",
        InstructionKind.ASYNC_COPY: "Keep more stages of the copy in flight",
    },
    "short_scoreboard": {
        InstructionKind.SHARED_LOAD: (
            "Issue shared-memory loads earlier, wider (64 or 128 bits at once), and without bank conflicts"
        ),
        InstructionKind.SHARED_STORE: "Store to shared memory wider and without bank conflicts, so that operands are read sooner",
        InstructionKind.SHARED_ATOMIC: "Combine in registers or in the warp before the atomic, and spread the addresses",
        InstructionKind.MATRIX_LOAD: "Double-buffer: load the next step's fragments before this step's matrix instructions",
        InstructionKind.SPECIAL_FUNCTION: (
            "Reciprocals, roots and transcendental functions: hoist them out of loops, use cheaper forms, issue them earlier"
        ),
        InstructionKind.CONVERSION: "Convert less: keep one type through the loop, convert once and in bulk, use integer indices",
        InstructionKind.SHUFFLE: "Do other work between a shuffle and its use, or reduce several values side by side",
        InstructionKind.WARP_OPERATION: "Do other work between the vote or reduction and its use",
        InstructionKind.SPECIAL_REGISTER: (
            "Thread and block indices are read when a block starts: more work per thread (a grid-stride loop) reads them less often"
        ),
        InstructionKind.CONSTANT_LOAD: "Constants indexed at run time: load them earlier, or keep them in registers or shared memory",
        InstructionKind.FP64: "This GPU has few double-precision lanes: use single precision where it suffices",
        InstructionKind.BIT_COUNT: "Do other work between the bit count and its use",
    },
    "wait": {
        InstructionKind.BRANCH: "Unroll short loops: fewer branches, and predicates computed earlier",
        InstructionKind.CONVERSION: "Convert less: each conversion takes its pipe for several cycles",
        InstructionKind.FP64: "Give each warp several independent chains of double-precision operations, or use single precision",
        InstructionKind.TENSOR: "Alternate matrix instructions between independent accumulators",
    },
    "math_pipe_throttle": {
        InstructionKind.FP64: (
            "Warps queue for the FP64 pipe: use single precision where it suffices, fewer divisions and roots"
        ),
        InstructionKind.TENSOR: "Warps queue for the tensor cores, as they should; a narrower type is faster still",
        InstructionKind.INTEGER: (
            "Warps queue for the ALU: simplify index arithmetic and compares, use shifts and multiply-adds, hoist invariants"
        ),
        InstructionKind.MULTIPLY_ADD: "Warps queue for the FMA pipe: do fewer operations, pack narrower types, or use the tensor cores",
        InstructionKind.FP16: "Warps queue for the FP16 pipe: do fewer operations, or use the tensor cores",
    },
    "mio_throttle": {
        InstructionKind.SHARED_LOAD: (
            "Load 64 or 128 bits from shared memory at once, keep values in registers, and remove bank conflicts"
        ),
        InstructionKind.SHARED_STORE: "Store 64 or 128 bits to shared memory at once, and remove bank conflicts",
        InstructionKind.SPECIAL_FUNCTION: "Spread special functions out between other work, or use fewer",
        InstructionKind.SPECIAL_REGISTER: "More work per thread reads thread and block indices less often",
        InstructionKind.SHUFFLE: "Exchange fewer values between threads, or through shared memory in one wide access",
        InstructionKind.CONSTANT_LOAD: "Keep constants that are indexed at run time in registers or shared memory",
    },
    "lg_throttle": {
        InstructionKind.LOCAL_LOAD: "Remove spills: more registers per thread, shorter live ranges, constant indices",
        InstructionKind.LOCAL_STORE: "Remove spills: more registers per thread, shorter live ranges, constant indices",
        InstructionKind.GLOBAL_STORE: "Widen stores (64 or 128 bits per thread) and coalesce them",
        InstructionKind.GLOBAL_LOAD: (
            "Widen loads (64 or 128 bits per thread), coalesce them, and keep in registers what is loaded twice"
        ),
    },
    "branch_resolving": {
        InstructionKind.RECONVERGENCE: (
            "Divergent branches reconverge here: make branches uniform within a warp, or predicate short ones"
        ),
        InstructionKind.CALL: "Inline the function, or call it less often",
        InstructionKind.INDIRECT_BRANCH: "Replace the jump through a table or pointer by direct branches or arithmetic",
        InstructionKind.EXIT: "Warps exit early and often: give each more work (a grid-stride loop)",
    },
}

# (Reason, kind) → what helps; a test builds a kernel for each and expects its words
SOURCE_REMEDIES = {(reason, kind): say(text) for reason, texts in _TEXTS.items() for kind, text in texts.items()}


def find_source_remedy(reason: str, kind: InstructionKind | None) -> Sentence:
    """Remedy for a source of a reason; the reason's general one where its kind has none.

    >>> find_source_remedy("short_scoreboard", InstructionKind.SHUFFLE)
    'Do other work between a shuffle and its use, or reduce several values side by side'
    >>> find_source_remedy("short_scoreboard", None) == find_warp_state("short_scoreboard").remedy
    True
    """
    own = None if kind is None else SOURCE_REMEDIES.get((reason, kind))
    return own or find_warp_state(reason).remedy
