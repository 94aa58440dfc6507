"""``gpaLsp.findVictims``: who waits for a line of a source or SASS document, most samples first."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_jump, need_place
from gpa_lsp.editor.protocol.session import Session


def answer(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The jumps from the place in the arguments."""
    from gpa_lsp.editor.jumps import find_victims

    return [encode_jump(jump) for jump in find_victims(session, *need_place(arguments))]


COMMAND = Command(name="gpaLsp.findVictims", run=answer)
