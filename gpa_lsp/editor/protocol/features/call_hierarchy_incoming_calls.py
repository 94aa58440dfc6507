"""``callHierarchy/incomingCalls``: what a line or an instruction waits for."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, SessionFeature
from gpa_lsp.editor.session_view import SessionView


def answer(
    session: SessionView, params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall] | None:
    """The instructions or lines one step up; None for an item that is none of ours."""
    from gpa_lsp.editor.jumps import list_incoming

    return list_incoming(session, params.item.data)


FEATURE = SessionFeature(
    method=Method[types.CallHierarchyIncomingCallsParams, Sequence[types.CallHierarchyIncomingCall] | None](
        types.CALL_HIERARCHY_INCOMING_CALLS
    ),
    answer=answer,
)
