"""``gpaLsp.unpinBaseline``: the baselines go; the measurements stay."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command
from gpa_lsp.editor.protocol.plain_json import choose_kernels
from gpa_lsp.editor.protocol.session import Session


async def unpin_baseline(session: Session, arguments: Sequence[Any]) -> int:
    """Unpin a kernel, or all."""
    return await session.pin([shown.kernel for shown in choose_kernels(session.snapshot, arguments)], is_pinned=False)


COMMAND = Command(name="gpaLsp.unpinBaseline", run=unpin_baseline)
