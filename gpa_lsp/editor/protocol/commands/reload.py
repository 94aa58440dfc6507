"""``gpaLsp.reload``: read every profile again."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command, SessionActions


def reload(session: SessionActions, arguments: Sequence[Any]) -> None:
    """Forget what was read and look again; also finds sources that came since."""
    del arguments
    session.reload()


COMMAND = Command(name="gpaLsp.reload", run=reload)
