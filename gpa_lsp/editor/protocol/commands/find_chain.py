"""``gpaLsp.findChain``: what a line is stalled on, or what is stalled on it, as items of a call hierarchy.

For clients that show def-use chains themselves: the items are opened further with ``callHierarchy/incomingCalls`` and ``…/outgoingCalls``.
"""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.plain_json import encode_item, read_place, read_text

_DIRECTIONS = {"incoming": True, "outgoing": False}


def find_chain(session: SessionActions, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """The lines one step from a place, most samples first; none when the arguments are no place and direction."""
    from gpa_lsp.editor.jumps import list_chain

    place, direction = read_place(arguments), read_text(arguments, 2)
    if place is None or direction not in _DIRECTIONS:
        return []
    steps = list_chain(session, *place, is_incoming=_DIRECTIONS[direction])
    return [{"item": encode_item(step.item), "text": step.text, "ratio": step.ratio} for step in steps]


COMMAND = Command(name="gpaLsp.findChain", run=find_chain)
