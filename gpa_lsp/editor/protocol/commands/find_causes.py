"""``gpaLsp.findCauses``: what a line of a source or SASS document waits for, most samples first."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_jump, need_place
from gpa_lsp.editor.protocol.session import Session


def answer(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The jumps from the place in the arguments."""
    from gpa_lsp.editor.jumps import find_causes

    return [encode_jump(jump) for jump in find_causes(session, *need_place(arguments))]


COMMAND = Command(name="gpaLsp.findCauses", run=answer)
