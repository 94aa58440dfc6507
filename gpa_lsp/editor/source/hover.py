"""Hover of a source line, in at most twelve lines, and the page about a line, which has the tables behind it."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpa_lsp.document.blocks import Block, Item, Items, Paragraph, Part
from gpa_lsp.document.layout import Line, Style
from gpa_lsp.document.markdown import write_links, write_markdown
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.history import build_course, describe_line_change
from gpa_lsp.editor.kernel_page import (
    build_pieces,
    build_roofs,
    describe_first_of,
    describe_limit_of,
    describe_verdict,
    head,
    link_hover,
    write_hover,
)
from gpa_lsp.editor.line_words import (
    build_causes,
    build_line,
    build_origin,
    describe_doubts,
    describe_share,
    describe_stalls,
    name_place,
    summarise_cause,
    summarise_remedy,
)
from gpa_lsp.editor.lines.index import CauseLine, HotLine
from gpa_lsp.editor.lines.places import name_file
from gpa_lsp.editor.predicted.hover import build_predictions, summarise_predictions
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.timed.view import build_times, list_times

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.diagnosis.analyses.answers import LineMark
    from gpa_lsp.editor.static.view import StaticMark
    from gpa_lsp.report.saved.kept_allocations import AllocationPlace

_MOST_LINES = 12  # of a hover: what is taken in at a glance; its links open the rest

_MOST_REMEDIES = 3
_MOST_LINE_MARKS = 5  # Of what the analyses say, on one line

_STALL_SOURCES = "stall_sources"  # The question whose marks say what lines cause, by instructions

_MOST_REQUESTS = 6
_MOST_MARKS = 6  # Of what the code says

_MORE = "_all of it: the code action “Show what is known of this line”_"
_STALE = "_edited since; its numbers come back when it is measured or simulated again_"


def describe_hover(view: DocumentView, line: int) -> str | None:
    """The hover of a line (1-based) as Markdown, at most twelve lines; None away from lines that have something to say."""
    lines, cause, shown = _find_measured(view, line)
    if shown is None:
        text = "\n".join(write_markdown(_list_unmeasured(view, line, is_brief=True)))
        return _cut(text, view, line) or (_STALE if line in view.stale else None)
    links = link_hover(shown, view.uri, line) if view.abilities.links else ""
    return write_hover(_list_rows(view, line, lines, cause, shown), links)


def _find_measured(view: DocumentView, line: int) -> tuple[Sequence[HotLine], CauseLine | None, VisibleKernel | None]:
    """Samples of kernels on a line, the stalls it causes in the first of them, and that kernel; None where there is none."""
    least_ratio = view.settings.least_share_ratio
    lines = [hot for hot in view.hot_lines.get(line, ()) if hot.share_ratio >= least_ratio]
    cause = _choose_cause(view, line, lines, least_ratio)
    first = lines[0] if lines else cause
    return lines, cause, None if first is None else first.shown


def _list_rows(
    view: DocumentView, line: int, lines: Sequence[HotLine], cause: CauseLine | None, shown: VisibleKernel
) -> list[str | Line]:
    """The verdict, the line's share, what causes it or what it causes, the remedy and the roof; then what else is known, a row each."""
    first = lines[0] if lines else cause
    assert first is not None
    rows: list[str | Line] = [describe_limit_of(shown), describe_share(lines), describe_doubts(first)]
    if cause is not None:
        rows += describe_stalls(cause, lines[0] if lines else None, partial(name_place, view, shown))
    remedies = () if cause is None else cause.remedies
    rows += [
        summarise_remedy(remedies) if remedies else describe_first_of(shown),
        head("ceiling", shown.kernel.brief.ceiling),
    ]
    if lines:
        rows.append(describe_line_change(shown.kernel.history, lines[0].place))
    times = list_times(view.timed, line) if view.timed else ()
    emulated = () if view.predicted is None else summarise_predictions(view, line)
    timed = (("timed ", Style.TITLE), *times[0]) if times else ""
    return [
        *rows,
        timed,
        head("memory", "; ".join(_list_allocations(view, line))),
        _summarise_statics(view, line),
        emulated,
    ]


def _cut(text: str, view: DocumentView, line: int) -> str:
    """Cut a text to the lines that a hover has, with a link to the rest; a code block that the cut leaves open goes, too."""
    lines = text.split("\n")
    if len(lines) <= _MOST_LINES:
        return text
    kept = lines[: _MOST_LINES - 1]
    while not kept[-1] or sum(one.startswith("```") for one in kept) % 2:
        kept.pop()
    rest = write_links([("table", "gpaLsp.showLine", (view.uri, line - 1))]) if view.abilities.links else _MORE
    return "\n".join([*kept[: _MOST_LINES - 2], "", rest])


def describe_line_page(view: DocumentView, line: int) -> str | None:
    """All that is known of a line (1-based) as a page of Markdown: the tables that its hover leaves out; None where nothing is."""
    return "\n".join(write_markdown([*_build_page(view, line)])) or None


