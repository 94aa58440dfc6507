"""How numbers of a trace are said: reuse histograms as bars, a line's facts."""

from gpa_lsp.analyses.answers import Bar
from gpa_lsp.analyses.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.analyses.traces.reuse_distance import INFINITE_BIN, ReuseHistogram
from gpa_lsp.emulator.ptx.model import Space
from gpa_lsp.figures import format_whole_percent

_CELLS = 16
_LEAST_SHARE = 0.05
"""Smaller shares of repeated accesses are not told."""

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


def write_reuse_bars(histogram: ReuseHistogram) -> tuple[str, ...]:
    """The same as lines of text, empty bins left out.

    >>> import numpy as np
    >>> bins = np.zeros(34, dtype=np.int64)
    >>> bins[[0, 2, 33]] = 2, 1, 1
    >>> for line in write_reuse_bars(ReuseHistogram(bins=bins, streaming=0, distance_sum=3)): print(line)
      0 ████████         50 %
    2–3 ████             25 %
      ∞ ████             25 %
    """
    bars = [bar for bar in list_reuse_bars(histogram) if bar.ratio > 0]
    width = max((len(bar.label) for bar in bars), default=0)
    return tuple(
        f"{bar.label:>{width}} {'█' * max(1, round(bar.ratio * _CELLS)):<{_CELLS}} {format_whole_percent(bar.ratio)}"
        for bar in bars
    )


def describe_access(fact: AccessLineFact) -> tuple[str, ...]:
    """The lines of a hover on an access, plain text; its title first, which says where the numbers come from."""
    where = f" of {', '.join(fact.arrays)}" if fact.arrays else ""
    title = f"{SPACE_WORDS[fact.space].capitalize()} {fact.kind.value}{where} ({fact.origin})"
    lines = [title if not fact.is_nested else f"{title}, in inlined code"]
    lines.append(f"{fact.requests:,} requests, {fact.lanes_per_request:.1f} of 32 lanes each")
    if fact.space is Space.SHARED:
        lines.append(
            f"{fact.wavefronts_per_request:.1f} wavefronts per request, {fact.ideal_wavefronts_per_request:.1f} without bank conflicts"
        )
    else:
        lines.append(
            f"{fact.sectors_per_request:.1f} sectors in {fact.lines_per_request:.1f} lines per request, "
            f"{fact.ideal_sectors_per_request:.1f} sectors at best"
        )
    if fact.share_ratio is not None:
        lines.append(f"{format_whole_percent(fact.share_ratio)} of all sectors of global memory")
    if fact.pattern_words:
        share = fact.patterns[0].ratio
        lines.append(f"Lanes: {fact.pattern_words}" + (f" ({format_whole_percent(share)})" if share < 1 else ""))
    hits = [
        f"{name} {format_whole_percent(ratio)}"
        for name, ratio in (("L1", fact.l1_hit_ratio), ("L2", fact.l2_hit_ratio))
        if ratio is not None
    ]
    if hits:
        lines.append(f"Predicted hits: {', '.join(hits)}")
    if fact.repeated_ratio >= _LEAST_SHARE:
        verb = "overwritten unread" if fact.kind.value == "stores" else "repeat an earlier one of the same warp"
        lines.append(f"{format_whole_percent(fact.repeated_ratio)} {verb}")
    if fact.reuse is not None and fact.reuse.references:
        lines += ["Lines used since the last use of the same line, within a block:", *write_reuse_bars(fact.reuse)]
    return tuple(lines)


def describe_branch(fact: BranchLineFact) -> tuple[str, ...]:
    """The lines of a hover on a branch."""
    lines = [
        f"Branches ({fact.origin})" + (", in inlined code" if fact.is_nested else ""),
        f"{fact.executions:,} executions by warps, {fact.lanes_per_execution:.1f} of 32 lanes each",
        f"{format_whole_percent(fact.divergent_ratio)} diverge, {format_whole_percent(fact.taken_ratio)} of the lanes jump",
    ]
    if fact.one_way:
        lines.append(f"{fact.one_way.capitalize()} taken in this launch")
    return tuple(lines)
