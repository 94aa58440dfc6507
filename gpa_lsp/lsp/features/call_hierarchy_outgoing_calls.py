"""``callHierarchy/outgoingCalls``: who waits for a line or an instruction."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.lsp import source_hierarchy
from gpa_lsp.lsp.features import Method, SessionFeature
from gpa_lsp.lsp.protocol_types import make_outgoing_call
from gpa_lsp.lsp.sass import hierarchy
from gpa_lsp.lsp.session_view import SessionView


def answer(
    session: SessionView, params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall] | None:
    """The instructions or lines one step down; None for an item that is none of ours."""
    data = params.item.data
    found = hierarchy.list_outgoing(session, data)
    if found is None:
        found = source_hierarchy.list_outgoing(session, data)
    return None if found is None else [make_outgoing_call(link) for link in found]


FEATURE = SessionFeature(
    method=Method[types.CallHierarchyOutgoingCallsParams, Sequence[types.CallHierarchyOutgoingCall] | None](
        types.CALL_HIERARCHY_OUTGOING_CALLS
    ),
    answer=answer,
)
