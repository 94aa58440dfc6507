"""What helps against what a trace shows."""

from gpa_lsp.analyses.access.patterns import REMEDIES, Pattern
from gpa_lsp.traces.model import AccessGroupKind
from gpa_lsp.traces.patterns import LanePattern
from gpa_lsp.traces.segments import SECTOR_BYTES

SCATTER_REMEDY = (
    "Let the threads of a warp meet neighbouring elements: sort or bin the indices, renumber the elements by their neighbourhood, or gather a tile "
    "into shared memory once and work on it there."
)
PIECES_REMEDY = (
    "Make the rows that one warp takes longer: a block that is 32 threads wide (or a multiple) along the fastest index of the array, or several "
    "elements per thread in one wide access."
)
OUTSIDE_REMEDY = (
    "Unless the kernel allocates memory, check the bounds of the index, and the sizes the launch was described with."
)
UNIFORM_REMEDY = (
    "Where the value is the same for the whole warp, take it from constant memory or a kernel parameter, or load it once before the loop: a load by "
    "32 lanes of one address still costs a request."
)
REPEAT_REMEDY = (
    "Keep the value in a register. The compiler does so by itself when it knows that no store changes it: mark the pointers const and "
    "__restrict__, or load into a local variable before the loop."
)
DEAD_STORE_REMEDY = (
    "Sum up in a local variable and store once after the loop. The compiler does so by itself when it knows that the arrays do not overlap: mark "
    "the pointers __restrict__."
)
ONE_WAY_REMEDY = (
    "Keep it if it guards an access against the bounds of an array: other sizes need it. Any other condition that changes in no launch can be "
    "dropped or made a template parameter; one that changes in others costs little as it is."
)


def find_remedy(
    kind: AccessGroupKind, patterns: tuple[tuple[LanePattern, int], ...], strides: tuple[tuple[int, int], ...]
) -> str:
    """What helps an access with too many sectors, by its commonest pattern; empty where its pattern is as good as it can be."""
    if kind is AccessGroupKind.ATOMICS:
        return REMEDIES[Pattern.SCATTERED_ATOMICS]
    if not patterns:
        return ""
    pattern = patterns[0][0]
    stride = abs(strides[0][0]) if strides else 0
    if pattern in (LanePattern.STRIDED, LanePattern.STRIDED_PIECES):
        return REMEDIES[Pattern.APART if stride >= SECTOR_BYTES else Pattern.STRIDE]
    if pattern is LanePattern.CONTIGUOUS:
        return REMEDIES[Pattern.MISALIGNED]
    if pattern in (LanePattern.CONTIGUOUS_PIECES, LanePattern.BROADCAST_PIECES):
        return PIECES_REMEDY
    return SCATTER_REMEDY if pattern is LanePattern.SCATTERED else ""
