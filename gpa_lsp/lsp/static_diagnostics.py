"""Diagnostics of what was not measured: findings about the code, marked *static*, and what the compiler said."""

import re
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

from gpa_lsp.basis.errors import ProblemSeverity
from gpa_lsp.compiler.model import CompilerMessage
from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.lines.positions import span_line
from gpa_lsp.lsp.static_results import StaticMark
from gpa_lsp.lsp.static_view import PlacedStatics

SOURCE = "gpa-lsp"

_SEVERITIES = {
    ProblemSeverity.ERROR: types.DiagnosticSeverity.Error,
    ProblemSeverity.WARNING: types.DiagnosticSeverity.Warning,
    ProblemSeverity.NOTE: types.DiagnosticSeverity.Information,
}
_MOST_MESSAGES = 100
_MISSING_HEADER = re.compile(r"No such file or directory|cannot open (?:source )?file", re.IGNORECASE)
_WORD = re.compile(r"\w+")


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
        message=f"{mark.sentence} (static{likely})",
        related_information=_relate_origin(mark),
    )


def _relate_origin(mark: StaticMark) -> list[types.DiagnosticRelatedInformation] | None:
    """Where the code of a finding is written that was inlined into the line."""
    if mark.origin is None or not Path(mark.origin[0]).is_absolute():
        return None
    location = types.Location(uri=Path(mark.origin[0]).as_uri(), range=span_line(mark.origin[1]))
    return [types.DiagnosticRelatedInformation(location=location, message="inlined from here")]


def list_compiler_diagnostics(view: DocumentView) -> Iterator[types.Diagnostic]:
    """What the compiler said, at its place; notes go with the message before them, and what is about another file stands on the first line."""
    statics = view.statics
    if statics is None or not view.settings.shows_compiler_messages:
        return
    made: list[types.Diagnostic] = []
    for line, message in statics.messages:
        is_elsewhere = message.path is not None or message.line is None
        if message.severity is ProblemSeverity.NOTE and made and not is_elsewhere and line is not None:
            _relate(view, made[-1], line, message)
        elif line is not None or is_elsewhere:
            made.append(_make_message(view, statics, line, message))
        if len(made) == _MOST_MESSAGES:
            break
    yield from made


def _relate(view: DocumentView, diagnostic: types.Diagnostic, line: int, note: CompilerMessage) -> None:
    location = types.Location(uri=view.uri, range=view.positions.find_text(line))
    related = types.DiagnosticRelatedInformation(location=location, message=note.text)
    diagnostic.related_information = [*(diagnostic.related_information or ()), related]


def _make_message(
    view: DocumentView, statics: PlacedStatics, line: int | None, message: CompilerMessage
) -> types.Diagnostic:
    """A header that is missing where nobody knows the project's flags may be the flags' fault, and the code sound: then it is a warning."""
    severity = _SEVERITIES[message.severity]
    is_doubtful = not statics.has_flags and _MISSING_HEADER.search(message.text) is not None
    if message.severity is ProblemSeverity.ERROR and is_doubtful:
        severity = types.DiagnosticSeverity.Warning
    place = "" if message.path is None else f"{message.path}:{f'{message.line}:' if message.line else ''} "
    number = f" {message.number}" if message.number else ""
    return types.Diagnostic(
        range=_find_range(view, line, message.column),
        severity=severity,
        source=SOURCE,
        code=f"{statics.compiler or 'compiler'}{number}",
        message=f"{place}{message.text}",
    )


def _find_range(view: DocumentView, line: int | None, column: int | None) -> types.Range:
    """The word at the column, or what follows it on its line; the whole line without a column, the first line without a line."""
    whole = view.positions.find_text(1 if line is None else line)
    if line is None or column is None:
        return whole
    first = max(column - 1, 0)
    word = _WORD.match(view.positions.lines[line - 1], first)
    if word is not None:
        return view.positions.find_span(line, first, word.end())
    start = view.positions.find_place(line, first)
    return whole if start.character >= whole.end.character else types.Range(start=start, end=whole.end)
