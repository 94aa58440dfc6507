"""``gpaLsp.cancelMeasuring``: end the run that goes on."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command
from gpa_lsp.editor.protocol.session import Session


def cancel_measuring(session: Session, arguments: Sequence[Any]) -> bool:
    """End it."""
    del arguments
    return session.cancel_measuring()


COMMAND = Command(name="gpaLsp.cancelMeasuring", run=cancel_measuring)
