"""``gpaLsp.openReport``: one profile as a page of HTML. An editor runs this when somebody opens the file itself."""

from pathlib import Path

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import find_mangled, read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.protocol.wire import read_path
from gpa_lsp.foundation.errors import GpaError


async def open_report(session: Session, arguments: Arguments) -> dict[str, str] | None:
    """Write the page of a profile, and show it unless the client does that itself: arguments are the file's URI and, where somebody looks at a
    source, its URI and line, or a kernel's mangled name.

    Returns:
        ``uri`` of the page and ``place``, the fragment of the kernel (empty for none), or ``failure``, a sentence; None for what is no file.
    """
    uri = read_text(arguments)
    profile = None if uri is None else read_path(uri)
    if profile is None:
        return None
    try:
        path, kernels = await session.pages.write_profile(session.loader.make_job(Path(profile)))
    except (GpaError, OSError) as error:
        if not session.abilities.pages:
            session.client.inform(str(error))
        return {"failure": str(error)}
    wanted = find_mangled(session, arguments[1:])
    return session.pages.show(path, f"#k{kernels.index(wanted)}" if wanted in kernels else "")


COMMAND = Command(name="gpaLsp.openReport", run=open_report)
