"""Words for a trace: names of spaces, reuse histograms as bars, remedies."""

from collections.abc import Iterator

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.diagnosis.analyses.access import REMEDIES, Pattern
from gpa_lsp.diagnosis.analyses.answers import Answer, Bar
from gpa_lsp.execution.accesses.lane_addresses import LanePattern
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.reuse_distance import INFINITE_BIN, ReuseHistogram
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, join, say

SPACE_WORDS = {
    Space.GENERIC: "generic",
    Space.GLOBAL: "global",
    Space.SHARED: "shared",
    Space.LOCAL: "local",
    Space.CONST: "constant",
    Space.PARAM: "parameter",
    Space.TEXTURE: "texture",
}

# (words, first and last bin of :class:`ReuseHistogram`)
_DISTANCES = (
    ("at once", 0, 0),
    ("within 7 lines", 1, 3),
    ("8 to 63 lines", 4, 6),
    ("64 to 511 lines", 7, 9),
    ("512 lines or more", 10, INFINITE_BIN - 1),
    ("first use", INFINITE_BIN, INFINITE_BIN),
)


def deny(name: str, title: str, what: str, *, is_complete: bool) -> Answer:
    """Answer that the traced blocks do not do what a question is about, with a caveat where blocks were cut short.

    >>> deny("traced_memory", "", "do not access global memory", is_complete=False).summary
    'The traced blocks do not access global memory in what was traced of them; they did not run to their end, or their trace was cut off.'
    """
    cut = " in what was traced of them; they did not run to their end, or their trace was cut off"
    summary = say("The traced blocks {what}{cut}.", what=what, cut="" if is_complete else cut)
    return Answer(analysis=name, title=title, summary=summary, is_known=False)


def name_bin(number: int) -> str:
    """The distances of a bin.

    >>> [name_bin(number) for number in (0, 1, 2, 11, 33)]
    ['0', '1', '2–3', '1024–2047', '∞']
    """
    if number == INFINITE_BIN:
        return "∞"
    if number < 2:
        return str(number)
    return f"{1 << (number - 1)}–{(1 << number) - 1}"


def list_reuse_bars(histogram: ReuseHistogram) -> tuple[Bar, ...]:
    """One bar for each bin up to the largest distance, and one for ∞; none without references."""
    whole = histogram.references
    if not whole:
        return ()
    finite = [number for number, uses in enumerate(histogram.bins.tolist()) if uses and number != INFINITE_BIN]
    shown = [*range(max(finite, default=-1) + 1), INFINITE_BIN]
    return tuple(
        Bar(
            label=name_bin(number),
            ratio=int(histogram.bins[number]) / whole,
            words=say("{uses}", uses=count(int(histogram.bins[number]), "use")),
        )
        for number in shown
    )


def summarise_reuse(histogram: ReuseHistogram) -> Iterator[tuple[str, float]]:
    """Distances in lines, a few bins in one, with their share of the references; those without any left out."""
    for words, first, last in _DISTANCES:
        uses = int(histogram.bins[first : last + 1].sum())
        if uses:
            yield words, uses / histogram.references


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
    """Remedy for an access with excess sectors, by its commonest pattern; empty where its pattern cannot be better."""
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
