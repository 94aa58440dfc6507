"""What helps against what a trace shows."""

from gpa_lsp.diagnosis.analyses.access import REMEDIES, Pattern
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.patterns import LanePattern
from gpa_lsp.execution.traces.segments import SECTOR_BYTES
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, join, say

_RESTRICT = Code(text="__restrict__")

SCATTER_REMEDY = say(
    "Let the threads of a warp access neighbouring elements: sort or bin the indices, renumber the elements by neighbourhood, or gather a tile "
    "into shared memory once and work on it there."
)
PIECES_REMEDY = say(
    "Lengthen the rows that a warp accesses: a block 32 threads wide (or a multiple) along the fastest index of the array, or several "
    "elements per thread in one wide access."
)
OUTSIDE_REMEDY = say(
    "Unless the kernel allocates memory, check the bounds of the index and the sizes in the launch description."
)
UNIFORM_REMEDY = say(
    "Where the value is the same for the whole warp, read it from constant memory or a kernel parameter, or load it once before the loop: a load "
    "of one address by 32 lanes still costs a request."
)
REPEAT_REMEDY = say(
    "Keep the value in a register. The compiler does so when it knows that no store changes it: mark the pointers {const} and {restrict}, or load "
    "into a local variable before the loop.",
    const=Code(text="const"),
    restrict=_RESTRICT,
)
DEAD_STORE_REMEDY = say(
    "Accumulate in a local variable and store once after the loop. The compiler does so when it knows that the arrays do not overlap: mark the "
    "pointers {restrict}.",
    restrict=_RESTRICT,
)
ONE_WAY_REMEDY = say(
    "Keep it if it guards an access against the bounds of an array: other sizes need it. A condition that is the same in every launch can be "
    "dropped or made a template parameter; one that differs between launches costs little."
)


def find_remedy(
    kind: AccessGroupKind, patterns: tuple[tuple[LanePattern, int], ...], strides: tuple[tuple[int, int], ...]
) -> Sentence:
    """What helps an access with excess sectors, by its commonest pattern; empty where its pattern is as good as it can be."""
    if kind is AccessGroupKind.ATOMICS:
        return join([REMEDIES[Pattern.SCATTERED_ATOMICS]])
    if not patterns:
        return NOTHING
    pattern = patterns[0][0]
    stride = abs(strides[0][0]) if strides else 0
    if pattern in (LanePattern.STRIDED, LanePattern.STRIDED_PIECES):
        return join([REMEDIES[Pattern.APART if stride >= SECTOR_BYTES else Pattern.STRIDE]])
    if pattern is LanePattern.CONTIGUOUS:
        return join([REMEDIES[Pattern.MISALIGNED]])
    if pattern in (LanePattern.CONTIGUOUS_PIECES, LanePattern.BROADCAST_PIECES):
        return PIECES_REMEDY
    return SCATTER_REMEDY if pattern is LanePattern.SCATTERED else NOTHING
