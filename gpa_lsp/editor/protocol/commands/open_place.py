"""``gpaLsp.openPlace``: show a line of a source as the compiler named it, wherever that is on this machine now. Pages send their places here."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import ArgumentsError, encode_location, read_text
from gpa_lsp.editor.protocol.session import Session

_MOST_LINES = 1 << 31


def open_place(session: Session, arguments: Arguments) -> JsonObject | None:
    """Show a place of a loaded profile.

    Args:
        arguments: path as compiled, and 1-based line.

    Returns:
        Where that is; None when no loaded profile has the place, or it is not on this machine any more, which is said.

    Raises:
        ArgumentsError: something else was sent.
    """
    file = read_text(arguments)
    line = arguments[1] if len(arguments) > 1 else None
    if file is None or isinstance(line, bool) or not isinstance(line, int) or not 0 < line < _MOST_LINES:
        raise ArgumentsError("it takes a file as it was compiled and the number of a line from 1")
    for shown in session.snapshot.visible:
        location = session.places.locate(shown, (file, line)) if file in shown.profile.files else None
        if location is not None:
            session.client.show_location(location)
            return encode_location(location)
    session.client.inform("this line is not on this machine, or was edited since it was measured")
    return None


COMMAND = Command(name="gpaLsp.openPlace", run=open_place)
