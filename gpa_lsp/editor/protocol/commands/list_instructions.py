"""``gpaLsp.listInstructions``: the instructions of a SASS document sorted by a column, largest first."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_location, read_text
from gpa_lsp.editor.protocol.session import Session


def list_instructions(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The instructions of the document in the arguments by the column named there, by their samples where none is."""
    from gpa_lsp.editor.sass.hot_rows import sort_rows

    uri = read_text(arguments)
    view = None if uri is None else session.sass.view(uri)
    if view is None:
        return []
    rows = sort_rows(view, read_text(arguments, 1) or "share")
    return [
        {**encode_location(one.location), "value": one.value, "name": one.text, "detail": one.detail} for one in rows
    ]


COMMAND = Command(name="gpaLsp.listInstructions", run=list_instructions)
