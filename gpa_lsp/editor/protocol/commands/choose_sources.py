"""``gpaLsp.chooseSources``: whether numbers are shown in sources that may have changed since they were measured, or where sources lie."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session


async def choose_sources(session: Session, arguments: Arguments) -> str | None:
    """Take what is said in the arguments, ``show``, ``hide`` or ``map``, or ask."""
    wanted = next((argument for argument in arguments if isinstance(argument, str)), None)
    return await session.doubts.ask(wanted)


COMMAND = Command(name="gpaLsp.chooseSources", run=choose_sources)
