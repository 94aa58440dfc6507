"""``workspace/symbol``: the measured kernels, by a part of their name."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, SessionFeature
from gpa_lsp.editor.session_view import SessionView


def answer_workspace_symbol(session: SessionView, params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
    """The kernels that the query's characters name."""
    from gpa_lsp.editor.kernels import find_kernels

    return find_kernels(session, params.query)


FEATURE = SessionFeature(
    method=Method[
        types.WorkspaceSymbolParams, Sequence[types.SymbolInformation] | Sequence[types.WorkspaceSymbol] | None
    ](types.WORKSPACE_SYMBOL),
    answer=answer_workspace_symbol,
)
