"""``gpaLsp.showPage``: the whole report as a page of HTML, at a kernel or at its beginning."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import find_mangled
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.foundation.errors import GpaError


async def show_page(session: Session, arguments: Arguments) -> dict[str, str] | None:
    """Write the page of all shown kernels, and show it unless the client does that itself: at the kernel whose mangled name was sent, or at the one
    that a line (``uri, line``) is in.

    Returns:
        ``uri`` of the file and ``place``, the fragment of the kernel (empty for none); None when there is nothing to show, which is said.
    """
    kernels = session.snapshot.visible
    if not kernels:
        session.client.inform("no profile is loaded, so there is nothing to show")
        return None
    wanted = find_mangled(session, arguments)
    numbers = (number for number, shown in enumerate(kernels) if shown.kernel.report.mangled_name == wanted)
    number = next(numbers, None)
    try:
        path = await session.pages.write(kernels)
    except (GpaError, OSError) as error:
        session.client.inform(f"the page cannot be written: {error}")
        return None
    return session.pages.show(path, "" if number is None else f"#k{number}")


COMMAND = Command(name="gpaLsp.showPage", run=show_page)
