"""Commands of the measurements of a kernel: which one is shown, which one is the baseline, what changed since."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gpa_lsp.document.blocks import Block, Paragraph, Part
from gpa_lsp.document.layout import Style
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.editor.history import build_past
from gpa_lsp.editor.kernel_page import describe_measurement
from gpa_lsp.editor.protocol.commands import Arguments, JsonObject
from gpa_lsp.editor.protocol.plain_json import choose_kernels, find_mangled, read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.snapshot import VisibleKernel

_MOST_OFFERED = 10


def list_kernel_measurements(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The measurements of the kernel that a mangled name or a place (``uri, line``) names, newest first; none where there is no such kernel."""
    mangled = find_mangled(session, arguments)
    shown = {one.profile.path for one in session.snapshot.visible if one.kernel.report.mangled_name == mangled}
    return [
        {
            "mangled": mangled,
            "profile": str(path),
            "text": describe_measurement(profile, kernel),
            "isShown": path in shown,
        }
        for path, (profile, kernel) in session.snapshot.list_measurements(mangled or "").items()
    ]


async def choose_measurement(session: Session, arguments: Arguments) -> str | None:
    """Show the measurement in the profile that is named behind the mangled name, or ask which, until there is a newer one.

    Returns:
        The path of the profile that is shown now; None where there is no such kernel or measurement, or nothing was chosen.
    """
    mangled = find_mangled(session, arguments)
    found = session.snapshot.list_measurements(mangled or "")
    if mangled is None or not found:
        session.client.inform("no loaded profile has this kernel any more")
        return None
    wanted = read_text(arguments, 1) or await _ask_which(session, found)
    if wanted is None or Path(wanted) not in found:
        return None
    session.loader.choose_measurement(mangled, Path(wanted))
    return wanted


async def _ask_which(session: Session, found: dict[Path, Any]) -> str | None:
    """The newest ones, in a question of the editor's; of those that read the same, the first."""
    titles: dict[str, str] = {}
    for path, one in islice(found.items(), _MOST_OFFERED):
        titles.setdefault(describe_measurement(*one), str(path))
    answer = await session.client.choose("Which measurement of this kernel is to be shown?", list(titles))
    return titles.get(answer or "")


async def pin_baseline(session: Session, arguments: Arguments) -> int:
    """Compare later measurements with the shown ones of a kernel or of all, or with that of a kernel in one profile."""
    mangled, profile = read_text(arguments), read_text(arguments, 1)
    kernels = [shown.kernel for shown in choose_kernels(session.snapshot, arguments)]
    if mangled is not None and profile is not None:
        found = session.snapshot.list_measurements(mangled).get(Path(profile))
        kernels = [] if found is None else [found[1]]
    return await session.pin(kernels, is_pinned=True)


async def unpin_baseline(session: Session, arguments: Arguments) -> int:
    """Take the baseline of a kernel, or of all, away; the measurements stay."""
    return await session.pin([shown.kernel for shown in choose_kernels(session.snapshot, arguments)], is_pinned=False)


def show_history(session: Session, arguments: Arguments) -> str:
    """Show what changed since earlier measurements of a kernel (its mangled name), or of all."""
    return session.client.show_document("history", describe_histories(choose_kernels(session.snapshot, arguments)))


def describe_histories(kernels: Sequence[VisibleKernel]) -> str:
    """The page."""
    nothing = [Paragraph(text="Nothing earlier is remembered of this kernel.")]
    blocks: list[Block] = [
        Part(title=shown.name, style=Style.TITLE, blocks=build_past(shown.kernel.history) or nothing)
        for shown in kernels
    ]
    blocks += [] if kernels else [Paragraph(text="No loaded profile has such a kernel.")]
    blocks.append(Paragraph(text="`gpa-lsp history` lists every measurement that is remembered."))
    return "\n".join(write_markdown([Part(title="What changed", blocks=blocks)], level=1)) + "\n"


COMMANDS = {
    "gpaLsp.listMeasurements": list_kernel_measurements,
    "gpaLsp.chooseMeasurement": choose_measurement,
    "gpaLsp.pinBaseline": pin_baseline,
    "gpaLsp.unpinBaseline": unpin_baseline,
    "gpaLsp.showHistory": show_history,
}
