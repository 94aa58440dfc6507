"""``callHierarchy/outgoingCalls``: who waits for a line or an instruction."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, SessionFeature
from gpa_lsp.editor.session_view import SessionView


def answer(
    session: SessionView, params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall] | None:
    """The instructions or lines one step down; None for an item that is none of ours."""
    from gpa_lsp.editor.jumps import list_outgoing

    return list_outgoing(session, params.item.data)


FEATURE = SessionFeature(
    method=Method[types.CallHierarchyOutgoingCallsParams, Sequence[types.CallHierarchyOutgoingCall] | None](
        types.CALL_HIERARCHY_OUTGOING_CALLS
    ),
    answer=answer,
)
