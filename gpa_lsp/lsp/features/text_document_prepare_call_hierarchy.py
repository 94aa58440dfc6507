"""``textDocument/prepareCallHierarchy``: def-use chains of lines in sources, of instructions in SASS documents."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.lsp import source_hierarchy
from gpa_lsp.lsp.abilities import Abilities
from gpa_lsp.lsp.features import Method, RequestFeature
from gpa_lsp.lsp.sass import hierarchy
from gpa_lsp.lsp.settings import Settings


def serves_source(settings: Settings, abilities: Abilities) -> bool:
    """Where a client shows chains of source lines itself, the call hierarchy is left to the language's own server."""
    del settings
    return not abilities.call_hierarchy_tree


FEATURE = RequestFeature(
    method=Method[types.CallHierarchyPrepareParams, Sequence[types.CallHierarchyItem] | None](
        types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY
    ),
    answer=source_hierarchy.prepare,
    answer_sass=hierarchy.prepare,
    serves_source=serves_source,
)
