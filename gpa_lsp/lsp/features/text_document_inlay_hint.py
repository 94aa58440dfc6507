"""``textDocument/inlayHint``: share and stall reason at the end of each hot line, with a way to its cause; what was emulated of a line, in a hint of
its own; in SASS documents, what waits for what.
"""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.features import Method, RequestFeature
from gpa_lsp.lsp.lines.positions import read_lines
from gpa_lsp.lsp.predicted_hints import list_predicted_hints
from gpa_lsp.lsp.sass.hints import answer_sass
from gpa_lsp.lsp.source_hints import list_hints


def answer_inlay_hint(view: DocumentView, params: types.InlayHintParams) -> list[types.InlayHint]:
    """A hint for each line of the requested range whose share is above the user's threshold, or that was edited since it was measured; then those
    of the emulation.
    """
    first, last = read_lines(params.range)
    measured = list_hints(view, first, last) if view.settings.show_inlay_hints else []
    return [*measured, *list_predicted_hints(view, first, last)]


FEATURE = RequestFeature(
    method=Method[types.InlayHintParams, Sequence[types.InlayHint] | None](types.TEXT_DOCUMENT_INLAY_HINT),
    answer=answer_inlay_hint,
    answer_sass=answer_sass,
    refresh_method=types.WORKSPACE_INLAY_HINT_REFRESH,
    refresh_capability="workspace.inlay_hint.refresh_support",
)
