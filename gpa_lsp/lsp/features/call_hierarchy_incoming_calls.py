"""``callHierarchy/incomingCalls``: what a line or an instruction waits for."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.lsp import source_hierarchy
from gpa_lsp.lsp.features import Method, SessionFeature
from gpa_lsp.lsp.protocol_types import make_incoming_call
from gpa_lsp.lsp.sass import hierarchy
from gpa_lsp.lsp.session_view import SessionView


def answer(
    session: SessionView, params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall] | None:
    """The instructions or lines one step up; None for an item that is none of ours."""
    data = params.item.data
    found = hierarchy.list_incoming(session, data)
    if found is None:
        found = source_hierarchy.list_incoming(session, data)
    return None if found is None else [make_incoming_call(link) for link in found]


FEATURE = SessionFeature(
    method=Method[types.CallHierarchyIncomingCallsParams, Sequence[types.CallHierarchyIncomingCall] | None](
        types.CALL_HIERARCHY_INCOMING_CALLS
    ),
    answer=answer,
)
