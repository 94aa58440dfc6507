"""``gpaLsp.cancelMeasuring``: end the run that goes on."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session


def cancel_measuring(session: Session, arguments: Arguments) -> bool:
    """End it."""
    del arguments
    return session.cancel_measuring()


COMMAND = Command(name="gpaLsp.cancelMeasuring", run=cancel_measuring)
