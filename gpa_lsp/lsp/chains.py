"""One step along the def-use chain of a line, in sources and in SASS documents."""

from collections.abc import Sequence

from gpa_lsp.lsp.sass import hierarchy
from gpa_lsp.lsp.sass.hierarchy import InstructionStep
from gpa_lsp.lsp.sass.library import is_sass_uri
from gpa_lsp.lsp.session_view import SessionView
from gpa_lsp.lsp.source_hierarchy import ChainStep, choose_kernel, list_steps


def list_chain(
    session: SessionView, uri: str, line: int, *, is_incoming: bool
) -> Sequence[ChainStep | InstructionStep]:
    """What a line (1-based) waits for, or who waits for it, most samples first.

    Args:
        session: the session.
        uri: of a source or SASS document.
        line: in it.
        is_incoming: what the line waits for; else who waits for it.
    """
    if is_sass_uri(uri):
        return hierarchy.list_chain(session, uri, line, is_incoming=is_incoming)
    view = session.view(uri)
    cause = None if view is None else choose_kernel(view, line)
    if cause is None:
        return []
    return list_steps(session.places, cause.shown, cause.place, is_incoming=is_incoming)
