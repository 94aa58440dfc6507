"""Commands the editor can ask the server to execute, one file per subject; each defines ``COMMANDS``. ``editors/PROTOCOL.md`` lists them.

A command must do something in every client: one that cannot open documents gets a message instead. What only a person asks for is
imported when they ask: the answer to initialize must not wait for it.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.foundation.catalogue import load_catalogue

Arguments = Sequence[Any]  # of a command, as its client sent them
JsonObject = dict[str, Any]

# (session, the request's arguments) → the result, plain JSON, or a coroutine of it. Arguments come from the client unchecked.
Command = Callable[[Session, Arguments], Any]


def load_commands() -> dict[str, Command]:
    """All commands by name, which starts with ``gpaLsp.`` and is the same for all clients."""
    subjects: dict[str, dict[str, Command]] = load_catalogue(sys.modules[__name__], "COMMANDS", dict)
    return {name: command for commands in subjects.values() for name, command in commands.items()}
