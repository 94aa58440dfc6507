"""``textDocument/publishDiagnostics``: what a person should know of a source's lines, in the client's list of problems.

Pushed and not pulled, because results come when an analysis is done.
"""

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, PushFeature
from gpa_lsp.editor.source.diagnostics import list_diagnostics


def _wrap(uri: str, version: int | None, items: tuple[types.Diagnostic, ...]) -> types.PublishDiagnosticsParams:
    return types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=list(items))


FEATURE = PushFeature(
    method=Method[types.PublishDiagnosticsParams, None](types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS),
    list_items=list_diagnostics,
    wrap=_wrap,
)
