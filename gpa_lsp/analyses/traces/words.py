"""How numbers of a trace are said: spaces by name, reuse histograms as bars."""

from gpa_lsp.analyses.answers import Bar
from gpa_lsp.analyses.traces.reuse_distance import INFINITE_BIN, ReuseHistogram
from gpa_lsp.emulator.ptx.model import Space

SPACE_WORDS = {
    Space.GENERIC: "generic",
    Space.GLOBAL: "global",
    Space.SHARED: "shared",
    Space.LOCAL: "local",
    Space.CONST: "constant",
    Space.PARAM: "parameter",
    Space.TEXTURE: "texture",
}


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


def list_reuse_bars(histogram: ReuseHistogram, noun: str = "uses") -> tuple[Bar, ...]:
    """One bar for each bin up to the largest distance, and one for ∞; none without references."""
    whole = histogram.references
    if not whole:
        return ()
    finite = [number for number, count in enumerate(histogram.bins.tolist()) if count and number != INFINITE_BIN]
    shown = [*range(max(finite, default=-1) + 1), INFINITE_BIN]
    return tuple(
        Bar(
            label=name_bin(number),
            ratio=int(histogram.bins[number]) / whole,
            words=f"{int(histogram.bins[number]):,} {noun}",
        )
        for number in shown
    )
