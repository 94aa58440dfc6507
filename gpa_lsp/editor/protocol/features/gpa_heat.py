"""``gpaLsp/heat``: how hot each line is, for clients that colour lines. One mark per line, and the lines that were edited since."""

import math
from typing import Any

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.marks import list_marks
from gpa_lsp.editor.model import Freshness, Mark, Origin
from gpa_lsp.editor.protocol.features import Method, PushFeature
from gpa_lsp.editor.sass.library import SassView

METHOD = Method[dict[str, Any], None]("gpaLsp/heat")
LEVELS = 10

_MOST_MARKS = 4096  # Of one document, the hottest ones: a message of more than a megabyte holds up what comes behind it


def list_heat(view: DocumentView) -> tuple[Mark, ...]:
    """The marks of a document, ascending, then its stale lines."""
    marks = list_marks(view, view.settings.least_share_ratio)
    if len(marks) > _MOST_MARKS:
        hottest = sorted(marks, key=lambda one: -one.share_ratio)[:_MOST_MARKS]
        marks = tuple(sorted(hottest, key=lambda one: one.line))
    return (*marks, *(Mark(line=line, freshness=Freshness.STALE) for line in view.stale))


def list_sass_heat(view: SassView) -> tuple[Mark, ...]:
    """The marks of a SASS document, ascending; the text the client holds was not edited."""
    from gpa_lsp.editor.sass.hot_rows import mark_rows

    rows = mark_rows(view.document, view.settings.least_share_ratio, view.settings.metric)
    return tuple(sorted((mark for _, mark in rows), key=lambda mark: mark.line))


def scale_ratio(share_ratio: float) -> float:
    """A share on the scale people see: its square root, so that a twentieth of the time is a fifth of the colour and not a trace of it.

    >>> scale_ratio(0.05), scale_ratio(0.64), scale_ratio(1.0)
    (0.2236, 0.8, 1.0)
    """
    return round(math.sqrt(min(max(share_ratio, 0.0), 1.0)), 4)


def _wrap(uri: str, version: int | None, items: tuple[Mark, ...]) -> dict[str, Any]:
    def list_lines(are: Freshness | Origin) -> list[int]:
        return [mark.line - 1 for mark in items if are in (mark.freshness, mark.origin)]

    return {
        "uri": uri,
        "version": version,
        "marks": [_encode(mark) for mark in items if mark.freshness is not Freshness.STALE],
        "stale": list_lines(Freshness.STALE),
        "unverified": list_lines(Freshness.UNVERIFIED),
        "simulated": list_lines(Origin.SIMULATED),
    }


def _encode(mark: Mark) -> dict[str, Any]:
    ratio = scale_ratio(mark.share_ratio)
    return {
        "line": mark.line - 1,
        "ratio": ratio,
        "level": min(LEVELS - 1, int(ratio * LEVELS)),
        "kind": mark.kind.value,
        "kernel": mark.kernel,
        "text": mark.text,
    }


FEATURE = PushFeature(
    method=METHOD,
    list_items=list_heat,
    list_sass_items=list_sass_heat,
    wrap=_wrap,
    is_wanted=lambda abilities: abilities.heat,
)
