"""The few words at the end of a source line: what it suffers and from where, what it makes others suffer, or that it was edited since.

Editors cut a hint: VS Code at 43 characters. So where it leads comes first, one quantity with its name second, and what does not fit is in the
tooltip, which says all of it.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby

from lsprotocol.types import InlayHint, InlayHintLabelPart
from msgspec import Struct

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.line_words import describe_taken, label_called_from, label_share, locate_from, name_briefly
from gpa_lsp.editor.lines.index import CauseLine, HotLine, ValueLine
from gpa_lsp.editor.lines.metric_values import describe_value, label_value
from gpa_lsp.editor.lines.places import Counterpart, Place, describe_counterpart, gather_counterparts, gather_for_reason
from gpa_lsp.editor.metrics import MetricKind
from gpa_lsp.editor.predicted.metric_values import list_predicted_hints
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.timed.view import TimedAnchor, compare, describe_time
from gpa_lsp.foundation.numbers import format_duration_ns, format_percent, format_timed_ns
from gpa_lsp.foundation.visible_text import shorten
from gpa_lsp.report.measured_files import MeasuredFile

MOST_CHARS = 43  # Of a hint; VS Code cuts what is longer

UNVERIFIED_MARK = " ?"  # Behind the words of a hint in a source that may have changed since it was measured

SIMULATED_MARK = ", simulated"  # Behind the words of a hint whose numbers a model says

_LEAST_LINK_RATIO = 0.2  # Of what a line suffers or causes: a place with less is not what the line is about

_EDITED = "edited since"
_WHEN = "numbers come back when it is measured or simulated again"


class _Side(Struct, frozen=True, kw_only=True):
    """One thing a hint says."""

    ratio: float  # of the kernel's samples; what is more comes first
    link: InlayHintLabelPart | None  # the place at the other end; None where none stands out
    words: str  # a quantity and its name
    tooltip: str  # a sentence without its stop


def list_hints(view: DocumentView, first: int, last: int) -> list[InlayHint]:
    """List the hints of some lines, as many as a screen bears: measurements, times of launches, and emulation.

    Args:
        first: first line, 1-based.
    """
    measured = _list_measured(view, first, last) if view.settings.show_inlay_hints else []
    left = {hint.position.line + 1: MOST_CHARS - _count_chars(hint) for hint in measured}
    timed = list_time_hints(view, first, last, lambda line: left.get(line, MOST_CHARS))
    by_line: dict[int, list[InlayHint]] = {}
    for hint in (*measured, *timed, *list_predicted_hints(view, first, last)):
        by_line.setdefault(hint.position.line, []).append(hint)
    return [hint for line in sorted(by_line) for hint in _fit_line(by_line[line])]


def _fit_line(hints: Sequence[InlayHint]) -> list[InlayHint]:
    """The first hint of a line, and others as far as they fit: editors cut all of them together. What is left out goes into the first tooltip."""
    first, *others = hints
    room = MOST_CHARS - _count_chars(first)
    shown: list[InlayHint] = []
    left_out: list[InlayHint] = []
    for hint in others:
        if _count_chars(hint) <= room:
            shown.append(hint)
            room -= _count_chars(hint)
        else:
            left_out.append(hint)
    first.tooltip = "; ".join(str(hint.tooltip) for hint in (first, *left_out) if hint.tooltip) or None
    return [first, *shown]


def _count_chars(hint: InlayHint) -> int:
    return len(hint.label) if isinstance(hint.label, str) else sum(len(part.value) for part in hint.label)


def _list_measured(view: DocumentView, first: int, last: int) -> list[InlayHint]:
    lines, leading = view.once(_choose_lines)
    wanted = lines[bisect_left(lines, first) : bisect_right(lines, last)]
    hints = (_make_hint(view, line, is_leading=line in leading) for line in wanted)
    return [hint for hint in hints if hint is not None]


def _choose_lines(view: DocumentView) -> tuple[list[int], frozenset[int]]:
    """The lines of the document that have a hint, ascending, and those that lead."""
    shares, leading = _measure_shares(view)
    chosen = thin_out(shares, leading, view.settings.most_hints_on_screen)
    return sorted({*chosen, *_list_first(view.stale)}), leading


def _measure_shares(view: DocumentView) -> tuple[dict[int, float], frozenset[int]]:
    """Line → its share of what is shown, of lines at or above the user's threshold; and the lines that lead, however little they have."""
    kind, least = view.settings.metric.kind, view.settings.min_share_ratio
    if view.settings.metric.is_from_emulation:
        return {}, frozenset()
    if kind is MetricKind.CAUSE:
        return view.cause_lines.measure_above(least), view.cause_lines.list_leading()
    if kind not in (MetricKind.USUAL, MetricKind.TIME):
        return view.value_lines.measure_above(least), view.value_lines.list_leading()
    shares = view.hot_lines.measure_above(least)
    if kind is MetricKind.USUAL:
        for line, ratio in view.cause_lines.measure_above(least).items():
            shares[line] = max(ratio, shares.get(line, 0.0))
    return shares, view.hot_lines.list_leading()


