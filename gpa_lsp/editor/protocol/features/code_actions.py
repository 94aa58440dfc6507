"""Code actions on the lines of a range.

Edits come whole and at once, so that every editor that can preview them does; nothing but a fix that is being compiled is left to a second request.
"""

from collections.abc import Mapping, Sequence

from lsprotocol import types

from gpa_lsp.editor.lines.positions import read_lines
from gpa_lsp.editor.protocol.features import Method, SessionFeature
from gpa_lsp.editor.session_view import SessionView


def answer_code_action(session: SessionView, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """List the code actions on the lines of a range."""
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


# What can be done about the lines of a range. Edits come whole and at once, so that every editor that can preview
# them does; nothing but a fix that is being compiled is left to a second request.
CODE_ACTION = SessionFeature(
    method=Method[types.CodeActionParams, Sequence[types.Command | types.CodeAction] | None](
        types.TEXT_DOCUMENT_CODE_ACTION
    ),
    answer=answer_code_action,
    options=types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite], resolve_provider=True
    ),
)


_ARGUMENT = str | int | float | None


async def answer_resolve(session: SessionView, params: types.CodeAction) -> types.CodeAction:
    """The action with nothing new where it is none of ours, or of a text that is no longer there."""
    from gpa_lsp.editor.source.actions import choose_annotations, make_fix_action

    key = params.data.get("fix") if isinstance(params.data, Mapping) else None
    offered = await session.fixes.wait(key) if isinstance(key, str) else None
    view = None if offered is None else session.view(offered.uri)
    if offered is None or view is None or view.text != offered.text:
        # Not all of it: data, and arguments of commands of others, can be what no answer may hold.
        return types.CodeAction(
            title=params.title, kind=params.kind, edit=params.edit, command=_keep_command(params.command)
        )
    return make_fix_action(offered, choose_annotations(session))


def _keep_command(command: types.Command | None) -> types.Command | None:
    """A command as ours are: its arguments are words and numbers. Neovim runs what the answer holds, and nothing else."""
    if command is None or not all(isinstance(one, _ARGUMENT) for one in command.arguments or ()):
        return None
    return command


# A fix that somebody looks at, with its edits and what the compiler makes of it, when that is known or a moment
# later
CODE_ACTION_RESOLVE = SessionFeature(
    method=Method[types.CodeAction, types.CodeAction](types.CODE_ACTION_RESOLVE), answer=answer_resolve
)


FEATURES = (CODE_ACTION, CODE_ACTION_RESOLVE)
