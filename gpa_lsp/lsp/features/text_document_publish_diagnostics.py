"""``textDocument/publishDiagnostics``: hot lines in the client's list of problems, so that its keys for "next problem" go to the next hot line.

Pushed and not pulled, because results come when an analysis is done; Information by default, because nothing is wrong with the code.
"""

from collections.abc import Mapping
from pathlib import Path

from lsprotocol import types

from gpa_lsp.lsp.document_view import DocumentView, HotLine
from gpa_lsp.lsp.features import PushFeature
from gpa_lsp.lsp.positions import span_line
from gpa_lsp.lsp.settings import Severity
from gpa_lsp.lsp.stall_table import find_top_reason, summarise_line

_SEVERITIES = {
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
}
_MAX_RELATED = 8


def list_diagnostics(view: DocumentView) -> tuple[types.Diagnostic, ...]:
    """A diagnostic for each line above the user's threshold, the hottest first, as many as the user allows."""
    if not view.settings.show_diagnostics:
        return ()
    hottest = view.find_hottest_lines()[: view.settings.max_diagnostics_per_file]
    current_lines = view.find_current_lines()
    return tuple(_make_diagnostic(view, line, hot, current_lines) for line, hot in hottest)


def _make_diagnostic(
    view: DocumentView, line: int, hot: HotLine, current_lines: Mapping[tuple[str, int], int]
) -> types.Diagnostic:
    reason = find_top_reason(hot.row.inclusive_by_reason)
    return types.Diagnostic(
        range=view.positions.find_text(line),
        severity=_SEVERITIES[view.settings.diagnostic_severity],
        source="gpa-lsp",
        code=reason,
        message=summarise_line(hot),
        related_information=_relate(hot, current_lines) or None,
    )


def _relate(hot: HotLine, current_lines: Mapping[tuple[str, int], int]) -> list[types.DiagnosticRelatedInformation]:
    """The other frames of the hottest instruction's inline chain, innermost first, as far as their files are here.

    Those in the diagnostic's own document are where its edits have moved them; those in others are where they were measured.
    """
    if not hot.hottest:
        return []
    columns = hot.shown.kernel.report.instructions
    chain = columns.chains[int(columns.chain_index[hot.hottest[0]])]
    text = columns.texts[hot.hottest[0]]
    related: list[types.DiagnosticRelatedInformation] = []
    for depth, frame in enumerate(chain):
        file = hot.shown.profile.files.get(frame.file)
        if file is None or (frame.file, frame.line) == (hot.row.file, hot.row.line):
            continue
        message = (
            f"hottest instruction: {text}" if depth == 0 and text else "inlined from here" if depth else "hottest code"
        )
        line = current_lines.get((frame.file, frame.line), frame.line)
        location = types.Location(uri=make_uri(file.local_path), range=span_line(line))
        related.append(types.DiagnosticRelatedInformation(location=location, message=message))
    return related[:_MAX_RELATED]


def make_uri(path: str) -> str:
    """A file's URI."""
    return Path(path).as_uri()


def _wrap(uri: str, version: int | None, items: tuple[types.Diagnostic, ...]) -> types.PublishDiagnosticsParams:
    return types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=list(items))


FEATURE = PushFeature(method=types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, list_items=list_diagnostics, wrap=_wrap)
