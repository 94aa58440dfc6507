"""``gpaLsp.showHistory``: a page with what changed since earlier measurements."""

from collections.abc import Sequence

from gpa_lsp.document.blocks import Block, Paragraph, Part
from gpa_lsp.document.layout import Style
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.editor.history import build_past
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import choose_kernels
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.snapshot import VisibleKernel


def show_history(session: Session, arguments: Arguments) -> str:
    """Show the past of a kernel (its mangled name), or of all."""
    return session.client.show_document("history", describe_histories(choose_kernels(session.snapshot, arguments)))


def describe_histories(kernels: Sequence[VisibleKernel]) -> str:
    """The page."""
    nothing = [Paragraph(text="Nothing earlier is remembered of this kernel.")]
    blocks: list[Block] = [
        Part(title=shown.name, style=Style.TITLE, blocks=build_past(shown.kernel.history) or nothing)
        for shown in kernels
    ]
    blocks += [] if kernels else [Paragraph(text="No loaded profile has such a kernel.")]
    blocks.append(Paragraph(text="`gpa-lsp history` lists every measurement that is remembered."))
    return "\n".join(write_markdown([Part(title="What changed", blocks=blocks)], level=1)) + "\n"


COMMAND = Command(name="gpaLsp.showHistory", run=show_history)
