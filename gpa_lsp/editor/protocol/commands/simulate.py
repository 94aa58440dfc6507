"""``gpaLsp.simulate``: simulate the described launches of an open source. A code action on a kernel runs this."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session


async def simulate(session: Session, arguments: Arguments) -> bool:
    """Simulate; arguments are the ``uri`` of a source or of its description, and the mangled name of a kernel or none for all that are described."""
    uri = read_text(arguments)
    path = None if uri is None else session.documents.find_local_path(uri)
    if path is not None and await session.jobs.simulations.simulate(path, read_text(arguments, 1)):
        return True
    session.client.inform(
        "nothing is simulated: the source is not open, or not in a trusted workspace, or gpaLsp.emulation.enable is off"
    )
    return False


COMMAND = Command(name="gpaLsp.simulate", run=simulate)
