"""``textDocument/codeAction``: what can be done about the lines of a range.

Edits come whole and at once, so that every editor that can preview them does; nothing but a fix that is being compiled is left to a second request.
"""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.editor.lines.positions import read_lines
from gpa_lsp.editor.model import Action, ActionKind
from gpa_lsp.editor.protocol.features import Method, SessionFeature
from gpa_lsp.editor.protocol.protocol_types import Annotations, choose_annotations, make_action
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.source.diagnostics import SOURCE


def answer_code_action(session: SessionView, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """What can be done about the lines of a range."""
    from gpa_lsp.editor.source.actions import list_actions

    view = session.view(params.text_document.uri)
    if view is None:
        return None
    first, last = read_lines(params.range)
    wanted, diagnostics = params.context.only, params.context.diagnostics
    found = list_actions(view, first, last, lambda kind: _is_wanted(kind, wanted), session.fixes)
    annotations = choose_annotations(session)
    return [_answer(action, view.uri, diagnostics, annotations) for action in found] or None


def _is_wanted(kind: ActionKind, wanted: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Kinds are a hierarchy by dots; the empty kind holds all, and is asked for only by who asks for everything."""
    if wanted is None:
        return True
    names = [str(getattr(one, "value", one)) for one in wanted]
    return any(name in ("", kind.value) or kind.value.startswith(f"{name}.") for name in names)


def _answer(
    action: Action, uri: str, diagnostics: Sequence[types.Diagnostic], annotations: Annotations
) -> types.CodeAction:
    """A fix says which diagnostics of ours it answers: those on the lines it begins to change."""
    made = make_action(action, annotations)
    if action.kind is ActionKind.QUICK_FIX and action.edits is not None:
        lines = {edit.range.start.line for edit in action.edits[uri]}
        answered = [one for one in diagnostics if one.source == SOURCE and one.range.start.line in lines]
        made.diagnostics = answered or None
    return made


FEATURE = SessionFeature(
    method=Method[types.CodeActionParams, Sequence[types.Command | types.CodeAction] | None](
        types.TEXT_DOCUMENT_CODE_ACTION
    ),
    answer=answer_code_action,
    options=types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind(kind.value) for kind in ActionKind if kind.value], resolve_provider=True
    ),
)
