"""``gpaLsp.measure``: run the user's command now."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session


def measure(session: Session, arguments: Arguments) -> bool:
    """Measure, for the document whose ``uri`` is the first argument, or for none."""
    return session.measure(read_text(arguments))


COMMAND = Command(name="gpaLsp.measure", run=measure)
