"""``gpaLsp.listHotSpots``: the hottest lines of a document, or of everything that is shown."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_spot, read_text
from gpa_lsp.editor.protocol.session import Session


def answer(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The hot spots of the document in the arguments; of all where there is none."""
    from gpa_lsp.editor.hot_spots import list_hot_spots

    return [encode_spot(spot) for spot in list_hot_spots(session, read_text(arguments))]


COMMAND = Command(name="gpaLsp.listHotSpots", run=answer)
