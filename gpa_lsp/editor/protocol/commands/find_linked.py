"""``gpaLsp.findLinked``: the same code on the other side, SASS of a source line or source lines of an instruction."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_link, need_place
from gpa_lsp.editor.protocol.session import Session


def find_linked(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The links from the place in the arguments."""
    from gpa_lsp.editor.sass.links import find_links

    return [encode_link(link) for link in find_links(session, *need_place(arguments))]


COMMAND = Command(name="gpaLsp.findLinked", run=find_linked)
