"""What to do about a source of a stall: words for each kind of instruction behind a reason, where they differ from the reason's own."""

from gpa_lsp.analyses.decomposition.instruction_kinds import InstructionKind
from gpa_lsp.analyses.decomposition.reasons import find_warp_state

_LONG, _SHORT, _WAIT = "long_scoreboard", "short_scoreboard", "wait"
_MATH, _MIO, _LG, _BRANCH = "math_pipe_throttle", "mio_throttle", "lg_throttle", "branch_resolving"

SOURCE_REMEDIES: dict[tuple[str, InstructionKind], str] = {
    (_LONG, InstructionKind.LOCAL_LOAD): (
        "Spilled registers or arrays indexed at run time: allow more registers per thread, or index with constants"
    ),
    (
        _LONG,
        InstructionKind.GLOBAL_ATOMIC,
    ): "Combine in the warp or in shared memory first, and do not use the result where it is not needed",
    (_LONG, InstructionKind.ASYNC_COPY): "Keep more stages of the copy in flight",
    (_SHORT, InstructionKind.SHARED_LOAD): (
        "Load from shared memory earlier than the value is needed, wider (64 or 128 bits at once), and without bank conflicts"
    ),
    (
        _SHORT,
        InstructionKind.SHARED_STORE,
    ): "Store to shared memory wider and without bank conflicts, so that its operands are read sooner",
    (
        _SHORT,
        InstructionKind.SHARED_ATOMIC,
    ): "Combine in registers or in the warp before the atomic, and spread the addresses",
    (
        _SHORT,
        InstructionKind.MATRIX_LOAD,
    ): "Load the fragments of the next step before the matrix instructions of this one (double buffering)",
    (_SHORT, InstructionKind.SPECIAL_FUNCTION): (
        "Reciprocals, roots and transcendental functions: take common ones out of loops, use cheaper forms, start them earlier"
    ),
    (
        _SHORT,
        InstructionKind.CONVERSION,
    ): "Convert less: keep one type through the loop, convert once and in bulk, use integer arithmetic for indices",
    (
        _SHORT,
        InstructionKind.SHUFFLE,
    ): "Do other work between a shuffle and its use, or reduce several values side by side",
    (_SHORT, InstructionKind.WARP_OPERATION): "Do other work between the vote or reduction and its use",
    (_SHORT, InstructionKind.SPECIAL_REGISTER): (
        "Thread and block numbers are read when a block starts: more work per thread (a loop over elements) reads them less often"
    ),
    (
        _SHORT,
        InstructionKind.CONSTANT_LOAD,
    ): "Constants indexed at run time: load them earlier, or keep them in registers or shared memory",
    (_SHORT, InstructionKind.FP64): "This GPU has few double-precision lanes: use single precision where it is enough",
    (_SHORT, InstructionKind.BIT_COUNT): "Do other work between the bit count and its use",
    (
        _WAIT,
        InstructionKind.BRANCH,
    ): "Unroll short loops, so that there are fewer jumps, and their guards are computed earlier",
    (_WAIT, InstructionKind.CONVERSION): "Convert less: each conversion takes its pipe for several cycles",
    (
        _WAIT,
        InstructionKind.FP64,
    ): "Give each warp several independent chains of double-precision operations, or use single precision",
    (_WAIT, InstructionKind.TENSOR): "Let matrix instructions work on independent accumulators in turn",
    (
        _MATH,
        InstructionKind.FP64,
    ): "The double-precision pipe is full: use single precision where it is enough, fewer divisions and roots",
    (
        _MATH,
        InstructionKind.TENSOR,
    ): "The tensor cores are full, which is what they are there for; a narrower type is faster still",
    (
        _MATH,
        InstructionKind.INTEGER,
    ): "The ALU is full: simplify index arithmetic and compares, use shifts and multiply-adds, hoist what does not change",
    (
        _MATH,
        InstructionKind.MULTIPLY_ADD,
    ): "The FMA pipe is full: fewer operations, narrower types two at a time, or the tensor cores",
    (_MATH, InstructionKind.FP16): "The half-precision pipe is full: fewer operations, or the tensor cores",
    (
        _MIO,
        InstructionKind.SHARED_LOAD,
    ): "Load from shared memory 64 or 128 bits at once, keep values in registers, and remove bank conflicts",
    (_MIO, InstructionKind.SHARED_STORE): "Store to shared memory 64 or 128 bits at once, and remove bank conflicts",
    (_MIO, InstructionKind.SPECIAL_FUNCTION): "Spread special functions out between other work, or use fewer",
    (_MIO, InstructionKind.SPECIAL_REGISTER): "More work per thread reads thread and block numbers less often",
    (
        _MIO,
        InstructionKind.SHUFFLE,
    ): "Exchange fewer values between threads, or through shared memory in one wide access",
    (_MIO, InstructionKind.CONSTANT_LOAD): "Keep constants that are indexed at run time in registers or shared memory",
    (_LG, InstructionKind.LOCAL_LOAD): "Remove spills: more registers per thread, shorter lifetimes, constant indices",
    (_LG, InstructionKind.LOCAL_STORE): "Remove spills: more registers per thread, shorter lifetimes, constant indices",
    (_LG, InstructionKind.GLOBAL_STORE): "Store wider (64 or 128 bits per thread) and denser",
    (
        _LG,
        InstructionKind.GLOBAL_LOAD,
    ): "Load wider (64 or 128 bits per thread) and denser, and keep in registers what is loaded twice",
    (
        _BRANCH,
        InstructionKind.RECONVERGENCE,
    ): "Divergent branches meet again here: make branches uniform within a warp, or predicate short ones",
    (_BRANCH, InstructionKind.CALL): "Inline the function, or call it less often",
    (
        _BRANCH,
        InstructionKind.INDIRECT_BRANCH,
    ): "Replace the jump through a table or a pointer by direct branches or by arithmetic",
    (_BRANCH, InstructionKind.EXIT): "Warps leave early and often: give each more work (a loop over elements)",
}
"""(Reason, kind) → what helps; a test builds a kernel for each and expects its words."""


def find_source_remedy(reason: str, kind: InstructionKind | None) -> str:
    """What to do about a source; the reason's own words where its kind has none.

    >>> find_source_remedy("short_scoreboard", InstructionKind.SHUFFLE)
    'Do other work between a shuffle and its use, or reduce several values side by side'
    >>> find_source_remedy("short_scoreboard", None) == find_warp_state("short_scoreboard").remedy
    True
    """
    own = None if kind is None else SOURCE_REMEDIES.get((reason, kind))
    return own or find_warp_state(reason).remedy
