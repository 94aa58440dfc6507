"""From a line to what it is stalled on, and to what is stalled on it, step by step: along lines in sources, along instructions in SASS documents."""

from collections.abc import Sequence

from gpa_lsp.editor.model import ChainLink
from gpa_lsp.editor.sass import chains as of_instructions
from gpa_lsp.editor.sass.chains import InstructionStep
from gpa_lsp.editor.sass.library import is_sass_uri
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.source import chains as of_lines
from gpa_lsp.editor.source.chains import ChainStep


def list_incoming(session: SessionView, data: object) -> list[ChainLink] | None:
    """What an item's line or instruction waits for, most samples first; None for an item that is none of ours or is not there any more."""
    found = of_instructions.list_incoming(session, data)
    return of_lines.list_incoming(session, data) if found is None else found


def list_outgoing(session: SessionView, data: object) -> list[ChainLink] | None:
    """Who waits for an item's line or instruction, most samples first; None for an item that is none of ours or is not there any more."""
    found = of_instructions.list_outgoing(session, data)
    return of_lines.list_outgoing(session, data) if found is None else found


def list_chain(
    session: SessionView, uri: str, line: int, *, is_incoming: bool
) -> Sequence[ChainStep | InstructionStep]:
    """What a line (1-based) is stalled on, or what is stalled on it, most samples first."""
    if is_sass_uri(uri):
        return of_instructions.list_chain(session, uri, line, is_incoming=is_incoming)
    view = session.view(uri)
    cause = None if view is None else of_lines.choose_kernel(view, line)
    if cause is None:
        return []
    return of_lines.list_steps(session.places, cause.shown, cause.place, is_incoming=is_incoming)