def _build_page(view: DocumentView, line: int) -> Iterator[Block]:
    lines, cause, shown = _find_measured(view, line)
    if shown is not None:
        names = partial(name_place, view, shown)
        yield from (Paragraph(text=row) for row in describe_verdict(shown))
        if lines:
            yield from build_line(lines)
        elif cause is not None:
            yield Paragraph(text=summarise_cause(cause, names))
        yield from build_course(shown.kernel.history)
        yield Items(items=[Item(text=_describe_mark(mark)) for mark in _list_marks(lines)])
        if cause is not None:
            yield from build_causes(cause, names)
        if lines:
            yield from build_origin(lines[0])
        yield from build_roofs(shown, needs_any=True)
        yield from build_launched_from(shown)
    yield from _list_unmeasured(view, line)
    if cause is not None and cause.remedies:
        yield Part(title="Suggestions", blocks=build_pieces(cause.shown, cause.remedies[:_MOST_REMEDIES]))


def build_launched_from(shown: VisibleKernel) -> Iterator[Block]:
    """Build the list of calling contexts that launched a kernel; nothing where none is known."""
    from gpa_lsp.document.kernel_view import build_launch_places

    places = build_launch_places(shown.kernel.report)
    if places.blocks:
        yield Paragraph(text=(("launched from", Style.TITLE),))
        yield from places.blocks


def _list_unmeasured(view: DocumentView, line: int, *, is_brief: bool = False) -> list[Block]:
    return [
        *build_times(view.timed, line),
        *_build_allocations(view, line),
        *_build_statics(view, line, is_brief=is_brief),
        *build_predictions(view, line),
    ]


def _list_allocations(view: DocumentView, line: int) -> list[str]:
    """The findings on a line, each with the other places that it is about."""
    notes = () if view.allocations is None else view.allocations.notes.get(line, ())
    return ["; ".join([note.words, *(_name_other(view, one) for one in note.related)]) for note in notes]


def _name_other(view: DocumentView, place: "AllocationPlace") -> str:
    path, line, words = place
    return f"{words}: {f'line {line}' if path == view.local_path else f'{name_file(path)}:{line}'}"


def _build_allocations(view: DocumentView, line: int) -> Iterator[Block]:
    """Findings of an emulated run about the allocations or copies on a line (1-based); nothing without any."""
    said = _list_allocations(view, line)
    if said and view.allocations is not None:
        yield Paragraph(text=(("Memory", Style.TITLE), (f" · {view.allocations.origin}", Style.PLAIN)))
        yield Items(items=[Item(text=one) for one in said])


def _summarise_statics(view: DocumentView, line: int) -> Line:
    """Static findings on a line, in one row; empty without any."""
    marks = view.static_marks.get(line, ())
    requests = () if view.statics is None else view.statics.requests.get(line, ())
    said = [*(_describe_code(one, is_brief=True) for one in marks), *requests]
    return head("static", f"{said[0]}; {len(said) - 1} more" if len(said) > 1 else "".join(said))


def _choose_cause(view: DocumentView, line: int, lines: Sequence[HotLine], least_ratio: float) -> CauseLine | None:
    """Stalls caused in the kernel that the line is hottest in, else in the one it costs most."""
    causes = view.cause_lines.get(line, ())
    if lines:
        return next((cause for cause in causes if cause.shown is lines[0].shown), None)
    return next((cause for cause in causes if cause.share_ratio >= least_ratio), None)


def _build_statics(view: DocumentView, line: int, *, is_brief: bool) -> Iterator[Block]:
    """The findings and requests on a line (1-based); nothing for a line without any."""
    marks = view.static_marks.get(line, ())
    requests = () if view.statics is None else view.statics.requests.get(line, ())
    if marks or requests:
        yield Paragraph(text=(("Static", Style.TITLE), (" · from the code alone, not measured", Style.PLAIN)))
        said = [_describe_code(one, is_brief=is_brief) for one in marks[:_MOST_MARKS]]
        said += [f"and {len(marks) - _MOST_MARKS} more"] if len(marks) > _MOST_MARKS else []
        yield Items(items=[Item(text=one) for one in (*said, *requests[:_MOST_REQUESTS])])


def _describe_code(mark: "StaticMark", *, is_brief: bool) -> str:
    """A static finding; its remedy, which the line's diagnostic has, only where there is room."""
    said = mark.message if is_brief else mark.sentence
    return said if mark.certainty == "certain" else f"{said} ({mark.certainty})"


def _list_marks(lines: Sequence[HotLine]) -> "list[LineMark]":
    """The marks on a line of the document, largest shares first."""
    marks = [mark for hot in lines for mark in _find_marks(hot.shown, hot.row.file, hot.row.line)]
    return sorted(marks, key=lambda mark: -(mark.share_ratio or 0.0))[:_MOST_LINE_MARKS]


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


def _describe_mark(mark: "LineMark") -> Line:
    from gpa_lsp.foundation.numbers import format_percent, format_quantity

    words = f" {format_quantity(mark.value, mark.quantity)}"
    if mark.share_ratio is not None:
        words += f" ({format_percent(mark.share_ratio)} of the kernel's)"
    measure = (mark.measure, Style.TITLE)
    return (
        (measure, (f"{words}: ", Style.PLAIN), (mark.text, Style.PLAIN))
        if mark.text
        else (measure, (words, Style.PLAIN))
    )
