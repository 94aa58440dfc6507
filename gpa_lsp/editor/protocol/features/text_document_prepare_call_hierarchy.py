"""``textDocument/prepareCallHierarchy``: def-use chains of lines in sources, of instructions in SASS documents."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.positions import read_line
from gpa_lsp.editor.protocol.features import Method, RequestFeature
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.settings import Settings


def answer_source(view: DocumentView, params: types.CallHierarchyPrepareParams) -> list[types.CallHierarchyItem] | None:
    """The line under the cursor."""
    from gpa_lsp.editor.source.chains import prepare

    item = prepare(view, read_line(params.position))
    return None if item is None else [item]


def answer_sass(view: SassView, params: types.CallHierarchyPrepareParams) -> list[types.CallHierarchyItem] | None:
    """The instruction under the cursor."""
    from gpa_lsp.editor.sass.chains import prepare

    item = prepare(view, read_line(params.position))
    return None if item is None else [item]


def serves_source(settings: Settings, abilities: Abilities) -> bool:
    """Where a client shows chains of source lines itself, the call hierarchy is left to the language's own server."""
    del settings
    return not abilities.call_hierarchy_tree


FEATURE = RequestFeature(
    method=Method[types.CallHierarchyPrepareParams, Sequence[types.CallHierarchyItem] | None](
        types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY
    ),
    answer=answer_source,
    answer_sass=answer_sass,
    serves_source=serves_source,
)
