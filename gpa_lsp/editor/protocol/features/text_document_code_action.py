"""``textDocument/codeAction``: what can be done about the lines of a range.

Edits come whole and at once, so that every editor that can preview them does; nothing but a fix that is being compiled is left to a second request.
"""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.lines.positions import read_lines
from gpa_lsp.editor.protocol.features import Method, SessionFeature
from gpa_lsp.editor.session_view import SessionView


def answer_code_action(session: SessionView, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """What can be done about the lines of a range."""
    from gpa_lsp.editor.source.actions import choose_annotations, list_actions

    view = session.view(params.text_document.uri)
    if view is None:
        return None
    first, last = read_lines(params.range)
    wanted, diagnostics = params.context.only, params.context.diagnostics
    found = list_actions(
        view,
        first,
        last,
        lambda kind: _is_wanted(kind, wanted),
        session.fixes,
        annotations=choose_annotations(session),
        diagnostics=diagnostics,
    )
    return found or None


def _is_wanted(kind: str, wanted: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Kinds are a hierarchy by dots; the empty kind holds all, and is asked for only by who asks for everything."""
    if wanted is None:
        return True
    names = [str(getattr(one, "value", one)) for one in wanted]
    return any(name in ("", kind) or kind.startswith(f"{name}.") for name in names)


FEATURE = SessionFeature(
    method=Method[types.CodeActionParams, Sequence[types.Command | types.CodeAction] | None](
        types.TEXT_DOCUMENT_CODE_ACTION
    ),
    answer=answer_code_action,
    options=types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite], resolve_provider=True
    ),
)