def _list_first(stale: tuple[int, ...]) -> list[int]:
    """First line of each run of adjacent lines."""
    known = set(stale)
    return [line for line in stale if line - 1 not in known]


def _make_hint(view: DocumentView, line: int, *, is_leading: bool) -> InlayHint | None:
    """Make a hint with a short tooltip: all hints of a file are asked for with every edit, and the line's hover has the stall table."""
    found, source = _find_sides(view, line, is_leading=is_leading)
    sides = sorted((side for side in found if side is not None), key=lambda side: -side.ratio)
    if not sides and line in view.stale:
        return InlayHint(position=view.positions.find_end(line), label=_EDITED, tooltip=_WHEN)
    if not sides:
        return None
    mark, doubts = ("", []) if source is None else _describe_source(*source)
    return InlayHint(
        position=view.positions.find_end(line),
        label=_join(_fit(sides, MOST_CHARS - len(mark)), mark),
        tooltip="; ".join([*(side.tooltip for side in sides), *doubts]),
    )


def _describe_source(file: MeasuredFile, shown: VisibleKernel) -> tuple[str, list[str]]:
    """Marks and tooltip clauses of a hint whose numbers were simulated, or may be of another text."""
    doubt, simulated = file.describe_doubt(), shown.kernel.brief.simulated
    clauses = [*([simulated] if simulated else []), *([f"unverified: {doubt}"] if doubt else [])]
    return SIMULATED_MARK * bool(simulated) + UNVERIFIED_MARK * bool(doubt), clauses


def _find_sides(
    view: DocumentView, line: int, *, is_leading: bool
) -> tuple[tuple[_Side | None, ...], tuple[MeasuredFile, VisibleKernel] | None]:
    """Parts of a line's hint in the metric that is shown, and the file and the kernel it was measured in."""
    metric = view.settings.metric
    if metric.is_from_emulation:
        return (), None
    if metric.kind not in (MetricKind.USUAL, MetricKind.TIME, MetricKind.CAUSE):
        value = view.value_lines.find_top(line)
        return ((), None) if value is None else ((_say_value(view, value),), (value.file, value.shown))
    hot = None if metric.kind is MetricKind.CAUSE else view.hot_lines.find_top(line)
    cause = None if metric.kind is MetricKind.TIME else view.cause_lines.find_top(line)
    top = hot if hot is not None else cause
    source = None if top is None else (top.file, top.shown)
    if metric.kind is MetricKind.CAUSE:
        return (None if cause is None else _say_blamed(view, cause),), source
    return (_say_suffering(view, hot, is_leading=is_leading), _say_causing(view, cause)), source


def _fit(sides: Sequence[_Side], room: int) -> list[InlayHintLabelPart]:
    """The first thing in any case, its name cut from the left where it must be. A line has one share: others are the arrows alone that say which way
    they are, as far as they fit; their tooltips have the rest."""
    first, *others = sides
    shown = _list_parts(first, room)
    for side in others:
        left = room - sum(len(part.value) for part in shown) - len(" · ")
        if side.link is not None and len(side.link.value) <= left:
            shown.extend((InlayHintLabelPart(value=" · "), side.link))
    return shown


