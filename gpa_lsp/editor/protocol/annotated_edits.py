"""Which edits a client wants something said of."""

from gpa_lsp.editor.protocol.protocol_types import Annotations
from gpa_lsp.editor.session_view import SessionView

_HONOURS = "text_document.code_action.honors_change_annotations"
_KNOWS = "workspace.workspace_edit.change_annotation_support"


def choose_annotations(session: SessionView) -> Annotations:
    """Every fix where the client shows what is said before it applies an edit; elsewhere what it should ask about, if it does.

    A client that shows it only afterwards would interrupt, for nothing.
    """
    if not session.can(_HONOURS) or not session.can(_KNOWS):
        return Annotations.NONE
    return Annotations.ALL if session.abilities.previews else Annotations.DOUBTS
