"""``gpaLsp.showKernel``: a page about one kernel. Its lens runs this."""

from gpa_lsp.editor.kernel_page import describe_kernel
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session


def show_kernel(session: Session, arguments: Arguments) -> str | None:
    """Show the kernel whose mangled name is the first argument.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None when there is no such kernel.
    """
    wanted = arguments[0] if arguments else None
    for shown in session.snapshot.visible:
        if shown.kernel.report.mangled_name == wanted:
            return session.client.show_document(shown.name, describe_kernel(shown))
    session.client.inform("no loaded profile has this kernel any more")
    return None


COMMAND = Command(name="gpaLsp.showKernel", run=show_kernel)