def _list_parts(side: _Side, room: int) -> list[InlayHintLabelPart]:
    if side.link is None:
        return [InlayHintLabelPart(value=shorten(side.words, room))]
    left = max(room - len(side.words) - len(" · "), len("← …:12"))
    value = side.link.value
    if len(value) > left:  # the beginning of a file's name goes: the line counts
        value = f"{value[:2]}…{value[len(value) + 3 - left :]}"
    link = InlayHintLabelPart(value=value, tooltip=side.link.tooltip, location=side.link.location)
    return [link, InlayHintLabelPart(value=f" · {shorten(side.words, room - len(value) - len(' · '))}")]


def _join(parts: Sequence[InlayHintLabelPart], mark: str) -> str | tuple[InlayHintLabelPart, ...]:
    """Plain text where no part is a link: some clients draw parts badly, and none of them gains by it."""
    if any(part.location is not None for part in parts):
        return (*parts, InlayHintLabelPart(value=mark)) if mark else tuple(parts)
    return "".join(part.value for part in parts) + mark


def _say_suffering(view: DocumentView, hot: HotLine | None, *, is_leading: bool) -> _Side | None:
    """``← line 12 · 41 % samples, long_scoreboard``; None below the user's threshold, but for the hottest lines of a kernel."""
    if hot is None or not (hot.share_ratio >= view.settings.min_share_ratio or is_leading):
        return None
    called = label_called_from(hot)
    place = hot.place
    causes = hot.shown.kernel.causes.get(place)
    link = None
    if causes is not None and not hot.is_mostly_called:
        waits = gather_counterparts(causes.waits)
        link = _link(view, hot.shown, place, waits, whole=hot.row.inclusive_samples, arrow="←")
    taken = "" if hot.is_mostly_called and not hot.row.inclusive_samples else describe_taken(hot)
    return _Side(
        ratio=hot.share_ratio,
        link=link,
        words=called if hot.is_mostly_called else _label_taken(view, hot),
        tooltip="; ".join(part for part in (taken, called and f"{called}, an estimate") if part),
    )


def _label_taken(view: DocumentView, hot: HotLine) -> str:
    """Share of a line for the metric *time*; else with its heaviest stall reason."""
    if view.settings.metric.kind is not MetricKind.TIME:
        return label_share(hot)
    return f"{format_percent(hot.shown.kernel.report.share_of(hot.row.inclusive_samples).ratio)} of samples"


def _say_value(view: DocumentView, line: ValueLine) -> _Side:
    """``1,024 sectors, 512 at best``: a number and its unit; its share of the kernel is in the tooltip. A stall reason leads to its cause."""
    metric = view.settings.metric
    causes = line.shown.kernel.causes.get(line.place) if metric.kind is MetricKind.REASON else None
    link = None
    if causes is not None:
        waits = gather_for_reason(causes.waits, metric.reason)
        link = _link(view, line.shown, line.place, waits, whole=line.value.number, arrow="←")
    return _Side(
        ratio=line.value.ratio,
        link=link,
        words=label_value(metric, line.value),
        tooltip=describe_value(metric, line.value, line.shown.name),
    )


def _say_blamed(view: DocumentView, cause: CauseLine) -> _Side | None:
    """``→ line 14 · causes 73 %``: all stalls that are blamed on this line, those it waits for itself among them."""
    ratio = cause.caused_ratio
    if ratio <= 0:
        return None
    others = [one for one in gather_counterparts(cause.causes.waiters) if one.place != cause.place]
    return _Side(
        ratio=ratio,
        link=_link(view, cause.shown, cause.place, others, whole=sum(one.samples for one in others), arrow="→"),
        words=f"causes {format_percent(ratio)}",
        tooltip=f"{format_percent(ratio)} of the samples of {cause.shown.name} are stalls that this line causes",
    )


def _say_causing(view: DocumentView, cause: CauseLine | None) -> _Side | None:
    """The same where other lines wait for this one; None below the user's threshold."""
    total = 0 if cause is None else cause.shown.kernel.report.total_samples
    if cause is None or cause.causes.blame.causing_samples < view.settings.min_share_ratio * total:
        return None  # before the pairs are looked at
    others = sum(one.samples for one in gather_counterparts(cause.causes.waiters) if one.place != cause.place)
    return _say_blamed(view, cause) if others and others >= view.settings.min_share_ratio * total else None


