"""VIEW: a comparison of two reports, and its JSON."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from gpa_lsp.diagnosis.analyses.model import Limiter, LimiterKind
from gpa_lsp.document.advice_words import describe_gain, label_suggestion
from gpa_lsp.document.blocks import Block, Item, Items, Paragraph, Part, Table, tabulate
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.layout import Line, Span, Style, flexible, left, right
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.json_records import pick
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    Cell,
    Quantity,
    format_count,
    format_duration_ns,
    format_percent,
    format_points,
    format_speedup,
)
from gpa_lsp.foundation.prose import NOTHING, Amount, Sentence, begin_lower, join, percent, say
from gpa_lsp.foundation.prose import Part as ProsePart
from gpa_lsp.kernel.names import find_family
from gpa_lsp.report.changes import PartChange, TimeChange, Verdict
from gpa_lsp.report.compare import AdviceOutcome, Comparison, KernelComparison, LikelyPair
from gpa_lsp.report.differences import Difference
from gpa_lsp.report.taken import AdviceFate

FATE_WORDS: Mapping[AdviceFate, str] = {
    AdviceFate.TAKEN: "taken",
    AdviceFate.PARTLY_TAKEN: "partly taken",
    AdviceFate.OPEN: "still open",
    AdviceFate.UNKNOWN: "not seen to be taken",
}

_MOST_SIGNS = 2

# Units that limit kernels and are none of the limits that are measured everywhere
_UNIT_WORDS: Mapping[str, str] = {"l2_slice": "one slice of L2"}


def build_comparison(comparison: Comparison, places: PlaceNames) -> list[Block]:
    """Changes kernel by kernel, then the kernels that are in one report only.

    Args:
        comparison: what to show.
        places: how sources are shown.
    """
    everyone = [kernel for found in comparison.kernels for kernel in (found.before, found.after)]
    names = name_kernels([*everyone, *comparison.only_before, *comparison.only_after])
    blocks: list[Block] = [_build_kernel(found, names, places) for found in comparison.kernels]
    for pair in comparison.likely_pairs:
        text = f"could be compared: {describe_likely_pair(pair)}; add --yes, or name pairs with --pair OLD=NEW"
        blocks.append(Paragraph(text=((text, Style.NOTE),)))
    for title, kernels in (("only before", comparison.only_before), ("only after", comparison.only_after)):
        blocks += [Paragraph(text=((f"{title}: ", Style.DIM), (names[kernel.name], Style.TITLE))) for kernel in kernels]
    if not comparison.kernels:
        blocks.append(
            Paragraph(
                text="no kernel is in both reports; pair kernels by name with --pair OLD=NEW", style=Style.WARNING
            )
        )
    return blocks


def describe_likely_pair(pair: LikelyPair) -> Sentence:
    """Two kernels that may be the same one, and why."""
    names = name_kernels([pair.before, pair.after])
    return say(
        "{before} with {after} ({why})", before=names[pair.before.name], after=names[pair.after.name], why=pair.why
    )


def describe_limiters(found: KernelComparison) -> Sentence:
    """Limits of the kernel before and after; empty where neither is known."""
    before, after = (_describe_limiter(kernel.limiter) for kernel in (found.before, found.after))
    if not before and not after:
        return NOTHING
    unknown = say("unknown")
    return say("limited by: {before} → {after}", before=before or unknown, after=after or unknown)


def _describe_limiter(limiter: Limiter | None) -> Sentence:
    """A limit in one clause; empty where it is unknown."""
    if limiter is None or limiter.kind is LimiterKind.UNKNOWN:
        return NOTHING
    if limiter.kind is LimiterKind.BUILD:
        return say("a build without optimization")
    limit = limiter.find(limiter.unit)
    name = begin_lower(limit.label) if limit is not None else _UNIT_WORDS.get(limiter.unit, limiter.unit)
    if limiter.kind is not LimiterKind.UNIT:
        name = f"{limiter.kind}, {name}" if name else str(limiter.kind)
    if limiter.busy_ratio is None:
        return say("{name}", name=name)
    return say("{name} ({ratio})", name=name, ratio=percent(limiter.busy_ratio))


def describe_difference(difference: Difference) -> Sentence:
    """A difference: ``sectors per global access 18.1 → 4.00``."""
    before, after = (_write_value(value, difference) for value in (difference.before, difference.after))
    trait = say("{trait} (in the code)" if difference.is_static else "{trait}", trait=difference.trait.value)
    if not difference.is_change:
        return say("{trait} unchanged: {before}", trait=trait, before=before)
    return say("{trait} {before} → {after}", trait=trait, before=before, after=after)


def _write_value(value: Cell, difference: Difference) -> ProsePart:
    return value if isinstance(value, str) else Amount(value=value, quantity=difference.quantity)


def _build_kernel(found: KernelComparison, names: Mapping[str, str], places: PlaceNames) -> Part:
    old, new = names[found.before.name], names[found.after.name]
    name = old if is_named_alike(found) else f"{old} → {new}"
    title = head_change(name, found.verdict, found.time, (found.before.duration_ns, found.after.duration_ns))
    if found.verdict in (Verdict.SAME_CODE, Verdict.OTHER_WORK):
        return Part(title=title, blocks=say_all(*list_remarks(found)))

    def show(change: PartChange, line: int | None) -> str:
        kernel = found.after if change.after_line is not None else found.before
        return places.show_line(kernel, change.name, line or 0)

    advice = (f"new advice: {label_suggestion(one)}" for one in found.new_advice)
    return Part(
        title=title,
        blocks=[
            *say_all(*list_remarks(found)),
            *build_changes(found, show),
            *say_all(*((text, Style.PLAIN) for text in advice)),
        ],
    )


def list_remarks(found: KernelComparison) -> list[Span]:
    """Remarks on a comparison: caveats, range of the speedup, limits, missing stalls; texts may be empty."""
    note = (found.note, Style.WARNING)
    if found.verdict in (Verdict.SAME_CODE, Verdict.OTHER_WORK):
        return [note]
    return [
        note,
        ("" if found.time is None else describe_range(found.time), Style.DIM),
        (describe_limiters(found), Style.PLAIN),
        (found.no_stalls, Style.WARNING),
    ]


def head_change(
    name: str, verdict: Verdict, time: TimeChange | None, durations_ns: tuple[float | None, float | None]
) -> Line:
    """A kernel's name, its time before and after, and the verdict."""
    times = describe_both_times(verdict, time, durations_ns)
    words, style = VERDICT_WORDS[verdict]
    return ((name, Style.TITLE), (f"  {times}", Style.PLAIN), (f"  {words}", style))


