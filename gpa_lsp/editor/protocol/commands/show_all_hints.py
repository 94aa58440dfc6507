"""``gpaLsp.showAllHints``: hints on all lines above the threshold instead of as many as a screen bears."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session


def show_all_hints(session: Session, arguments: Arguments) -> bool:
    """Take what is said in the arguments, true or false, or turn it round; what it is then."""
    return session.show_all_hints(next((one for one in arguments if isinstance(one, bool)), None))


COMMAND = Command(name="gpaLsp.showAllHints", run=show_all_hints)
