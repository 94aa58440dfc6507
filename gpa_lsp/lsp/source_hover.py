"""What the hover of a source line says: its stalls, their causes and victims, and the roofs of its kernel."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpa_lsp.lsp.cause_lines import CauseLine
from gpa_lsp.lsp.cause_words import describe_causes, summarise_cause
from gpa_lsp.lsp.document_view import DocumentView, HotLine
from gpa_lsp.lsp.line_marks import describe_marks
from gpa_lsp.lsp.line_names import name_place
from gpa_lsp.lsp.predicted_words import describe_predictions
from gpa_lsp.lsp.roofline_hover import describe_roofs_of, draw_roofline_of
from gpa_lsp.lsp.session import VisibleKernel
from gpa_lsp.lsp.stall_table import describe_line
from gpa_lsp.lsp.static_words import describe_statics
from gpa_lsp.lsp.thresholds import find_least_share

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.render.stall_picture import StallPart

_STALE = "_edited since it was measured; its numbers come back with the next measurement_"


def describe_hover(view: DocumentView, line: int) -> str | None:
    """The hover of a line (1-based) as Markdown; None away from lines that have something to say."""
    least_ratio = find_least_share(view.settings)
    lines = [hot for hot in view.hot_lines.get(line, ()) if hot.share_ratio >= least_ratio]
    cause = _choose_cause(view, line, lines, least_ratio)
    if lines:
        head, shown = describe_line(lines), lines[0].shown
    elif cause is not None:
        head, shown = summarise_cause(cause, partial(name_place, view, cause.shown)), cause.shown
    else:
        said = [part for part in (describe_statics(view, line), describe_predictions(view, line)) if part]
        return "\n\n".join(said) or (_STALE if line in view.stale else None)
    summary, _, details = head.partition("\n\n")
    parts = [  # what is said in a glance comes first: a hover may be taller than its window
        summary,
        draw_picture(lines[0] if lines else None, shown) if view.abilities.images else "",
        describe_roofs_of(shown, with_bars=not view.abilities.images),
        details,
        describe_marks(lines),
        describe_causes(cause, partial(name_place, view, shown)) if cause is not None else "",
        draw_roofline_of(shown) if view.abilities.images else "",
        describe_statics(view, line) or "",
        describe_predictions(view, line) or "",
    ]
    return "\n\n".join(part for part in parts if part)


def _choose_cause(view: DocumentView, line: int, lines: Sequence[HotLine], least_ratio: float) -> CauseLine | None:
    """Of the kernel the line is hottest in; of the one it costs most where it takes no samples itself."""
    causes = view.cause_lines.get(line, ())
    if lines:
        return next((cause for cause in causes if cause.shown is lines[0].shown), None)
    return next((cause for cause in causes if cause.share_ratio >= least_ratio), None)


def draw_picture(hot: HotLine | None, shown: VisibleKernel) -> str:
    """The stalls of a line and the roofs of its kernel as a picture; empty where there is nothing to draw.

    Args:
        hot: the line; None for one without samples of its own.
        shown: the kernel.
    """
    from gpa_lsp.render.stall_picture import RoofBar, describe_picture, draw_stall_picture, embed_picture

    advice = shown.kernel.report.advice
    roofs = [
        RoofBar(name=unit.name, achieved_ratio=unit.achieved_ratio, ceiling_ratio=unit.ceiling_ratio)
        for unit in (() if advice is None else advice.units)
    ]
    parts = [] if hot is None else _list_parts(hot)
    if not parts and not roofs:
        return ""
    return embed_picture(draw_stall_picture(parts, roofs), describe_picture(parts, roofs))


def _list_parts(hot: HotLine) -> "list[StallPart]":
    from gpa_lsp.render.stall_picture import StallPart

    total = hot.row.inclusive_samples
    counts = hot.row.inclusive_by_reason.items()
    return [StallPart(reason=reason, ratio=count.all_samples / total) for reason, count in counts if total]