def describe_instructions(ratio: float | None) -> str:
    """Ratio of executed instructions; empty where it is about 1 or unknown."""
    if ratio is None or abs(ratio - 1) < LEAST_CHANGE_RATIO:
        return ""
    return f"executes {format_speedup(ratio)} the instructions"


def say_all(*said: Span) -> list[Paragraph]:
    """A paragraph for each text that is not empty."""
    return [Paragraph(text=((text, style),)) for text, style in said if text]


def is_named_alike(found: KernelComparison) -> bool:
    """Whether both sides have one name, apart from template arguments and parameters."""
    sides = (found.before.name, found.after.name)
    return len({find_family(name, None).name for name in sides}) == 1


def build_changes(found: KernelComparison, show: Callable[[PartChange, int | None], str]) -> list[Block]:
    """Differences, fate of the earlier advice, and stalls by reason and by line; all of it may be empty.

    *show* writes the place of a line of the file that a change is named after.
    """
    taken = (AdviceFate.TAKEN, AdviceFate.PARTLY_TAKEN)
    signs = [
        Item(text=join((outcome.advice.title, describe_signs(outcome)), ": "))
        for outcome in found.outcomes
        if outcome.fate in taken
    ]
    return [
        _tabulate_differences(found.differences),
        _tabulate_outcomes(found.outcomes),
        Items(items=signs),
        build_part_table("By stall reason", found.reasons, lambda change: change.name),
        build_part_table("By line", found.lines, lambda change: name_changed_line(change, partial(show, change))),
    ]


