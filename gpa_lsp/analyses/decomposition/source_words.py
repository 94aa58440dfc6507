"""What to do about a source of a stall: words for each kind of instruction behind a reason, where they differ from the reason's own."""

from gpa_lsp.analyses.decomposition.instruction_kinds import InstructionKind
from gpa_lsp.analyses.decomposition.reasons import find_warp_state
from gpa_lsp.basis.prose import Sentence, say

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
            "The double-precision pipe is full: use single precision where it suffices, fewer divisions and roots"
        ),
        InstructionKind.TENSOR: "The tensor cores are full, as they should be; a narrower type is faster still",
        InstructionKind.INTEGER: (
            "The ALU is full: simplify index arithmetic and compares, use shifts and multiply-adds, hoist invariants"
        ),
        InstructionKind.MULTIPLY_ADD: "The FMA pipe is full: do fewer operations, pack narrower types, or use the tensor cores",
        InstructionKind.FP16: "The half-precision pipe is full: do fewer operations, or use the tensor cores",
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

SOURCE_REMEDIES = {(reason, kind): say(text) for reason, texts in _TEXTS.items() for kind, text in texts.items()}
"""(Reason, kind) → what helps; a test builds a kernel for each and expects its words."""


def find_source_remedy(reason: str, kind: InstructionKind | None) -> Sentence:
    """What to do about a source; the reason's own words where its kind has none.

    >>> find_source_remedy("short_scoreboard", InstructionKind.SHUFFLE)
    'Do other work between a shuffle and its use, or reduce several values side by side'
    >>> find_source_remedy("short_scoreboard", None) == find_warp_state("short_scoreboard").remedy
    True
    """
    own = None if kind is None else SOURCE_REMEDIES.get((reason, kind))
    return own or find_warp_state(reason).remedy
