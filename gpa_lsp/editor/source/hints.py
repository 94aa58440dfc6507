"""The few words at the end of a source line: what it suffers and from where, what it makes others suffer, or that it was edited since."""

from collections.abc import Sequence

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_percent, format_share
from gpa_lsp.editor.counterparts import Counterpart, describe_counterpart, gather_counterparts
from gpa_lsp.editor.document_view import DocumentView, HotLine
from gpa_lsp.editor.lines.causes import CauseLine
from gpa_lsp.editor.lines.names import locate_from, name_location
from gpa_lsp.editor.lines.places import Place
from gpa_lsp.editor.model import Hint, LabelPart
from gpa_lsp.editor.predicted.hints import list_predicted_hints
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.stall_table import label_called, label_line, label_own

_LEAST_LINK_RATIO = 0.2
"""Of what a line suffers or causes: a place with less is not what the line is about."""

_EDITED = "edited since measured"
_WHEN = "numbers come back with the next measurement"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One thing a hint says."""

    parts: tuple[LabelPart, ...]
    tooltip: str


def list_hints(view: DocumentView, first: int, last: int) -> list[Hint]:
    """A hint for each of some lines whose share is above the user's threshold, or that was edited since it was measured; then those of the emulation.

    Args:
        view: the document.
        first: first line, 1-based.
        last: last line.
    """
    measured = _list_measured(view, first, last) if view.settings.show_inlay_hints else []
    return [*measured, *list_predicted_hints(view, first, last)]


def _list_measured(view: DocumentView, first: int, last: int) -> list[Hint]:
    """By line."""
    least = view.settings.min_share_ratio
    hot = set(view.hot_lines.list_above(least))
    causing = set(view.cause_lines.list_above(least))
    stale = _list_first(view.stale)
    hints = (_make_hint(view, line) for line in sorted({*hot, *causing, *stale}) if first <= line <= last)
    return [hint for hint in hints if hint is not None]


def _list_first(stale: tuple[int, ...]) -> list[int]:
    """Of lines below each other the first one speaks for all."""
    known = set(stale)
    return [line for line in stale if line - 1 not in known]


def _make_hint(view: DocumentView, line: int) -> Hint | None:
    """Its tooltip is short: all hints of a file are asked for with every edit, and the stall table is what the line's hover is for."""
    sides = [
        side
        for side in (
            _say_suffering(view, view.hot_lines.find_top(line)),
            _say_causing(view, view.cause_lines.find_top(line)),
        )
        if side is not None
    ]
    if not sides and line in view.stale:
        sides = [_Side(parts=(LabelPart(value=_EDITED),), tooltip=_WHEN)]
    if not sides:
        return None
    parts = list(sides[0].parts)
    for side in sides[1:]:
        parts.extend((LabelPart(value=" · "), *side.parts))
    return Hint(
        position=view.positions.find_end(line),
        label=_join(parts),
        tooltip="; ".join(side.tooltip for side in sides),
    )


def _join(parts: list[LabelPart]) -> str | tuple[LabelPart, ...]:
    """Plain text where no part is a link: some clients draw parts badly, and none of them gains by it."""
    has_links = any(part.location is not None for part in parts)
    return tuple(parts) if has_links else "".join(part.value for part in parts)


def _say_suffering(view: DocumentView, hot: HotLine | None) -> _Side | None:
    """``41 % long_scoreboard ← line 12``; None below the user's threshold."""
    if hot is None or hot.share_ratio < view.settings.min_share_ratio:
        return None
    total = hot.shown.kernel.report.total_samples
    called = "" if hot.is_mostly_called else label_called(hot.row.called_samples, total)
    parts = [LabelPart(value=label_line(hot) if hot.is_mostly_called else label_own(hot))]
    place = (hot.row.file or "", hot.row.line or 0)
    causes = hot.shown.kernel.causes.get(place)
    if causes is not None and not hot.is_mostly_called:
        waits = gather_counterparts(causes.waits)
        parts.extend(_link(view, hot.shown, place, waits, whole=hot.row.inclusive_samples, arrow="←"))
    if called:
        parts.append(LabelPart(value=f", {called}"))
    share = format_share(hot.shown.kernel.report.share_of(hot.row.inclusive_samples))
    return _Side(parts=tuple(parts), tooltip=f"{share} of the samples of {hot.shown.name}")


def _say_causing(view: DocumentView, cause: CauseLine | None) -> _Side | None:
    """``causes 60 % → line 14``: what other lines suffer from this one; None below the user's threshold."""
    total = 0 if cause is None else cause.shown.kernel.report.total_samples
    if cause is None or cause.causes.blame.causing_samples < view.settings.min_share_ratio * total:
        return None  # before the pairs are looked at
    others = [one for one in gather_counterparts(cause.causes.waiters) if one.place != cause.place]
    samples = sum(one.samples for one in others)
    ratio = min(1.0, samples / (total or 1))
    if not samples or ratio < view.settings.min_share_ratio:
        return None
    text = LabelPart(value=f"causes {format_percent(ratio)}")
    link = _link(view, cause.shown, cause.place, others, whole=samples, arrow="→")
    tooltip = f"{format_percent(ratio)} of the samples of {cause.shown.name} wait elsewhere for this line"
    return _Side(parts=(text, *link), tooltip=tooltip)


def _link(
    view: DocumentView,
    shown: VisibleKernel,
    own: Place,
    counterparts: Sequence[Counterpart],
    *,
    whole: float,
    arrow: str,
) -> tuple[LabelPart, ...]:
    """The place at the other end that matters most; none where that is the line itself, or code without lines, or hardly any of the whole."""
    top = next(iter(counterparts), None)
    if top is None or top.place is None or top.place == own or top.samples < _LEAST_LINK_RATIO * whole:
        return ()
    location = locate_from(view, shown, top.place)
    if location is None:
        return ()
    text = f" {arrow} {name_location(view, top.place, location)}"
    return (LabelPart(value=text, tooltip=describe_counterpart(top), location=location),)