def _tabulate_differences(differences: Sequence[Difference]) -> Table:
    """Notable differences with both values."""
    return tabulate(
        filter(_is_notable, differences),
        [
            (right("before"), lambda one: str(_write_value(one.before, one))),
            (right("after"), lambda one: str(_write_value(one.after, one))),
            (flexible(), lambda one: f"{one.trait.value} (in the code)" if one.is_static else one.trait.value),
        ],
        "What changed",
    )


def _is_notable(difference: Difference) -> bool:
    """Whether a trait moved by more than 1 % of its value, or of 100 % where it is a share."""
    old, new = difference.before, difference.after
    if isinstance(old, str) or isinstance(new, str) or old is None or new is None:
        return True
    whole = 1.0 if difference.quantity is Quantity.RATIO else max(abs(old), abs(new))
    return abs(new - old) >= LEAST_CHANGE_RATIO * whole


def _tabulate_outcomes(outcomes: Sequence[AdviceOutcome]) -> Table:
    def show_fate(outcome: AdviceOutcome) -> Span:
        return FATE_WORDS[outcome.fate], Style.TITLE if outcome.achieved is not None else Style.DIM

    return tabulate(
        outcomes,
        [
            (flexible("advice"), lambda outcome: outcome.advice.title),
            (left(), show_fate),
            (right("estimated"), lambda outcome: describe_gain(outcome.advice)),
            (right("achieved"), lambda one: UNKNOWN if one.achieved is None else format_speedup(one.achieved)),
            (right("stalls before"), lambda outcome: format_percent(outcome.before_ratio)),
            (right("now"), lambda outcome: format_percent(outcome.after_ratio)),
        ],
        "Advice given before",
        note="Stalls as shares of the samples of their report; achieved by all changes together.",
    )


def describe_signs(outcome: AdviceOutcome) -> Sentence:
    """Evidence that the advice was taken; empty where there is none."""
    return join([describe_difference(sign) for sign in outcome.signs[:_MOST_SIGNS]], "; ")


