"""``codeAction/resolve``: a fix that somebody looks at, with its edits and what the compiler makes of it, when that is known or a moment later."""

from collections.abc import Mapping

from lsprotocol import types

from gpa_lsp.editor.protocol.features import Method, SessionFeature
from gpa_lsp.editor.session_view import SessionView

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


FEATURE = SessionFeature(
    method=Method[types.CodeAction, types.CodeAction](types.CODE_ACTION_RESOLVE), answer=answer_resolve
)
