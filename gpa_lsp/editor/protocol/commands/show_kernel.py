"""``gpaLsp.showKernel``: a page about one kernel. Its lens runs this."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.kernel_page import describe_kernel
from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.safe_markdown import defuse


def show_kernel(session: SessionActions, arguments: Sequence[Any]) -> str | None:
    """Show the kernel whose mangled name is the first argument.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None when there is no such kernel.
    """
    wanted = arguments[0] if arguments else None
    for shown in session.snapshot.visible:
        if shown.kernel.report.mangled_name == wanted:
            page = defuse(describe_kernel(shown))
            session.show_document(shown.name, page)
            return page
    session.show_message("no loaded profile has this kernel any more")
    return None


COMMAND = Command(name="gpaLsp.showKernel", run=show_kernel)
