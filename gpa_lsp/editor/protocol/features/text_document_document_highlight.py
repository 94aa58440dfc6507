"""``textDocument/documentHighlight`` in SASS documents: where the value under the cursor is written and read."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass.library import SassView


def answer_sass(view: SassView, params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
    """The highlights of what is under the cursor."""
    from gpa_lsp.editor.sass.jumps import find_highlights  # needs numpy, which initialize must not wait for

    return find_highlights(view, params.position)


FEATURE = RequestFeature(
    method=Method[types.DocumentHighlightParams, Sequence[types.DocumentHighlight] | None](
        types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT
    ),
    answer_sass=answer_sass,
)
