"""``gpaLsp.goToCause``: show what a line waits for most. For editors that have keys for commands and nothing else of ours."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_jump, need_place
from gpa_lsp.editor.protocol.session import Session


def go_to_cause(session: Session, arguments: Arguments) -> JsonObject | None:
    """Show the first cause of the place in the arguments: its line, or its instruction where the line is the one we come from.

    Returns:
        The jump; None when the line is not known to wait for another one, which a message says.
    """
    from gpa_lsp.editor.jumps import find_causes

    place = need_place(arguments)
    jumps = find_causes(session, *place)
    if not jumps:
        session.client.inform("this line is not known to be stalled on another one")
        return None
    jump = jumps[0]
    is_same_line = (jump.location.uri, jump.location.range.start.line + 1) == place
    session.client.show_location(jump.sass if is_same_line and jump.sass is not None else jump.location)
    return encode_jump(jump)


COMMAND = Command(name="gpaLsp.goToCause", run=go_to_cause)
