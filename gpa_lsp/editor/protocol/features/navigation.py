"""Navigation from a line or an instruction to the definitions and uses of its values."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.positions import read_line
from gpa_lsp.editor.protocol.features import Method, RequestFeature, SessionFeature
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.settings import Abilities, Settings


def answer_definition(view: DocumentView, params: types.DefinitionParams) -> list[types.Location] | None:
    """The lines that the line under the cursor waits for, most samples first; those of little weight are left out."""
    from gpa_lsp.editor.jumps import find_awaited_lines

    return find_awaited_lines(view, read_line(params.position)) or None


def answer_sass_definition(view: SassView, params: types.DefinitionParams) -> list[types.Location] | None:
    """The definitions of what is under the cursor."""
    from gpa_lsp.editor.sass.jumps import find_definition  # needs numpy, which initialize must not wait for

    return find_definition(view, params.position)


def _serves_definition(settings: Settings, abilities: Abilities) -> bool:
    del abilities
    return settings.serves_definition


# In SASS documents, who wrote an operand, where a branch goes, what a stall waits for. In sources, where the user
# wants it, the lines that a line waits for.
DEFINITION = RequestFeature(
    method=Method[
        types.DefinitionParams, types.Location | Sequence[types.Location] | Sequence[types.LocationLink] | None
    ](types.TEXT_DOCUMENT_DEFINITION),
    answer=answer_definition,
    answer_sass=answer_sass_definition,
    serves_source=_serves_definition,
)


def answer_sass_references(view: SassView, params: types.ReferenceParams) -> list[types.Location] | None:
    """The references of what is under the cursor."""
    from gpa_lsp.editor.sass.jumps import find_references  # needs numpy, which initialize must not wait for

    return find_references(view, params.position, with_declarations=params.context.include_declaration)


# In SASS documents: every place that writes or reads a value, and everything that goes to a target
REFERENCES = RequestFeature(
    method=Method[types.ReferenceParams, Sequence[types.Location] | None](types.TEXT_DOCUMENT_REFERENCES),
    answer_sass=answer_sass_references,
)


def answer_sass_document_highlight(
    view: SassView, params: types.DocumentHighlightParams
) -> list[types.DocumentHighlight] | None:
    """The highlights of what is under the cursor."""
    from gpa_lsp.editor.sass.jumps import find_highlights  # needs numpy, which initialize must not wait for

    return find_highlights(view, params.position)


# In SASS documents: where the value under the cursor is written and read
DOCUMENT_HIGHLIGHT = RequestFeature(
    method=Method[types.DocumentHighlightParams, Sequence[types.DocumentHighlight] | None](
        types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT
    ),
    answer_sass=answer_sass_document_highlight,
)


def answer_prepare_call_hierarchy(
    view: DocumentView, params: types.CallHierarchyPrepareParams
) -> list[types.CallHierarchyItem] | None:
    """The line under the cursor."""
    from gpa_lsp.editor.source.chains import prepare

    item = prepare(view, read_line(params.position))
    return None if item is None else [item]


def answer_sass_prepare_call_hierarchy(
    view: SassView, params: types.CallHierarchyPrepareParams
) -> list[types.CallHierarchyItem] | None:
    """The instruction under the cursor."""
    from gpa_lsp.editor.sass.jumps import prepare

    item = prepare(view, read_line(params.position))
    return None if item is None else [item]


def _serves_chains(settings: Settings, abilities: Abilities) -> bool:
    """Whether the call hierarchy serves sources: not where the client shows chains of source lines itself."""
    del settings
    return not abilities.call_hierarchy_tree


# Def-use chains of lines in sources, of instructions in SASS documents
PREPARE_CALL_HIERARCHY = RequestFeature(
    method=Method[types.CallHierarchyPrepareParams, Sequence[types.CallHierarchyItem] | None](
        types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY
    ),
    answer=answer_prepare_call_hierarchy,
    answer_sass=answer_sass_prepare_call_hierarchy,
    serves_source=_serves_chains,
)


def answer_call_hierarchy_incoming_calls(
    session: SessionView, params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall] | None:
    """The instructions or lines one step up; None for an item that is none of ours."""
    from gpa_lsp.editor.jumps import list_incoming

    return list_incoming(session, params.item.data)


# What a line or an instruction waits for
CALL_HIERARCHY_INCOMING_CALLS = SessionFeature(
    method=Method[types.CallHierarchyIncomingCallsParams, Sequence[types.CallHierarchyIncomingCall] | None](
        types.CALL_HIERARCHY_INCOMING_CALLS
    ),
    answer=answer_call_hierarchy_incoming_calls,
)


def answer_call_hierarchy_outgoing_calls(
    session: SessionView, params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall] | None:
    """The instructions or lines one step down; None for an item that is none of ours."""
    from gpa_lsp.editor.jumps import list_outgoing

    return list_outgoing(session, params.item.data)


# Who waits for a line or an instruction
CALL_HIERARCHY_OUTGOING_CALLS = SessionFeature(
    method=Method[types.CallHierarchyOutgoingCallsParams, Sequence[types.CallHierarchyOutgoingCall] | None](
        types.CALL_HIERARCHY_OUTGOING_CALLS
    ),
    answer=answer_call_hierarchy_outgoing_calls,
)


FEATURES = (
    DEFINITION,
    REFERENCES,
    DOCUMENT_HIGHLIGHT,
    PREPARE_CALL_HIERARCHY,
    CALL_HIERARCHY_INCOMING_CALLS,
    CALL_HIERARCHY_OUTGOING_CALLS,
)
