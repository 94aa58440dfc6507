"""``gpaLsp.setTrust``: the user trusts the workspace, or does not any more."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.lsp.commands import Command, Desk


def set_trust(desk: Desk, arguments: Sequence[Any]) -> bool:
    """Take the user's word; anything but true is no trust.

    Returns:
        What holds now.
    """
    is_trusted = bool(arguments) and arguments[0] is True
    desk.set_trust(is_trusted)
    return is_trusted


COMMAND = Command(name="gpaLsp.setTrust", run=set_trust)
