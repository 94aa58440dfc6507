"""One file per command the editor can ask the server to execute; each defines ``COMMAND``. ``editors/PROTOCOL.md`` lists them.

A command must do something in every client: one that cannot open documents gets a message instead. What only a person asks for is
imported when they ask: the answer to initialize must not wait for it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from gpa_lsp.editor.protocol.session import Session

Arguments = Sequence[Any]  # of a command, as its client sent them
JsonObject = dict[str, Any]


class Command(Struct, frozen=True, kw_only=True):
    """One command."""

    name: str  # starts with ``gpaLsp.``; the same for all clients
    # (session, the request's arguments) → the result, plain JSON, or a coroutine of it. Arguments come from the client unchecked.
    run: Callable[[Session, Arguments], Any]
