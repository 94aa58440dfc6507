"""``gpaLsp.pinBaseline``: later measurements are compared with the shown ones, or with that of a kernel in one profile."""

from pathlib import Path

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import choose_kernels, read_text
from gpa_lsp.editor.protocol.session import Session


async def pin_baseline(session: Session, arguments: Arguments) -> int:
    """Pin a kernel, or all."""
    mangled, profile = read_text(arguments), read_text(arguments, 1)
    kernels = [shown.kernel for shown in choose_kernels(session.snapshot, arguments)]
    if mangled is not None and profile is not None:
        found = session.snapshot.list_measurements(mangled).get(Path(profile))
        kernels = [] if found is None else [found[1]]
    return await session.pin(kernels, is_pinned=True)


COMMAND = Command(name="gpaLsp.pinBaseline", run=pin_baseline)
