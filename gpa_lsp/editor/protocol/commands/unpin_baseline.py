"""``gpaLsp.unpinBaseline``: the baselines go; the measurements stay."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import choose_kernels
from gpa_lsp.editor.protocol.session import Session


async def unpin_baseline(session: Session, arguments: Arguments) -> int:
    """Unpin a kernel, or all."""
    return await session.pin([shown.kernel for shown in choose_kernels(session.snapshot, arguments)], is_pinned=False)


COMMAND = Command(name="gpaLsp.unpinBaseline", run=unpin_baseline)
