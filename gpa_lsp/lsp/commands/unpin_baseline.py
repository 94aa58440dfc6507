"""``gpaLsp.unpinBaseline``: the baselines go; the measurements stay."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.lsp.command_arguments import choose_kernels
from gpa_lsp.lsp.commands import Command, Desk


async def unpin_baseline(desk: Desk, arguments: Sequence[Any]) -> int:
    """Unpin a kernel, or all.

    Args:
        desk: what may be done.
        arguments: the kernel's mangled name, or none.

    Returns:
        For how many kernels that could be done.
    """
    return await desk.pin(choose_kernels(desk.snapshot, arguments), is_pinned=False)


COMMAND = Command(name="gpaLsp.unpinBaseline", run=unpin_baseline)
