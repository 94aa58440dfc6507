"""``textDocument/references`` in SASS documents: every place that writes or reads a value, and everything that goes to a target."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass.library import SassView


def answer_sass(view: SassView, params: types.ReferenceParams) -> list[types.Location] | None:
    """The references of what is under the cursor."""
    from gpa_lsp.editor.sass.jumps import find_references  # needs numpy, which initialize must not wait for

    return find_references(view, params.position, with_declarations=params.context.include_declaration)


FEATURE = RequestFeature(
    method=Method[types.ReferenceParams, Sequence[types.Location] | None](types.TEXT_DOCUMENT_REFERENCES),
    answer_sass=answer_sass,
)
