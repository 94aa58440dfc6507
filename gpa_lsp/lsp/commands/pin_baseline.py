"""``gpaLsp.pinBaseline``: later measurements are compared with the shown ones."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.lsp.command_arguments import choose_kernels
from gpa_lsp.lsp.commands import Command, SessionActions


async def pin_baseline(session: SessionActions, arguments: Sequence[Any]) -> int:
    """Pin a kernel, or all.

    Args:
        session: what may be done.
        arguments: the kernel's mangled name, or none.

    Returns:
        For how many kernels that could be done.
    """
    return await session.pin(choose_kernels(session.snapshot, arguments), is_pinned=True)


COMMAND = Command(name="gpaLsp.pinBaseline", run=pin_baseline)
