"""``gpaLsp.listTies``: which lines of a source became which lines of a SASS document, each with the number of a colour."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import ArgumentsError, read_text
from gpa_lsp.editor.protocol.session import Session


def list_ties(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The ties between the SASS document and the source in the arguments, both open; none where they have nothing to do with each other."""
    from gpa_lsp.editor.sass.links import find_ties

    sass_uri, source_uri = read_text(arguments), read_text(arguments, 1)
    if sass_uri is None or source_uri is None:
        raise ArgumentsError("it takes the URIs of a SASS document and of a source")
    return [
        {
            "line": tie.line - 1,
            "colour": tie.colour,
            "ranges": [{"first": first - 1, "last": last - 1} for first, last in tie.stretches],
        }
        for tie in find_ties(session, sass_uri, source_uri)
    ]


COMMAND = Command(name="gpaLsp.listTies", run=list_ties)
