"""``gpaLsp.compareSimulated``: a measured kernel beside the same as it is simulated, as a page of HTML."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.plain_json import find_mangled
from gpa_lsp.foundation.errors import GpaError


async def compare_simulated(session: SessionActions, arguments: Sequence[Any]) -> dict[str, str] | None:
    """Simulate a described launch of a measured kernel, with the code, the GPU and the clocks of its report, and show both sides unless the client
    does that itself: the kernel whose mangled name was sent, or the one that a line (``uri, line``) is in.

    Returns:
        ``uri`` of the file and ``place``, which is empty; None when there is nothing to show, which is said.
    """
    wanted = find_mangled(session, arguments)
    shown = next((one for one in session.snapshot.visible if one.kernel.report.mangled_name == wanted), None)
    if shown is None:
        session.show_message("put the cursor into a measured kernel: it is compared with what a simulation says")
        return None
    try:
        path = await session.simulations.compare(shown)
    except (GpaError, OSError) as error:
        session.show_message(f"not compared: {error}")
        return None
    if not session.abilities.pages:
        session.pages.show(path, "")
    return {"uri": path.as_uri(), "place": ""}


COMMAND = Command(name="gpaLsp.compareSimulated", run=compare_simulated)
