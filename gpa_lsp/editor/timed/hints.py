"""The few words at the end of a kernel's first line about its timed launches: ``measured 36.3 µs ± 0.05 · 12 % faster``."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.metrics import MetricKind
from gpa_lsp.editor.model import Hint
from gpa_lsp.editor.timed.view import TimedAnchor, compare, describe_time
from gpa_lsp.foundation.numbers import format_duration_ns, format_timed_ns

_WITH_TIMES = (MetricKind.USUAL, MetricKind.TIME)  # Who chose to see another metric sees no times


def list_time_hints(view: DocumentView, first: int, last: int, find_room: Callable[[int], int]) -> list[Hint]:
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
        _make_hint(view, line, tuple(anchors), find_room(line)) for line, anchors in by_line if first <= line <= last
    ]


def _make_hint(view: DocumentView, line: int, anchors: Sequence[TimedAnchor], room: int) -> Hint:
    """Of several launches the longest; the tooltip has all."""
    longest = max(anchors, key=lambda anchor: anchor.change.time.median_ns)
    forms = list(_list_forms(longest, len(anchors)))
    label = next((form for form in forms if len(form) <= room), forms[-1])
    tips = (f"{anchor.change.time.shape} {describe_time(anchor)}" for anchor in anchors)
    return Hint(position=view.positions.find_end(line), label=label, tooltip="; ".join(tips))


def _list_forms(anchor: TimedAnchor, count: int) -> Iterator[str]:
    """What a hint may say, the fullest first. That the text is another one now is never left out."""
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
