"""``gpaLsp.showStatics``: a page about a kernel by its code alone. Its static lens runs this."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.kernel.names import shorten_name


def show_statics(session: Session, arguments: Arguments) -> str | None:
    """Show a kernel of an open source: arguments are the document's URI and the kernel's mangled name.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None when there is no such kernel.
    """
    uri, wanted = (*arguments, None, None)[:2]
    view = session.view(uri) if isinstance(uri, str) else None
    anchors = () if view is None or view.statics is None else view.statics.anchors
    for anchor in anchors:
        if anchor.kernel.mangled_name == wanted:
            return session.client.show_document(shorten_name(anchor.kernel.name), anchor.kernel.page)
    session.client.inform("nothing is known of this kernel's code any more")
    return None


COMMAND = Command(name="gpaLsp.showStatics", run=show_statics)
