"""What the hover of a source line says, in at most twelve lines, and the page about a line, which has the tables behind it."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpa_lsp.document.blocks import Block, Item, Items, Paragraph
from gpa_lsp.document.layout import Style
from gpa_lsp.document.markdown import write_line, write_markdown
from gpa_lsp.editor.cause_table import describe_causes, describe_stalls, summarise_cause, summarise_remedy
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.history import describe_course_of, describe_line_change
from gpa_lsp.editor.kernel_page import (
    describe_first_of,
    describe_limit_of,
    describe_places,
    describe_verdict,
    link_hover,
    write_hover,
)
from gpa_lsp.editor.lines.index import CauseLine, HotLine
from gpa_lsp.editor.lines.names import name_place
from gpa_lsp.editor.predicted.hover import build_predictions, summarise_predictions
from gpa_lsp.editor.roofline import describe_known_roofs_of, describe_roof_briefly, draw_roofline_of
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.stall_table import describe_doubts, describe_line, describe_origin, describe_share
from gpa_lsp.editor.timed.view import build_times, list_times

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.diagnosis.analyses.answers import LineMark
    from gpa_lsp.document.stall_picture import StallPart
    from gpa_lsp.editor.static.results import StaticMark

_MOST_LINES = 12  # of a hover: what is taken in at a glance; its links open the rest

_MOST_LINE_MARKS = 5  # Of what the analyses say, on one line

_STALL_SOURCES = "stall_sources"  # The question whose marks say what lines cause, by instructions

_MOST_REQUESTS = 6
_MOST_MARKS = 6  # Of what the code says

_STALE = "_edited since it was measured; its numbers come back with the next measurement_"


def describe_hover(view: DocumentView, line: int) -> str | None:
    """The hover of a line (1-based) as Markdown, at most twelve lines; None away from lines that have something to say."""
    lines, cause, shown = _find_measured(view, line)
    if shown is None:
        said = "\n\n".join(_list_unmeasured(view, line))
        return _cut(said) or (_STALE if line in view.stale else None)
    links = link_hover(shown, view.uri, line) if view.abilities.links else ""
    return write_hover(_list_rows(view, line, lines, cause, shown), [links])


def _find_measured(view: DocumentView, line: int) -> tuple[Sequence[HotLine], CauseLine | None, VisibleKernel | None]:
    """What kernels took on a line, what it causes in the first of them, and that kernel; None where there is none."""
    least_ratio = view.settings.least_share_ratio
    lines = [hot for hot in view.hot_lines.get(line, ()) if hot.share_ratio >= least_ratio]
    cause = _choose_cause(view, line, lines, least_ratio)
    first = lines[0] if lines else cause
    return lines, cause, None if first is None else first.shown


def _list_rows(
    view: DocumentView, line: int, lines: Sequence[HotLine], cause: CauseLine | None, shown: VisibleKernel
) -> list[str]:
    """The verdict, the line's share, what causes it or what it causes, the remedy and the roof; then what else is known, a row each."""
    first = lines[0] if lines else cause
    assert first is not None
    rows = [describe_limit_of(shown), describe_share(lines), describe_doubts(first)]
    if cause is not None:
        rows += describe_stalls(cause, lines[0] if lines else None, partial(name_place, view, shown))
    remedies = () if cause is None else cause.remedies
    rows += [summarise_remedy(remedies) if remedies else describe_first_of(shown), describe_roof_briefly(shown)]
    if lines:
        rows.append(describe_line_change(shown.kernel.history, lines[0].place))
    times = list_times(view.timed, line)
    rows += [
        f"**timed** {write_line(times[0])}" if times else "",
        _summarise_statics(view, line),
        summarise_predictions(view, line),
    ]
    return rows


def _cut(text: str) -> str:
    """Cut a text to the lines that a hover has; a code block that the cut leaves open goes, too."""
    lines = text.split("\n")
    if len(lines) <= _MOST_LINES:
        return text
    kept = lines[: _MOST_LINES - 1]
    while sum(line.startswith("```") for line in kept) % 2:
        kept.pop()
    return "\n".join([*kept, "_and more: Show what is known of this line_"])


def describe_line_page(view: DocumentView, line: int) -> str | None:
    """All that is known of a line (1-based) as a page of Markdown: the tables that its hover leaves out; None where nothing is."""
    lines, cause, shown = _find_measured(view, line)
    unmeasured = _list_unmeasured(view, line)
    if shown is None:
        return "\n\n".join(unmeasured) or None
    is_drawn = view.abilities.images
    names = partial(name_place, view, shown)
    parts = [
        describe_verdict(shown),
        describe_line(lines) if lines else "",
        summarise_cause(cause, names) if cause is not None and not lines else "",
        _draw_picture(lines[0] if lines else None, shown) if is_drawn else "",
        describe_course_of(shown.kernel.history, is_drawn=is_drawn),
        _describe_marks(lines),
        describe_causes(cause, names) if cause is not None else "",
        describe_origin(lines[0]) if lines else "",
        describe_known_roofs_of(shown, with_bars=not is_drawn),
        describe_places(shown),
        draw_roofline_of(shown) if is_drawn else "",
        *unmeasured,
    ]
    return "\n\n".join(part for part in parts if part)


def _list_unmeasured(view: DocumentView, line: int) -> list[str]:
    found = (build_times(view.timed, line), _build_statics(view, line), build_predictions(view, line))
    return [part for blocks in found if (part := "\n".join(write_markdown([*blocks])))]


def _summarise_statics(view: DocumentView, line: int) -> str:
    """What the code says by itself of a line, in one row; empty where it says nothing."""
    marks = view.static_marks.get(line, ())
    requests = () if view.statics is None else view.statics.requests.get(line, ())
    said = [*map(_describe_mark_of_code, marks), *requests]
    if not said:
        return ""
    more = f"; {len(said) - 1} more" if len(said) > 1 else ""
    return f"**static** {write_line(said[0])}{more}"


def _choose_cause(view: DocumentView, line: int, lines: Sequence[HotLine], least_ratio: float) -> CauseLine | None:
    """Of the kernel the line is hottest in; of the one it costs most where it takes no samples itself."""
    causes = view.cause_lines.get(line, ())
    if lines:
        return next((cause for cause in causes if cause.shown is lines[0].shown), None)
    return next((cause for cause in causes if cause.share_ratio >= least_ratio), None)


def _draw_picture(hot: HotLine | None, shown: VisibleKernel) -> str:
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


def _build_statics(view: DocumentView, line: int) -> Iterator[Block]:
    """The findings and requests on a line (1-based); nothing for a line without any."""
    marks = view.static_marks.get(line, ())
    requests = () if view.statics is None else view.statics.requests.get(line, ())
    if marks or requests:
        yield Paragraph(text=(("Static", Style.TITLE), (" · from the code alone, not measured", Style.PLAIN)))
        said = [*map(_describe_mark_of_code, marks[:_MOST_MARKS])]
        said += [f"and {len(marks) - _MOST_MARKS} more"] if len(marks) > _MOST_MARKS else []
        yield Items(items=[Item(text=one) for one in (*said, *requests[:_MOST_REQUESTS])])


def _describe_mark_of_code(mark: "StaticMark") -> str:
    return f"{mark.sentence} ({mark.check}, {mark.certainty})"


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
