"""``gpaLsp.showHistory``: a page with what changed since earlier measurements."""

from collections.abc import Sequence

from gpa_lsp.editor.history import describe_past
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import choose_kernels
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.visible_text import make_one_line


def show_history(session: Session, arguments: Arguments) -> str:
    """Show the past of a kernel (its mangled name), or of all."""
    return session.client.show_document("history", describe_histories(choose_kernels(session.snapshot, arguments)))


def describe_histories(kernels: Sequence[VisibleKernel]) -> str:
    """The page."""
    parts = ["# What changed"]
    for shown in kernels:
        past = describe_past(shown.kernel.history)
        parts.append(f"## {make_one_line(shown.name)}\n\n{past or 'Nothing earlier is remembered of this kernel.'}")
    if not kernels:
        parts.append("No loaded profile has such a kernel.")
    parts.append("`gpa-lsp history` lists every measurement that is remembered.")
    return "\n\n".join(parts) + "\n"


COMMAND = Command(name="gpaLsp.showHistory", run=show_history)
