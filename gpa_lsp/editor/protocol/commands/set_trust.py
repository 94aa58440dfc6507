"""``gpaLsp.setTrust``: the user trusts the workspace, or does not any more."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session


def set_trust(session: Session, arguments: Arguments) -> bool:
    """Take the user's word; anything but true is no trust."""
    is_trusted = bool(arguments) and arguments[0] is True
    session.set_trust(is_trusted)
    return is_trusted


COMMAND = Command(name="gpaLsp.setTrust", run=set_trust)
