"""How numbers of a trace are said: spaces by name, reuse histograms as bars."""

from collections.abc import Iterator

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.answers import Bar
from gpa_lsp.execution.traces.reuse_distance import INFINITE_BIN, ReuseHistogram
from gpa_lsp.foundation.prose import Sentence, count, say

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


def deny(what: str, *, is_complete: bool) -> Sentence:
    """That traced blocks do not do something: of blocks that were cut short, only of what they did until then.

    >>> deny("do not access global memory", is_complete=False)
    'The traced blocks do not access global memory in what was traced of them; they did not run to their end, or their trace was cut off.'
    """
    if is_complete:
        return say("The traced blocks {what}.", what=what)
    return say(
        "The traced blocks {what} in what was traced of them; they did not run to their end, or their trace was cut off.",
        what=what,
    )


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
