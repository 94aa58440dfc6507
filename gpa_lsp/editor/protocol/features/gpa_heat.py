"""``gpaLsp/heat``: how hot each line is, for clients that colour lines. One mark per line, and the lines that were edited since."""

import math
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.heat import HeatKind, LineHeat, measure_heat
from gpa_lsp.editor.protocol.features import Method, PushFeature
from gpa_lsp.editor.sass.library import SassView

METHOD = Method[dict[str, Any], None]("gpaLsp/heat")
LEVELS = 10

_MOST_MARKS = 4096  # Of one document, the hottest ones: a message of more than a megabyte holds up what comes behind it


class HeatMark(Struct, frozen=True, kw_only=True):
    """A hot line as it is sent."""

    line: int  # 1-based
    ratio: float  # on the scale people see, 0 to 1
    level: int  # 0 to 9
    kind: str  # ``suffers`` or ``causes``
    kernel: str  # short name
    text: str  # a few words
    is_unverified: bool = False  # nobody can tell whether its source is what was measured
    is_simulated: bool = False  # a model says so, and nothing was measured


class StaleMark(Struct, frozen=True, kw_only=True):
    """A line that was changed since it was measured; 1-based."""

    line: int


def list_heat(view: DocumentView) -> tuple[HeatMark | StaleMark, ...]:
    """The marks of a document, ascending, then its stale lines."""
    heat = measure_heat(view, view.settings.least_share_ratio)
    if len(heat) > _MOST_MARKS:
        hottest = sorted(heat, key=lambda one: -one.share_ratio)[:_MOST_MARKS]
        heat = tuple(sorted(hottest, key=lambda one: one.line))
    return (*map(_make_mark, heat), *(StaleMark(line=line) for line in view.stale))


def list_sass_heat(view: SassView) -> tuple[HeatMark, ...]:
    """The marks of a SASS document, ascending; the text the client holds was not edited."""
    from gpa_lsp.editor.sass.hot_rows import label_row, measure_row_heat

    shown = view.document.shown
    marks = (
        _scale(
            line=int(view.document.line_of_row[heat.row]),
            share_ratio=heat.share_ratio,
            kind=heat.kind,
            kernel=shown.name,
            text=label_row(view, heat),
        )
        for heat in measure_row_heat(view.document, view.settings.least_share_ratio, view.settings.metric)
    )
    if shown.kernel.report.is_simulated:
        marks = (replace(mark, is_simulated=True) for mark in marks)
    return tuple(sorted(marks, key=lambda mark: mark.line))


def _make_mark(heat: LineHeat) -> HeatMark:
    mark = _scale(line=heat.line, share_ratio=heat.share_ratio, kind=heat.kind, kernel=heat.kernel, text=heat.text)
    if not (heat.is_unverified or heat.is_simulated):
        return mark
    return replace(mark, is_unverified=heat.is_unverified, is_simulated=heat.is_simulated)


def _scale(*, line: int, share_ratio: float, kind: HeatKind, kernel: str, text: str) -> HeatMark:
    ratio = scale_ratio(share_ratio)
    level = min(LEVELS - 1, int(ratio * LEVELS))
    return HeatMark(line=line, ratio=ratio, level=level, kind=kind.value, kernel=kernel, text=text)


def scale_ratio(share_ratio: float) -> float:
    """A share on the scale people see: its square root, so that a twentieth of the time is a fifth of the colour and not a trace of it.

    >>> scale_ratio(0.05), scale_ratio(0.64), scale_ratio(1.0)
    (0.2236, 0.8, 1.0)
    """
    return round(math.sqrt(min(max(share_ratio, 0.0), 1.0)), 4)


def _wrap(uri: str, version: int | None, items: tuple[HeatMark | StaleMark, ...]) -> dict[str, Any]:
    marks = [
        {
            "line": mark.line - 1,
            "ratio": mark.ratio,
            "level": mark.level,
            "kind": mark.kind,
            "kernel": mark.kernel,
            "text": mark.text,
        }
        for mark in items
        if isinstance(mark, HeatMark)
    ]
    stale = [mark.line - 1 for mark in items if isinstance(mark, StaleMark)]
    unverified = [mark.line - 1 for mark in items if isinstance(mark, HeatMark) and mark.is_unverified]
    simulated = [mark.line - 1 for mark in items if isinstance(mark, HeatMark) and mark.is_simulated]
    doubts = {"unverified": unverified, "simulated": simulated}
    return {"uri": uri, "version": version, "marks": marks, "stale": stale, **doubts}


FEATURE = PushFeature(
    method=METHOD,
    list_items=list_heat,
    list_sass_items=list_sass_heat,
    wrap=_wrap,
    is_wanted=lambda abilities: abilities.heat,
)
