"""``gpaLsp.recordLaunches``: run a program in the emulator, and emulate what it launched with every save."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.profile.collect.variables import parse_command_setting


async def record_launches(session: Session, arguments: Arguments) -> bool:
    """Record; arguments are the ``uri`` of a document or none, and a command, as a line or a list of words, or none for that of the settings."""
    try:
        command = parse_command_setting(arguments[1] if len(arguments) > 1 else None)
    except ValueError as error:
        session.client.warn(f"this is not {error}")
        return False
    return await session.record_launches(read_text(arguments), command)


COMMAND = Command(name="gpaLsp.recordLaunches", run=record_launches)
