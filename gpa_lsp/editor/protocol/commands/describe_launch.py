"""``gpaLsp.describeLaunch``: begin the description of a kernel's launch. A code action on the kernel runs this."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.foundation.errors import GpaError


async def describe_launch(session: SessionActions, arguments: Sequence[Any]) -> str | None:
    """Append to the description beside a source, which is made where there is none: arguments are the document's URI and the kernel's mangled name.

    Returns:
        What was appended; None when there is nothing to append, which is said.
    """
    uri, kernel = read_text(arguments), read_text(arguments, 1)
    if uri is None or kernel is None:
        return None
    try:
        return await session.predictions.describe(uri, kernel)
    except GpaError as error:
        session.show_message(str(error))
        return None


COMMAND = Command(name="gpaLsp.describeLaunch", run=describe_launch)
