"""Diagnostics of what was not measured: findings about the code, marked *static*, and what the compiler said."""

from collections.abc import Iterator

from lsprotocol import types

from gpa_lsp.errors import ProblemSeverity
from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.static_results import StaticMark, StaticMessage
from gpa_lsp.lsp.static_view import PlacedStatics
from gpa_lsp.lsp.static_words import write_mark

SOURCE = "gpa-lsp"

_SEVERITIES = {
    ProblemSeverity.ERROR: types.DiagnosticSeverity.Error,
    ProblemSeverity.WARNING: types.DiagnosticSeverity.Warning,
    ProblemSeverity.NOTE: types.DiagnosticSeverity.Information,
}
_MOST_MESSAGES = 100


def list_static_diagnostics(view: DocumentView, most: int) -> Iterator[types.Diagnostic]:
    """One per finding: Information where its code runs in a loop, else Hint, because nobody knows whether it costs anything.

    Args:
        view: of the document.
        most: so many at most, the weightiest lines first as they were found.
    """
    if view.statics is None:
        return
    found = [(line, mark) for line, marks in view.statics.marks.items() for mark in marks]
    for line, mark in found[: max(most, 0)]:
        yield _make_finding(view, line, mark)


def _make_finding(view: DocumentView, line: int, mark: StaticMark) -> types.Diagnostic:
    is_loud = mark.is_in_loop
    likely = "" if mark.certainty == "certain" else f", {mark.certainty}"
    return types.Diagnostic(
        range=view.positions.find_text(line),
        severity=types.DiagnosticSeverity.Information if is_loud else types.DiagnosticSeverity.Hint,
        source=SOURCE,
        code=f"static {mark.check}",
        message=f"{write_mark(mark)} (static{likely})",
    )


def list_compiler_diagnostics(view: DocumentView) -> Iterator[types.Diagnostic]:
    """What the compiler said, at its place; notes go with the message before them, and what is about another file stands on the first line."""
    statics = view.statics
    if statics is None or not view.settings.shows_compiler_messages:
        return
    made: list[types.Diagnostic] = []
    for line, message in statics.messages:
        if message.severity is ProblemSeverity.NOTE and made and message.line is not None and line is not None:
            _relate(view, made[-1], line, message)
        elif line is not None or message.line is None:
            made.append(_make_message(view, statics, line, message))
        if len(made) == _MOST_MESSAGES:
            break
    yield from made


def _relate(view: DocumentView, diagnostic: types.Diagnostic, line: int, note: StaticMessage) -> None:
    location = types.Location(uri=view.uri, range=view.positions.find_text(line))
    related = types.DiagnosticRelatedInformation(location=location, message=note.text)
    diagnostic.related_information = [*(diagnostic.related_information or ()), related]


def _make_message(
    view: DocumentView, statics: PlacedStatics, line: int | None, message: StaticMessage
) -> types.Diagnostic:
    """Without the project's own flags an error may be the flags' fault, and the code may be sound: it is a warning then, and says so."""
    severity = _SEVERITIES[message.severity]
    doubt = ""
    if message.severity is ProblemSeverity.ERROR and not statics.has_flags:
        severity = types.DiagnosticSeverity.Warning
        doubt = " (compiled without the project's flags: no compile command of this file is known)"
    place = f"{message.place}: " if message.place else ""
    number = f" {message.number}" if message.number else ""
    return types.Diagnostic(
        range=_find_range(view, line, message.column),
        severity=severity,
        source=SOURCE,
        code=f"{statics.compiler or 'compiler'}{number}",
        message=f"{place}{message.text}{doubt}",
    )


def _find_range(view: DocumentView, line: int | None, column: int | None) -> types.Range:
    """From the column to the end of its line; the whole line without one, the first line without a line."""
    whole = view.positions.find_text(1 if line is None else line)
    if line is None or column is None:
        return whole
    start = view.positions.find_place(line, max(column - 1, 0))
    if start.character >= whole.end.character:
        return whole
    return types.Range(start=start, end=whole.end)
