"""``gpaLsp.findChain``: what a line waits for, or who waits for it, as items of a call hierarchy.

For clients that show def-use chains themselves: the items are opened further with ``callHierarchy/incomingCalls`` and ``…/outgoingCalls``.
"""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from gpa_lsp.lsp.chains import list_chain
from gpa_lsp.lsp.command_arguments import read_place, read_text
from gpa_lsp.lsp.commands import Command, Desk
from gpa_lsp.lsp.jump import encode_range

_DIRECTIONS = {"incoming": True, "outgoing": False}


def find_chain(desk: Desk, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """The lines one step from a place, most samples first; none when the arguments are no place and direction."""
    place, direction = read_place(arguments), read_text(arguments, 2)
    if place is None or direction not in _DIRECTIONS:
        return []
    steps = list_chain(desk, *place, is_incoming=_DIRECTIONS[direction])
    return [{"item": encode_item(step.item), "text": step.text, "ratio": step.ratio} for step in steps]


def encode_item(item: types.CallHierarchyItem) -> dict[str, Any]:
    """An item as plain JSON, as the protocol has it."""
    return {
        "name": item.name,
        "kind": item.kind.value,
        "uri": item.uri,
        "range": encode_range(item.range),
        "selectionRange": encode_range(item.selection_range),
        "detail": item.detail,
        "data": item.data,
    }


COMMAND = Command(name="gpaLsp.findChain", run=find_chain)
