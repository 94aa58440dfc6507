"""``gpaLsp.reload``: read every profile again."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session


def reload(session: Session, arguments: Arguments) -> None:
    """Forget what was read and look again; also finds sources that came since."""
    del arguments
    session.loader.reload()


COMMAND = Command(name="gpaLsp.reload", run=reload)
