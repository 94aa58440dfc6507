"""What the hover of a source line says: its stalls, their causes and victims, and the roofs of its kernel."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpa_lsp.document.markdown_text import begin_paragraph
from gpa_lsp.editor.cause_table import describe_causes, summarise_cause
from gpa_lsp.editor.document_view import DocumentView, HotLine
from gpa_lsp.editor.history import describe_course_of
from gpa_lsp.editor.kernel_page import describe_places, describe_verdict
from gpa_lsp.editor.lines.index import CauseLine
from gpa_lsp.editor.lines.names import name_place
from gpa_lsp.editor.predicted.hover import describe_predictions
from gpa_lsp.editor.roofline import describe_known_roofs_of, draw_roofline_of
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.stall_table import describe_line, describe_origin
from gpa_lsp.editor.timed.view import describe_times

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.diagnosis.analyses.answers import LineMark
    from gpa_lsp.document.stall_picture import StallPart

_MOST_LINE_MARKS = 5  # Of what the analyses say, on one line

_STALL_SOURCES = "stall_sources"  # The question whose marks say what lines cause, by instructions

_MOST_REQUESTS = 6
_MOST_MARKS = 6  # Of what the code says

_STALE = "_edited since it was measured; its numbers come back with the next measurement_"


def describe_hover(view: DocumentView, line: int) -> str | None:
    """The hover of a line (1-based) as Markdown; None away from lines that have something to say."""
    least_ratio = view.settings.least_share_ratio
    lines = [hot for hot in view.hot_lines.get(line, ()) if hot.share_ratio >= least_ratio]
    cause = _choose_cause(view, line, lines, least_ratio)
    if lines:
        head, shown = describe_line(lines), lines[0].shown
    elif cause is not None:
        head, shown = summarise_cause(cause, partial(name_place, view, cause.shown)), cause.shown
    else:
        others = (describe_times(view.timed, line), _describe_statics(view, line), describe_predictions(view, line))
        said = [part for part in others if part]
        return "\n\n".join(said) or (_STALE if line in view.stale else None)
    summary, _, details = head.partition("\n\n")
    parts = [  # what is said in a glance comes first: a hover may be taller than its window
        describe_verdict(shown),
        describe_times(view.timed, line) or "",
        summary,
        draw_picture(lines[0] if lines else None, shown) if view.abilities.images else "",
        describe_course_of(shown.kernel.history, is_drawn=view.abilities.images),
        details,
        _describe_marks(lines),
        "" if lines else _describe_simulation(shown),
        describe_causes(cause, partial(name_place, view, shown)) if cause is not None else "",
        describe_origin(lines[0]) if lines else "",
        describe_known_roofs_of(shown, with_bars=not view.abilities.images),
        describe_places(shown),
        draw_roofline_of(shown) if view.abilities.images else "",
        _describe_statics(view, line) or "",
        describe_predictions(view, line) or "",
    ]
    return "\n\n".join(part for part in parts if part)


def _describe_simulation(shown: VisibleKernel) -> str:
    from gpa_lsp.document.sampling_words import describe_simulation  # it needs numpy

    simulated = describe_simulation(shown.kernel.report)
    return f"_{simulated}_" if simulated else ""


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
    """
    from gpa_lsp.document.markdown_text import embed_picture
    from gpa_lsp.document.stall_picture import describe_picture, draw_stall_picture

    advice = shown.kernel.report.advice
    roofs = () if advice is None else advice.units
    parts = [] if hot is None else _list_parts(hot)
    if not parts and not roofs:
        return ""
    return embed_picture(draw_stall_picture(parts, roofs), describe_picture(parts, roofs))


def _list_parts(hot: HotLine) -> "list[StallPart]":
    from gpa_lsp.document.stall_picture import StallPart

    total = hot.shown.kernel.report.total_samples
    counts = hot.row.inclusive_by_reason.items()
    return [StallPart(reason=reason, ratio=count.all_samples / total) for reason, count in counts if total]


def _describe_statics(view: DocumentView, line: int) -> str | None:
    """The findings and requests on a line (1-based) as Markdown; None for a line without any."""
    marks = view.static_marks.get(line, ())
    requests = () if view.statics is None else view.statics.requests.get(line, ())
    if not marks and not requests:
        return None
    parts = [
        f"* {begin_paragraph(f'{mark.sentence} *({mark.check}, {mark.certainty})*')}" for mark in marks[:_MOST_MARKS]
    ]
    if len(marks) > _MOST_MARKS:
        parts.append(f"* and {len(marks) - _MOST_MARKS} more")
    parts += [f"* {begin_paragraph(words)}" for words in requests[:_MOST_REQUESTS]]
    return "\n".join(("**Static** · from the code alone, not measured", "", *parts))


def _describe_marks(lines: Sequence[HotLine]) -> str:
    """The marks on a line of the document, as a list in Markdown, largest shares first; empty where there are none."""
    marks = [mark for hot in lines for mark in _find_marks(hot.shown, hot.row.file, hot.row.line)]
    marks.sort(key=lambda mark: -(mark.share_ratio or 0.0))
    return "\n".join(f"- {_describe_mark(mark)}" for mark in marks[:_MOST_LINE_MARKS])


def _find_marks(shown: VisibleKernel, file: str | None, line: int | None) -> "Iterator[LineMark]":
    """The marks of one kernel on a line as it was compiled."""
    analyses = shown.kernel.report.analyses
    if analyses is None or file is None:
        return
    has_causes = (file, line) in shown.kernel.causes  # a table of its own says what the line causes
    for answer in analyses.answers:
        if has_causes and answer.analysis == _STALL_SOURCES:
            continue
        yield from (mark for mark in answer.marks if mark.line == line and mark.file == file)


def _describe_mark(mark: "LineMark") -> str:
    from gpa_lsp.document.markdown_text import write_sentence
    from gpa_lsp.foundation.numbers import format_percent, format_quantity

    text = f"**{write_sentence(mark.measure)}** {format_quantity(mark.value, mark.quantity)}"
    if mark.share_ratio is not None:
        text += f" ({format_percent(mark.share_ratio)} of the kernel's)"
    return f"{text}: {write_sentence(mark.text)}" if mark.text else text
