"""``gpaLsp.chooseMeasurement``: show another measurement of a kernel, until there is a newer one. Its lens runs this."""

from itertools import islice
from pathlib import Path
from typing import Any

from gpa_lsp.editor.measurements import describe_measurement
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import find_mangled, read_text
from gpa_lsp.editor.protocol.session import Session

_MOST_OFFERED = 10


async def choose_measurement(session: Session, arguments: Arguments) -> str | None:
    """Show the measurement in the profile that is named behind the mangled name, or ask which.

    Returns:
        The path of the profile that is shown now; None where there is no such kernel or measurement, or nothing was chosen.
    """
    mangled = find_mangled(session, arguments)
    found = session.snapshot.list_measurements(mangled or "")
    if mangled is None or not found:
        session.client.inform("no loaded profile has this kernel any more")
        return None
    wanted = read_text(arguments, 1) or await _ask(session, found)
    if wanted is None or Path(wanted) not in found:
        return None
    session.loader.choose_measurement(mangled, Path(wanted))
    return wanted


async def _ask(session: Session, found: dict[Path, Any]) -> str | None:
    """The newest ones, in a question of the editor's; of those that read the same, the first."""
    titles: dict[str, str] = {}
    for path, one in islice(found.items(), _MOST_OFFERED):
        titles.setdefault(describe_measurement(*one), str(path))
    answer = await session.client.choose("Which measurement of this kernel is to be shown?", list(titles))
    return titles.get(answer or "")


COMMAND = Command(name="gpaLsp.chooseMeasurement", run=choose_measurement)
