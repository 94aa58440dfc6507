"""``gpaLsp.findChain``: what a line is stalled on, or what is stalled on it, as items of a call hierarchy.

For clients that show def-use chains themselves: the items are opened further with ``callHierarchy/incomingCalls`` and ``…/outgoingCalls``.
"""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import ArgumentsError, encode_item, need_place, read_text
from gpa_lsp.editor.protocol.session import Session


def find_chain(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The lines one step from a place, most samples first."""
    from gpa_lsp.editor.jumps import list_chain

    place, direction = need_place(arguments), read_text(arguments, 2)
    if direction not in ("incoming", "outgoing"):
        raise ArgumentsError("argument 3 is neither incoming nor outgoing")
    steps = list_chain(session, *place, is_incoming=direction == "incoming")
    return [{"item": encode_item(step.item), "text": step.text, "ratio": step.ratio} for step in steps]


COMMAND = Command(name="gpaLsp.findChain", run=find_chain)