def _link(
    view: DocumentView,
    shown: VisibleKernel,
    own: Place,
    counterparts: Sequence[Counterpart],
    *,
    whole: float,
    arrow: str,
) -> InlayHintLabelPart | None:
    """The place at the other end that matters most, a way to it where it is on this machine; None where that is the line itself, or code without
    lines, or hardly any of the whole.
    """
    top = next(iter(counterparts), None)
    if top is None or top.place is None or top.place == own or top.samples < _LEAST_LINK_RATIO * whole:
        return None
    location = locate_from(view, shown, top.place)
    name = name_briefly(view, shown, top.place, location)
    return (
        None
        if not name
        else InlayHintLabelPart(value=f"{arrow} {name}", tooltip=describe_counterpart(top), location=location)
    )


SCREEN_LINES = 40  # What a reader has before their eyes


def thin_out(shares: Mapping[int, float], leading: Collection[int], most: int) -> list[int]:
    """Lines of which no screen shows more than so many, the largest shares first.

    >>> thin_out({1: 0.1, 2: 0.3, 3: 0.2, 90: 0.01}, [3], 2), thin_out({1: 0.1, 2: 0.3}, [], 0)
    ([2, 3, 90], [1, 2])
    """
    if not most:
        return sorted({*shares, *leading})
    taken = sorted(leading)
    for line in sorted(shares.keys() - set(leading), key=lambda line: (-shares[line], line)):
        position = bisect_left(taken, line)
        around = [*taken[max(0, position - most) : position], line, *taken[position : position + most]]
        if not any(end - start < SCREEN_LINES for start, end in zip(around, around[most:], strict=False)):
            insort(taken, line)
    return taken


_WITH_TIMES = (MetricKind.USUAL, MetricKind.TIME)  # Who chose to see another metric sees no times


def list_time_hints(view: DocumentView, first: int, last: int, find_room: Callable[[int], int]) -> list[InlayHint]:
    """The hints of some lines, by line; none where the lens stands in their place and says it.

    Args:
        first: first line, 1-based.
        find_room: of a line; characters that its hint should have at most.
    """
    is_wanted = view.settings.show_inlay_hints and view.settings.metric.kind in _WITH_TIMES
    if not is_wanted or view.abilities.line_end_lenses:
        return []
    by_line = groupby(view.timed, key=lambda anchor: anchor.line)
    return [
        _make_time_hint(view, line, tuple(anchors), find_room(line))
        for line, anchors in by_line
        if first <= line <= last
    ]


def _make_time_hint(view: DocumentView, line: int, anchors: Sequence[TimedAnchor], room: int) -> InlayHint:
    """The time of the longest launch; the tooltip has all."""
    longest = max(anchors, key=lambda anchor: anchor.change.time.median_ns)
    forms = list(_list_forms(longest, len(anchors)))
    label = next((form for form in forms if len(form) <= room), forms[-1])
    tips = (f"{anchor.change.time.shape} {describe_time(anchor)}" for anchor in anchors)
    return InlayHint(position=view.positions.find_end(line), label=label, tooltip="; ".join(tips))


def _list_forms(anchor: TimedAnchor, count: int) -> Iterator[str]:
    """Forms of a time hint, the fullest first. The mark of an edited text is in each."""
    time, before = anchor.change.time, anchor.change.before
    note = "" if before is None else compare(before, time).removesuffix(" than before")
    if anchor.is_edited:
        note = "before your edits"
    whole = f"measured {format_timed_ns(time.median_ns, time.error_ns)}"
    brief = format_duration_ns(time.median_ns)
    several = f"longest of {count}" if count > 1 else ""
    behind = f"· {brief}"  # another hint of the line
    for parts in ((whole, note, several), (whole, note), (f"measured {brief}", note), (behind, note)):
        yield " · ".join(part for part in parts if part)
    if not anchor.is_edited:
        yield behind
