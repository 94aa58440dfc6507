"""``textDocument/inlayHint``: share and stall reason at the end of each hot line, with a way to its cause; what was emulated of a line, in a hint of
its own; in SASS documents, what waits for what.
"""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.positions import read_lines
from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass import hints as sass_hints
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.source.hints import list_hints


def answer_inlay_hint(view: DocumentView, params: types.InlayHintParams) -> list[types.InlayHint]:
    """A hint for each line of the requested range whose share is above the user's threshold, or that was edited since it was measured; then those
    of the emulation.
    """
    return _pad(list_hints(view, *read_lines(params.range)))


def answer_sass(view: SassView, params: types.InlayHintParams) -> list[types.InlayHint]:
    """The hints of the requested lines."""
    return _pad(sass_hints.list_hints(view, *read_lines(params.range)))


def _pad(hints: list[types.InlayHint]) -> list[types.InlayHint]:
    """Keep hints at a distance from the text before them."""
    for hint in hints:
        hint.padding_left = True
    return hints


FEATURE = RequestFeature(
    method=Method[types.InlayHintParams, Sequence[types.InlayHint] | None](types.TEXT_DOCUMENT_INLAY_HINT),
    answer=answer_inlay_hint,
    answer_sass=answer_sass,
    refresh_method=types.WORKSPACE_INLAY_HINT_REFRESH,
    refresh_capability="workspace.inlay_hint.refresh_support",
    is_held=True,
)
