"""``gpaLsp.findChain``: what a line is stalled on, or what is stalled on it, as items of a call hierarchy.

For clients that show def-use chains themselves: the items are opened further with ``callHierarchy/incomingCalls`` and ``…/outgoingCalls``.
"""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.lsp.command_arguments import read_place, read_text
from gpa_lsp.lsp.commands import Command, Desk
from gpa_lsp.lsp.plain_json import encode_item
from gpa_lsp.lsp.sass import hierarchy
from gpa_lsp.lsp.sass.hierarchy import InstructionStep
from gpa_lsp.lsp.sass.library import is_sass_uri
from gpa_lsp.lsp.session_view import SessionView
from gpa_lsp.lsp.source_hierarchy import ChainStep, choose_kernel, list_steps

_DIRECTIONS = {"incoming": True, "outgoing": False}


def find_chain(desk: Desk, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """The lines one step from a place, most samples first; none when the arguments are no place and direction."""
    place, direction = read_place(arguments), read_text(arguments, 2)
    if place is None or direction not in _DIRECTIONS:
        return []
    steps = list_chain(desk, *place, is_incoming=_DIRECTIONS[direction])
    return [{"item": encode_item(step.item), "text": step.text, "ratio": step.ratio} for step in steps]


def list_chain(
    session: SessionView, uri: str, line: int, *, is_incoming: bool
) -> Sequence[ChainStep | InstructionStep]:
    """What a line (1-based) is stalled on, or what is stalled on it, most samples first.

    Args:
        session: the session.
        uri: of a source or SASS document.
        line: in it.
        is_incoming: what the line is stalled on; else what is stalled on it.
    """
    if is_sass_uri(uri):
        return hierarchy.list_chain(session, uri, line, is_incoming=is_incoming)
    view = session.view(uri)
    cause = None if view is None else choose_kernel(view, line)
    if cause is None:
        return []
    return list_steps(session.places, cause.shown, cause.place, is_incoming=is_incoming)


COMMAND = Command(name="gpaLsp.findChain", run=find_chain)
