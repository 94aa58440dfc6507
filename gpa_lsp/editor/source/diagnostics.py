"""The diagnostics of a source: the lines that cause stalls in the editor's list of problems, so that its keys for "next problem" go from
cause to cause. Where nothing was blamed, and for stalls without a known cause, it is the hot lines themselves.

Information by default, because nothing is wrong with the code.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lsprotocol.types import Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.line_words import (
    find_caused_reason,
    find_top_reason,
    locate_from,
    name_place,
    summarise_cause,
    summarise_line,
)
from gpa_lsp.editor.lines.index import CauseLine, HotLine
from gpa_lsp.editor.lines.positions import span_line
from gpa_lsp.editor.predicted.diagnostics import list_predicted_diagnostics
from gpa_lsp.editor.settings import Severity
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.static.diagnostics import list_compiler_diagnostics, list_static_diagnostics
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.report.measured_files import MeasuredFile

_SEVERITIES = {
    Severity.INFORMATION: DiagnosticSeverity.Information,
    Severity.HINT: DiagnosticSeverity.Hint,
    Severity.WARNING: DiagnosticSeverity.Warning,
}
_MAX_RELATED = 8

SOURCE = "gpa-lsp"  # whose diagnostics ours are


def list_diagnostics(view: DocumentView) -> tuple[Diagnostic, ...]:
    """A diagnostic for each line above the user's threshold, the costliest first; then what was not measured: what the
    code says by itself, its emulation, and the compiler.
    """
    is_wanted = view.settings.diagnostic_severity is not Severity.OFF
    measured = _list_measured(view) if is_wanted else ()
    room = view.settings.max_diagnostics_per_file - len(measured) if is_wanted else 0
    static = tuple(list_static_diagnostics(view, room))
    allocations = tuple(_list_allocations(view))[: max(room - len(static), 0)]
    predicted = list_predicted_diagnostics(view, room - len(static) - len(allocations))
    found = (*measured, *static, *allocations, *predicted, *list_compiler_diagnostics(view))
    for one in found:
        one.source = SOURCE
    return found


def _list_measured(view: DocumentView) -> tuple[Diagnostic, ...]:
    found: dict[int, HotLine | CauseLine] = {
        line: hot for line, hot in view.find_hottest_lines() if hot.unexplained_ratio >= view.settings.min_share_ratio
    }
    for line, cause in view.find_costliest_lines():
        found.setdefault(line, cause)
    ranked = sorted(found.items(), key=lambda item: (-item[1].share_ratio, item[0]))
    return tuple(
        _mark_cause(view, line, one) if isinstance(one, CauseLine) else _mark_hot_line(view, line, one)
        for line, one in ranked[: view.settings.max_diagnostics_per_file]
    )


def _mark_cause(view: DocumentView, line: int, cause: CauseLine) -> Diagnostic:
    """Diagnostic on the causing line; the lines that suffer are related."""
    related: list[DiagnosticRelatedInformation] = []
    for pair in cause.victims:
        location = None if pair.place is None else locate_from(view, cause.shown, (pair.place.file, pair.place.line))
        if location is not None:
            text = f"{format_count(round(pair.samples))} samples are stalled here ({pair.reason})"
            related.append(DiagnosticRelatedInformation(location=location, message=text))
        if len(related) == _MAX_RELATED:
            break
    doubts = _say_origin(cause.shown, is_edited=cause.is_edited) + _say_doubt(cause.file)
    return Diagnostic(
        range=view.positions.find_text(line),
        severity=_SEVERITIES[view.settings.diagnostic_severity],
        code=find_caused_reason(cause),
        message=summarise_cause(cause, partial(name_place, view, cause.shown), doubts),
        related_information=related or None,
    )


def _mark_hot_line(view: DocumentView, line: int, hot: HotLine) -> Diagnostic:
    reason = find_top_reason(hot.row.inclusive_by_reason)
    return Diagnostic(
        range=view.positions.find_text(line),
        severity=_SEVERITIES[view.settings.diagnostic_severity],
        code=reason,
        message=summarise_line(hot, _say_origin(hot.shown) + _say_doubt(hot.file)),
        related_information=_relate(view, hot) or None,
    )


def _list_allocations(view: DocumentView) -> Iterator[Diagnostic]:
    """Findings of an emulated run about allocations and copies, each on its line."""
    found = view.allocations
    for line, notes in {} if found is None else found.notes.items():
        for note in notes:
            related = [
                DiagnosticRelatedInformation(
                    location=Location(
                        uri=view.uri if path == view.local_path else Path(path).as_uri(), range=span_line(at)
                    ),
                    message=words,
                )
                for path, at, words in note.related
            ]
            doubt = f"; unverified: the source {found.doubt}" if found is not None and found.doubt else ""
            yield Diagnostic(
                range=view.positions.find_text(line),
                severity=DiagnosticSeverity.Information,
                code=f"emulated {note.kind.replace(' ', '-')}",
                message=f"{note.words} (emulated{doubt})",
                related_information=related or None,
            )


def _say_origin(shown: VisibleKernel, *, is_edited: bool = False) -> str:
    """Mark of numbers that a model says, or that are of the text before it was edited."""
    is_simulated = shown.kernel.report.is_simulated
    if is_edited:
        return f" ({'simulated' if is_simulated else 'measured'} before your edits)"
    return " (simulated)" if is_simulated else ""


def _say_doubt(file: MeasuredFile) -> str:
    doubt = file.describe_doubt()
    return f" (unverified: the source {doubt})" if doubt else ""


def _relate(view: DocumentView, hot: HotLine) -> tuple[DiagnosticRelatedInformation, ...]:
    """The other frames of the hottest instruction's inline chain, innermost first, where edits have moved them, as far as they are still here."""
    if not hot.hottest:
        return ()
    columns = hot.shown.kernel.report.instructions
    chain = columns.chains[int(columns.chain_index[hot.hottest[0]])]
    text = columns.texts[hot.hottest[0]]
    related: list[DiagnosticRelatedInformation] = []
    for depth, frame in enumerate(chain):
        place = (frame.file, frame.line)
        location = None if place == (hot.row.file, hot.row.line) else locate_from(view, hot.shown, place)
        if location is None:
            continue
        message = (
            f"hottest instruction: {text}" if depth == 0 and text else "inlined from here" if depth else "hottest code"
        )
        related.append(DiagnosticRelatedInformation(location=location, message=message))
    return tuple(related[:_MAX_RELATED])
