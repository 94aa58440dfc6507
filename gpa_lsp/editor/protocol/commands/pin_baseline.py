"""``gpaLsp.pinBaseline``: later measurements are compared with the shown ones."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.plain_json import choose_kernels


async def pin_baseline(session: SessionActions, arguments: Sequence[Any]) -> int:
    """Pin a kernel, or all."""
    return await session.pin(choose_kernels(session.snapshot, arguments), is_pinned=True)


COMMAND = Command(name="gpaLsp.pinBaseline", run=pin_baseline)
