"""What pattern of addresses a number of sectors or wavefronts per access speaks of, and what helps against it."""

from enum import Enum

from msgspec import Struct

from gpa_lsp.foundation.prose import NOTHING, Code, say
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS

LEAST_EXCESS = 0.05  # A smaller share of what is moved beyond the least is no pattern

_OWN_SECTOR = 0.9  # From so many sectors per thread on, threads are taken to touch a sector of their own each
_HALF = 0.45
# In a block 16 threads wide the two rows of a warp may share sectors: half as many sectors as threads, and many times the least, count too. A
# structure of four elements makes four times the least.
_FAR = 6.0
_ONE_MORE = 1.5  # Up to so many sectors beyond the least per access, the start is taken to be misaligned


class Pattern(Enum):
    """How the threads of a warp lie in global memory; the values are clauses for people."""

    NEIGHBOURS = "neighbouring threads access neighbouring elements"
    APART = "neighbouring threads are 32 bytes or more apart, so each touches a sector of its own"
    STRIDE = "neighbouring threads are some elements apart"
    MISALIGNED = "the accesses start or end inside a sector"
    UNKNOWN = "the pattern is unknown without executions"
    SCATTERED_ATOMICS = "atomics of one warp go to scattered addresses"


# What helps; empty where nothing has to
REMEDIES = {
    Pattern.NEIGHBOURS: NOTHING,
    Pattern.UNKNOWN: say(
        "Coalesce: let neighbouring threads access neighbouring elements, starting at aligned addresses."
    ),
    Pattern.APART: say(
        "Coalesce: let the fastest thread index run along the fastest array index. Swap the two indices, store the transposed array, replace the "
        "array of structures by a structure of arrays, or stage the tile through shared memory with rows read by whole warps. Where a thread's own "
        "accesses are adjacent, one wide access of up to 16 bytes uses whole sectors too."
    ),
    Pattern.STRIDE: say(
        "Give neighbouring threads neighbouring elements: a structure of arrays instead of an array of structures, or one wide access (64 or 128 "
        "bits) that takes the whole structure."
    ),
    Pattern.MISALIGNED: say(
        "Start each row at a multiple of 32 bytes (128 is best): pad the pitch, allocate with {pitch}, or shift the work so that a warp's first "
        "element is aligned.",
        pitch=Code(text="cudaMallocPitch"),
    ),
    Pattern.SCATTERED_ATOMICS: say(
        "Combine first, in registers of the warp or in shared memory, and issue one atomic per address; sort or bin the keys so that a warp meets "
        "few addresses."
    ),
}

CONFLICT_REMEDY = say(
    "Pad each row of the shared array by one element (or one access width), or swizzle the address bits, so that the threads of a warp hit different "
    "banks; with 64- or 128-bit accesses, let each group of 16 or 8 threads cover all banks."
)
LOCAL_REMEDY = say(
    "Find out whether these are spilled registers or arrays indexed at run time. Against spills: more registers per thread (launch bounds, "
    "{option}), less unrolling, shorter live ranges. For arrays: constant indices (full unrolling), or shared memory.",
    option=Code(text="-maxrregcount"),
)
WIDTH_REMEDY = say(
    "Let a thread take several neighbouring elements in one access (up to 16 bytes, such as {type}): one instruction instead of several.",
    type=Code(text="float4"),
)


class RequestShape(Struct, frozen=True, kw_only=True):
    """One access of a warp, on average over its executions."""

    sectors: float  # it touches
    ideal_sectors: float  # it would touch at best
    threads: float = float(WARP_THREADS)  # that take part
    is_atomic: bool = False  # it is an atomic operation or a reduction

    @property
    def excess_ratio(self) -> float:
        """Share of the sectors beyond the least."""
        return (self.sectors - self.ideal_sectors) / self.sectors if self.sectors > 0 else 0.0


def find_pattern(shape: RequestShape) -> Pattern:
    """The pattern that explains a request's sectors.

    Approximation: averages over executions, so a mixture of patterns gets the name of the average.

    >>> find_pattern(RequestShape(sectors=32, ideal_sectors=4)), find_pattern(RequestShape(sectors=5, ideal_sectors=4))
    (<Pattern.APART: 'neighbouring threads are 32 bytes or more apart, so each touches a sector of its own'>, \
<Pattern.MISALIGNED: 'the accesses start or end inside a sector'>)
    >>> find_pattern(RequestShape(sectors=12, ideal_sectors=4)).name, find_pattern(RequestShape(sectors=4, ideal_sectors=4)).name
    ('STRIDE', 'NEIGHBOURS')
    >>> find_pattern(RequestShape(sectors=16, ideal_sectors=1)).name
    'APART'
    """
    if shape.excess_ratio < LEAST_EXCESS:
        return Pattern.NEIGHBOURS
    if shape.is_atomic:
        return Pattern.SCATTERED_ATOMICS
    is_far = shape.sectors >= _HALF * shape.threads and shape.sectors >= _FAR * shape.ideal_sectors
    if is_far or shape.sectors >= _OWN_SECTOR * shape.threads:
        return Pattern.APART
    if shape.sectors - shape.ideal_sectors <= _ONE_MORE:
        return Pattern.MISALIGNED
    return Pattern.STRIDE
