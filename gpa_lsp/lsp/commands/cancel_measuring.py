"""``gpaLsp.cancelMeasuring``: end the run that goes on."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.lsp.commands import Command, Desk


def cancel_measuring(desk: Desk, arguments: Sequence[Any]) -> bool:
    """End it.

    Returns:
        Whether there was one.
    """
    del arguments
    return desk.cancel_measuring()


COMMAND = Command(name="gpaLsp.cancelMeasuring", run=cancel_measuring)
