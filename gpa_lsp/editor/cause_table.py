"""What the editor says about causes and remedies, as Markdown that reads as well where it is shown as it is. Pure functions."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.document.markdown_text import begin_paragraph, escape_markdown, mark_code
from gpa_lsp.editor.lines.index import CauseLine, HotLine, RemedyAnchor
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_percent
from gpa_lsp.foundation.prose import join
from gpa_lsp.foundation.visible_text import make_one_line, make_visible

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.model import Advice
    from gpa_lsp.report.pairs import BlamedPair, LinePair

# A measured line (None: code without lines) → what a reader calls it now
NamePlace = Callable[[tuple[str, int] | None], str]

_MOST_ROWS = 5
_MOST_PARTNERS = 3
_MOST_NAMED = 3
_MOST_REMEDIES = 3


def summarise_cause(cause: CauseLine, name_place: NamePlace) -> str:
    """A causing line for a diagnostic, a sentence a line: what it costs and who pays, what limits the kernel, what to do."""
    causes = cause.causes
    parts = [f"{format_percent(cause.caused_ratio)} of the samples of {cause.shown.name} are stalls caused here"]
    reason = find_caused_reason(cause)
    if reason:
        parts[0] += f", mostly {reason}"
    victims = list_victims(cause)
    own = sum(pair.samples for pair in causes.waiters if _is_at(pair, cause.place))
    if victims and own > sum(pair.samples for pair in cause.victims):
        parts.append(f"waited for mostly on this line itself, and in {_list_names(victims, name_place)}")
    elif victims:
        parts.append(f"waited for in {_list_names(victims, name_place)}")
    elif causes.blame.causing_samples > causes.caused_samples / 2:
        parts.append("waited for on this line itself")
    if causes.called_samples >= 0.5:
        called = causes.called_samples / cause.shown.kernel.report.total_samples
        parts.append(f"about {format_percent(called)} more in functions called from here (estimate)")
    lines = ["; ".join(parts)]
    limiter = cause.shown.kernel.report.limiter
    if limiter is not None:
        lines.append(limiter.sentence.removesuffix("."))
    if cause.remedies:
        best = cause.remedies[0]
        others = len(cause.remedies) - 1
        more = f", or {others} other{'' if others == 1 else 's'}" if others else ""
        lines.append(f"{label_advice(best)}{more}")
    return ".\n".join(map(make_one_line, lines))


def _is_at(pair: "LinePair", place: tuple[str, int]) -> bool:
    return pair.place is not None and (pair.place.file, pair.place.line) == place


def find_caused_reason(cause: CauseLine) -> str | None:
    """The stall reason of most samples that a line causes, elsewhere or itself; None when there is none."""
    sums = count_caused(cause)
    return max(sums, key=lambda reason: sums[reason], default=None)


def count_caused(cause: CauseLine) -> dict[str, float]:
    """Stall reason → samples that a line causes, elsewhere or itself, as far as its pairs were kept."""
    sums = dict(cause.causes.own_stalls)
    for pair in cause.causes.waiters:
        sums[pair.reason] = sums.get(pair.reason, 0.0) + pair.samples
    return sums


def list_victims(cause: CauseLine) -> list[tuple[str, int]]:
    """The other lines that wait for this one, as measured, most samples first."""
    return list(dict.fromkeys((pair.place.file, pair.place.line) for pair in cause.victims if pair.place is not None))


def describe_stalls(cause: CauseLine, hot: HotLine | None, name_place: NamePlace) -> list[str]:
    """What a line waits for, or what it causes, whichever is more: rows for its hover, never both.

    Args:
        hot: what was taken on the line; None where nothing was.
    """
    if hot is not None and hot.share_ratio >= cause.share_ratio:
        rows = _list_partners("← waits for", cause.causes.waits, name_place)
        lost = cause.causes.blame.unattributed_samples
        return [*rows, f"{format_count_of(round(lost), 'sample')} without a known cause"] if lost > 0.5 else rows
    shown = cause.shown
    reason = find_caused_reason(cause)
    mostly = "" if reason is None else f", mostly {escape_markdown(reason)}"
    row = f"causes **{format_percent(cause.caused_ratio)}** of the samples of {mark_code(shown.name)}{mostly}"
    return [row, *_list_partners("→ waited for by", cause.victims, name_place)]


def _list_partners(head: str, pairs: Sequence["LinePair"], name_place: NamePlace) -> list[str]:
    """The places at the other ends of stalls, most samples first, a row each."""
    shown = pairs[:_MOST_PARTNERS]
    return [f"{head} {escape_markdown(describe_pair(_name(pair, name_place), pair, 0))}" for pair in shown]


def _name(pair: "LinePair", name_place: NamePlace) -> str:
    return name_place(None if pair.place is None else (pair.place.file, pair.place.line))


def summarise_remedy(remedies: Sequence["Advice"]) -> str:
    """The best remedy in a row, and how many others there are."""
    from gpa_lsp.document.markdown_text import write_sentence

    others = f"; {format_count_of(len(remedies) - 1, 'other')}" if len(remedies) > 1 else ""
    return f"**suggestion** {write_sentence(label_advice(remedies[0]))}: {write_sentence(remedies[0].hint)}{others}"


def describe_causes(cause: CauseLine, name_place: NamePlace) -> str:
    """What a line waits for and what waits for it, and the advice about it, for a hover."""
    kernel = cause.shown.kernel.report
    blame = cause.causes.blame
    parts = []
    if cause.causes.waits:
        title = f"**waits for** · {format_count(round(blame.waiting_samples))} samples taken here"
        parts.append(_list_pairs(title, cause.causes.waits, name_place, kernel.total_samples))
    if cause.causes.waiters:
        title = f"**waited for by** · {format_count(round(blame.causing_samples))} samples caused by this line"
        parts.append(_list_pairs(title, cause.causes.waiters, name_place, kernel.total_samples))
    if cause.causes.own_stalls and parts:
        own = ", ".join(f"{format_count(round(count))} {reason}" for reason, count in cause.causes.own_stalls.items())
        parts.append(make_one_line(f"not caused elsewhere: {own}"))
    if blame.unattributed_samples > 0.5:
        parts.append(f"{format_count(round(blame.unattributed_samples))} samples have no known cause")
    parts.extend(describe_remedy(advice) for advice in cause.remedies[:_MOST_REMEDIES])
    return "\n\n".join(parts)


def describe_remedy(advice: "Advice") -> str:
    """A piece of advice as a paragraph."""
    from gpa_lsp.document.advice_words import (
        describe_speedup,
    )  # needs numpy, which the answer to initialize must not wait for

    facts = join((describe_speedup(advice.speedup), advice.witness), "; ")
    text = make_one_line(f"**{label_advice(advice)}** ({facts}). {advice.hint}")
    caveats = "".join(f"\n- {begin_paragraph(caveat)}" for caveat in advice.caveats)
    return text + (f"\n{caveats}" if caveats else "")


def label_remedy(anchor: RemedyAnchor, value: str = "") -> str:
    """A lens on a loop or call."""
    from gpa_lsp.document.advice_words import show_gain_range  # needs numpy, as above

    words = f"{anchor.advice.title} {show_gain_range(anchor.region.speedup)}"
    return f"{value} · {words}" if value else words


def label_advice(advice: "Advice") -> str:
    """``Unroll a loop 1.1–1.3×``."""
    from gpa_lsp.document.advice_words import label_suggestion  # needs numpy, as above

    return label_suggestion(advice)


def _list_names(places: Sequence[tuple[str, int]], name_place: NamePlace) -> str:
    shown = ", ".join(dict.fromkeys(map(name_place, places[:_MOST_NAMED])))
    return f"{shown} and {len(places) - _MOST_NAMED} more places" if len(places) > _MOST_NAMED else shown


def _list_pairs(title: str, pairs: Sequence["LinePair"], name_place: NamePlace, total: int) -> str:
    # a list wraps in a narrow window where a table would not
    rows = [f"- {describe_pair(make_visible(_name(pair, name_place)), pair, total)}" for pair in pairs[:_MOST_ROWS]]
    return "\n".join((title, "", *rows))


def describe_pair(name: str, pair: "BlamedPair", total: int) -> str:
    """The other end of a stall: ``line 13: 37 %, 2,709 samples · long_scoreboard: data from global memory · R6, 10 cycles later``."""
    # It needs numpy, which the answer to initialize must not wait for.
    from gpa_lsp.document.advice_words import describe_cause

    samples = format_count_of(round(pair.samples), "sample")
    share = f"{format_percent(min(1.0, pair.samples / total))}, " if total else ""
    words = make_one_line(f"{pair.reason}: {describe_cause(pair.category)}")
    return " · ".join(part for part in (f"{name}: {share}{samples}", words, _describe_link(pair)) if part)


def _describe_link(pair: "BlamedPair") -> str:
    """``R2, 6 cycles later``; ``one of several`` where the hardware waits for all of a group."""
    # Both need numpy, which the answer to initialize must not wait for.
    from gpa_lsp.code.binary.model import name_resource
    from gpa_lsp.document.advice_words import describe_sharing

    parts = []
    if pair.resource is not None:
        parts.append(name_resource(pair.resource))
    if pair.distance_cycles is not None:
        parts.append(f"{pair.distance_cycles} cycles later")
    if pair.separable_samples < pair.samples / 2:
        parts.append(describe_sharing(pair.dependency))
    return ", ".join(parts)
