"""``gpaLsp.listHotSpots``: the hottest lines of a document, or of everything that is shown."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.lsp.command_arguments import read_text
from gpa_lsp.lsp.commands import Command, Desk
from gpa_lsp.lsp.hot_spots import HotSpot, list_hot_spots
from gpa_lsp.lsp.jump import encode_location


def answer(desk: Desk, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """The hot spots of the document in the arguments; of all where there is none."""
    return [encode_spot(spot) for spot in list_hot_spots(desk, read_text(arguments))]


def encode_spot(spot: HotSpot) -> dict[str, Any]:
    """A hot spot as plain JSON."""
    return {
        **encode_location(spot.location),
        "ratio": spot.ratio,
        "kernel": spot.shown.name,
        "kind": spot.kind.value,
        "text": spot.text,
    }


COMMAND = Command(name="gpaLsp.listHotSpots", run=answer)
