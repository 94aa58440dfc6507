"""Diagnostics of what was not measured: findings about the code, marked *static*, and what the compiler said."""

import re
from collections.abc import Iterator
from pathlib import Path

from lsprotocol.types import Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, Range

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.positions import span_line
from gpa_lsp.editor.static.view import PlacedStatics, StaticMark
from gpa_lsp.execution.compiler.included_files import find_missing_header, is_surely_missing
from gpa_lsp.execution.compiler.model import CompilerMessage
from gpa_lsp.foundation.errors import ProblemSeverity

_SEVERITIES = {
    ProblemSeverity.ERROR: DiagnosticSeverity.Error,
    ProblemSeverity.WARNING: DiagnosticSeverity.Warning,
    ProblemSeverity.NOTE: DiagnosticSeverity.Information,
}
_BRANCHES = "divergent-branches"
_COUNTED = frozenset({"uncoalesced-accesses", "bank-conflicts", _BRANCHES})  # Checks of what an emulation counts

_MOST_MESSAGES = 100
_LACKED = "Only the advisor's own compile is known to lack this header:"
_UNDECLARED = re.compile(
    r"is undefined|was not declared|unknown type name|has not been declared|incomplete type|is not a template"
)
_INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')

# Messages without a line that are about the code all the same.
_ABOUT_CODE = re.compile(r"ptxas|nvlink|Entry function|Function .* uses", re.IGNORECASE)
_WORD = re.compile(r"\w+")


def list_static_diagnostics(view: DocumentView, most: int) -> Iterator[Diagnostic]:
    """One per finding: Information where its code runs in a loop or multiplies what an access costs, else Hint, since nobody knows its cost.

    Args:
        most: so many at most, the weightiest lines first as they were found.
    """
    found = [
        (line, mark)
        for line, marks in view.static_marks.items()
        for mark in marks
        if not _is_emulated(view, line, mark.check)
    ]
    for line, mark in found[: max(most, 0)]:
        yield _make_finding(view, line, mark)


def _is_emulated(view: DocumentView, line: int, check: str) -> bool:
    """Whether the emulator has counted on a line what a check can only tell of it: then the count is said."""
    predicted = view.predicted
    if predicted is None or check not in _COUNTED:
        return False
    return line in (predicted.branches if check == _BRANCHES else predicted.accesses)


def _make_finding(view: DocumentView, line: int, mark: StaticMark) -> Diagnostic:
    is_loud = mark.is_in_loop or mark.is_costly
    likely = "" if mark.certainty == "certain" else f", {mark.certainty}"
    return Diagnostic(
        range=view.positions.find_text(line),
        severity=DiagnosticSeverity.Information if is_loud else DiagnosticSeverity.Hint,
        code=f"static {mark.check}",
        message=f"{mark.sentence} (static{likely})",
        related_information=_relate_origin(mark) or None,
    )


def _relate_origin(mark: StaticMark) -> tuple[DiagnosticRelatedInformation, ...]:
    """Place of code that was inlined into a finding's line."""
    if mark.origin is None or not Path(mark.origin[0]).is_absolute():
        return ()
    location = Location(uri=Path(mark.origin[0]).as_uri(), range=span_line(mark.origin[1]))
    return (DiagnosticRelatedInformation(location=location, message="inlined from here"),)


def list_compiler_diagnostics(view: DocumentView) -> Iterator[Diagnostic]:
    """List the compiler's messages; notes go with the message before them, and those about another file stand on the first line."""
    statics = view.statics
    if statics is None:
        return
    made: list[Diagnostic] = []
    for line, message in statics.messages:
        is_elsewhere = message.path is not None or message.line is None
        if message.severity is ProblemSeverity.NOTE and made and not is_elsewhere and line is not None:
            _relate(view, made[-1], line, message)
        elif line is not None or is_elsewhere:
            made.append(_make_message(view, statics, line, message))
        if len(made) == _MOST_MESSAGES:
            break
    yield from made


def _relate(view: DocumentView, diagnostic: Diagnostic, line: int, note: CompilerMessage) -> None:
    location = Location(uri=view.uri, range=view.positions.find_text(line))
    related = DiagnosticRelatedInformation(location=location, message=note.text)
    diagnostic.related_information = [*(diagnostic.related_information or ()), related]


def _make_message(view: DocumentView, statics: PlacedStatics, line: int | None, message: CompilerMessage) -> Diagnostic:
    """Diagnostic of a message; faults of the surroundings of our own compile are information, since the user's compiler may take the code."""
    severity, text = _SEVERITIES[message.severity], message.text
    header = find_missing_header(text)
    if header is not None and not is_surely_missing(header, _read_line(view, line), has_flags=statics.has_flags):
        severity = DiagnosticSeverity.Information
        text = f"{_LACKED} {text}"
    elif severity != DiagnosticSeverity.Information and _is_of_surroundings(statics, message):
        severity = DiagnosticSeverity.Information
    place = "" if message.path is None else f"{message.path}:{f'{message.line}:' if message.line else ''} "
    number = f" {message.number}" if message.number else ""
    return Diagnostic(
        range=_find_range(view, _find_include(view, message.path) if line is None else line, message.column),
        severity=severity,
        code=f"{statics.compiler or 'compiler'}{number}",
        message=f"{place}{text}",
    )


def _is_of_surroundings(statics: PlacedStatics, message: CompilerMessage) -> bool:
    """Whether a message is about no place in the code, or about a name that a header may declare which is not there."""
    if message.line is None:
        return not _ABOUT_CODE.match(message.text)
    lacked = any(find_missing_header(one.text) is not None for _, one in statics.messages)
    return lacked and _UNDECLARED.search(message.text) is not None


def _read_line(view: DocumentView, line: int | None) -> str:
    return "" if line is None else view.positions.lines[line - 1]


def _find_include(view: DocumentView, path: Path | None) -> int | None:
    """The line that includes a file by its name."""
    if path is None:
        return None
    lines = enumerate(view.positions.lines, 1)
    return next(
        (number for number, text in lines if (found := _INCLUDE.match(text)) and Path(found[1]).name == path.name), None
    )


def _find_range(view: DocumentView, line: int | None, column: int | None) -> Range:
    """The word at the column, or what follows it on its line; the whole line without a column, the first line without a line."""
    whole = view.positions.find_text(1 if line is None else line)
    if line is None or column is None:
        return whole
    first = max(column - 1, 0)
    word = _WORD.match(view.positions.lines[line - 1], first)
    if word is not None:
        return view.positions.find_span(line, first, word.end())
    start = view.positions.find_place(line, first)
    return whole if start.character >= whole.end.character else Range(start=start, end=whole.end)