def make_comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON: ``gpa-lsp/comparison/1``."""
    return {
        "schema": "gpa-lsp/comparison/1",
        "kernels": [_make_kernel(found) for found in comparison.kernels],
        "only_before": [kernel.mangled_name for kernel in comparison.only_before],
        "only_after": [kernel.mangled_name for kernel in comparison.only_after],
        "likely_pairs": [
            {"before": pair.before.mangled_name, "after": pair.after.mangled_name, **pick(pair, "likeness why")}
            for pair in comparison.likely_pairs
        ],
    }


def _make_kernel(found: KernelComparison) -> dict[str, Any]:
    return {
        "before": found.before.mangled_name,
        "after": found.after.mangled_name,
        **pick(found, "verdict note"),
        "time": msgspec.to_builtins(found.time),
        "instructions_ratio": found.instructions_ratio,
        "limiters": [_make_limiter(kernel.limiter) for kernel in (found.before, found.after)],
        "differences": [_make_difference(difference) for difference in found.differences],
        "no_stalls": found.no_stalls,
        "reasons": [make_part(change, "reason") for change in found.reasons],
        "lines": [make_part(change, "file") for change in found.lines],
        "advice": [
            {
                "optimizer": outcome.advice.optimizer,
                **pick(outcome, "fate"),
                "estimate": outcome.advice.speedup.estimate,
                **pick(outcome, "achieved before_ratio after_ratio"),
                "signs": [_make_difference(sign) for sign in outcome.signs],
            }
            for outcome in found.outcomes
        ],
        "new_advice": [advice.optimizer for advice in found.new_advice],
    }


def _make_difference(difference: Difference) -> dict[str, Any]:
    return {"trait": difference.trait.name.lower(), **pick(difference, "before after is_static")}


def _make_limiter(limiter: Limiter | None) -> dict[str, Any] | None:
    return None if limiter is None else pick(limiter, "kind unit busy_ratio")


LEAST_CHANGE_RATIO = 0.01  # Parts that moved by less than this share of the kernel's old time are not shown

_MOST_PARTS = 10

VERDICT_WORDS: Mapping[Verdict, tuple[str, Style]] = {
    Verdict.FASTER: ("faster", Style.TITLE),
    Verdict.SLOWER: ("slower", Style.WARNING),
    Verdict.NO_CHANGE: ("no change beyond the noise", Style.DIM),
    Verdict.SAME_CODE: ("no change: same instructions, same launch", Style.DIM),
    Verdict.UNKNOWN: ("no time to compare", Style.WARNING),
    Verdict.OTHER_WORK: ("not compared", Style.WARNING),
}


def describe_time(time: TimeChange | None) -> str:
    """Change of a time: ``6.19 ms → 3.48 ms  1.78×``; in cycles where both sides have them."""
    if time is None:
        return ""
    if time.unit == "ns":
        return f"{format_duration_ns(time.before)} → {format_duration_ns(time.after)}  {format_speedup(time.speedup)}"
    return f"{format_count(time.before)} → {format_count(time.after)} cycles  {format_speedup(time.speedup)}"


def describe_both_times(
    verdict: Verdict, time: TimeChange | None, durations_ns: tuple[float | None, float | None]
) -> str:
    """Times before and after; with their ratio where they are compared."""
    if verdict is not Verdict.OTHER_WORK:
        return describe_time(time)
    before_ns, after_ns = durations_ns
    return f"{format_duration_ns(before_ns)}, {format_duration_ns(after_ns)}"


def describe_range(time: TimeChange) -> str:
    """Range of a speedup: ``between 1.94× and 2.06× (3 and 3 launches)``; one number where its ends are written alike."""
    low, high = format_speedup(time.low), format_speedup(time.high)
    return f"{low} ({time.basis})" if low == high else f"between {low} and {high} ({time.basis})"


def name_changed_line(part: PartChange, show: Callable[[int | None], str]) -> str:
    """A line's place, and whether it is gone, new, or stood elsewhere; ``show`` writes the place of a line number."""
    shown = show(part.before_line if part.after_line is None else part.after_line)
    if part.after_line is None:
        return f"{shown} (gone)"
    if part.before_line is None:
        return f"{shown} (new)"
    return shown if part.before_line == part.after_line else f"{shown} (was {part.before_line})"


def build_part_table(title: str, changes: Sequence[PartChange], name: Callable[[PartChange], str]) -> Table:
    """Parts of a kernel that changed notably, largest first."""
    shown = [change for change in changes if _is_notable_part(change, changes)][:_MOST_PARTS]
    return tabulate(
        shown,
        [
            (right("before"), lambda change: _format_part(change)[0]),
            (right("after"), lambda change: _format_part(change)[1]),
            (right("change"), lambda change: _format_part(change)[2]),
            (flexible(keeps_end=True), lambda change: (name(change), Style.CODE)),
        ],
        title,
    )


def _is_notable_part(change: PartChange, changes: Sequence[PartChange]) -> bool:
    if change.before_ns is None or change.after_ns is None:
        return abs(change.after_ratio - change.before_ratio) >= LEAST_CHANGE_RATIO
    whole = max((one.before_ns / one.before_ratio for one in changes if one.before_ns and one.before_ratio), default=0)
    return abs(change.after_ns - change.before_ns) >= LEAST_CHANGE_RATIO * whole


def _format_part(change: PartChange) -> tuple[str, str, str]:
    if change.before_ns is None or change.after_ns is None:
        difference_ratio = change.after_ratio - change.before_ratio
        return format_percent(change.before_ratio), format_percent(change.after_ratio), format_points(difference_ratio)
    difference = change.after_ns - change.before_ns
    sign = "+" if difference > 0 else "−"
    return (
        format_duration_ns(change.before_ns) if change.before_ns else UNKNOWN,
        format_duration_ns(change.after_ns) if change.after_ns else UNKNOWN,
        f"{sign}{format_duration_ns(abs(difference))}",
    )


def make_part(change: PartChange, key: str) -> dict[str, Any]:
    """A part's change as JSON, its name under ``key``."""
    lines = "before_line after_line " if key == "file" else ""
    return {key: change.name, **pick(change, f"{lines}before_ns after_ns before_ratio after_ratio")}
