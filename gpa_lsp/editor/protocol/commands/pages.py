"""Commands of kernels, and pages about what was measured."""

from pathlib import Path

from gpa_lsp.editor.kernel_page import describe_kernel
from gpa_lsp.editor.line_words import find_top_reason
from gpa_lsp.editor.protocol.commands import Arguments, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_location, find_mangled, need_place, read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.protocol.wire import read_path
from gpa_lsp.editor.sass.library import is_sass_uri
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel
from gpa_lsp.editor.source.lenses import describe_time
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.numbers import format_count


def list_kernels(session: Session, arguments: Arguments) -> list[JsonObject]:
    """Every kernel that is shown, longest first, and where it is: for lists to choose from."""
    del arguments
    return [_encode_kernel(session, shown) for shown in session.snapshot.visible]


def _encode_kernel(session: Session, shown: VisibleKernel) -> JsonObject:
    from gpa_lsp.editor.kernels import find_source_place

    location = find_source_place(session, shown)
    return {
        "name": shown.name,
        "mangled": shown.kernel.report.mangled_name,
        "sassUri": session.sass.find_uri(shown),
        "location": None if location is None else encode_location(location),
        "text": describe_time(shown),
    }


def show_kernel(session: Session, arguments: Arguments) -> str | None:
    """Show the kernel whose mangled name is the first argument.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None when there is no such kernel.
    """
    wanted = arguments[0] if arguments else None
    for shown in session.snapshot.visible:
        if shown.kernel.report.mangled_name == wanted:
            return session.client.show_document(shown.name, describe_kernel(shown))
    session.client.inform("no loaded profile has this kernel any more")
    return None


def show_line(session: Session, arguments: Arguments) -> str | None:
    """Show all that is known of the line in the arguments: the tables that its hover leaves out.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None where nothing is known.
    """
    place = need_place(arguments)
    page = _describe_line(session, *place)
    if page is None:
        session.client.inform("nothing is known of this line")
        return None
    return session.client.show_document(f"line {place[1]}", f"# Line {place[1]}\n\n{page}")


def _describe_line(session: Session, uri: str, line: int) -> str | None:
    from gpa_lsp.editor.sass.hover import describe_instruction
    from gpa_lsp.editor.source.hover import describe_line_page

    if is_sass_uri(uri):
        sass = session.sass.view(uri)
        return None if sass is None else describe_instruction(sass, line)
    view = session.view(uri)
    return None if view is None else describe_line_page(view, line)


def show_report(session: Session, arguments: Arguments) -> str:
    """Show a page with every kernel that is shown, longest first."""
    del arguments
    return session.client.show_document("kernels", describe_all(session.snapshot))


def describe_all(snapshot: Snapshot) -> str:
    """The page."""
    if not snapshot.visible:
        return "# No profile\n\nNo profile was found in the workspace, or none of them could be read.\n"
    from gpa_lsp.document.blocks import Part, Table
    from gpa_lsp.document.layout import Align, Column, Style
    from gpa_lsp.document.markdown import write_markdown

    titles = {
        "kernel": Align.LEFT,
        "time": Align.RIGHT,
        "samples": Align.RIGHT,
        "mostly": Align.LEFT,
        "profile": Align.LEFT,
    }
    columns = [Column(title=title, align=align) for title, align in titles.items()]
    rows = [[(cell, Style.PLAIN) for cell in _make_row(shown)] for shown in snapshot.visible]
    return (
        "\n".join(write_markdown([Part(title="Kernels", blocks=[Table(columns=columns, rows=rows)])], level=1)) + "\n"
    )


def _make_row(shown: VisibleKernel) -> tuple[str, str, str, str, str]:
    from gpa_lsp.document.sampling_words import describe_time  # it needs numpy

    report = shown.kernel.report
    name = shown.name
    reason = find_top_reason(report.by_reason) or ""
    return (
        name,
        describe_time(report, report.duration_ns),
        format_count(report.total_samples),
        reason,
        shown.profile.path.name,
    )


async def show_page(session: Session, arguments: Arguments) -> dict[str, str] | None:
    """Write the page of all shown kernels, and show it unless the client does that itself: at the kernel whose mangled name was sent, or at the one
    that a line (``uri, line``) is in.

    Returns:
        ``uri`` of the file and ``place``, the fragment of the kernel (empty for none); None when there is nothing to show, which is said.
    """
    kernels = session.snapshot.visible
    if not kernels:
        session.client.inform("no profile is loaded, so there is nothing to show")
        return None
    wanted = find_mangled(session, arguments)
    numbers = (number for number, shown in enumerate(kernels) if shown.kernel.report.mangled_name == wanted)
    number = next(numbers, None)
    try:
        path = await session.pages.write(kernels)
    except (GpaError, OSError) as error:
        session.client.inform(f"the page cannot be written: {error}")
        return None
    return session.pages.show(path, "" if number is None else f"#k{number}")


async def open_report(session: Session, arguments: Arguments) -> dict[str, str] | None:
    """Write the page of a profile that somebody opened, and show it unless the client does that itself: arguments are the file's URI and, where
    somebody looks at a source, its URI and line, or a kernel's mangled name.

    Returns:
        ``uri`` of the page and ``place``, the fragment of the kernel (empty for none), or ``failure``, a sentence; None for what is no file.
    """
    uri = read_text(arguments)
    profile = None if uri is None else read_path(uri)
    if profile is None:
        return None
    try:
        path, kernels = await session.pages.write_profile(session.loader.make_job(Path(profile)))
    except (GpaError, OSError) as error:
        if not session.abilities.pages:
            session.client.inform(str(error))
        return {"failure": str(error)}
    wanted = find_mangled(session, arguments[1:])
    return session.pages.show(path, f"#k{kernels.index(wanted)}" if wanted in kernels else "")


COMMANDS = {
    "gpaLsp.listKernels": list_kernels,
    "gpaLsp.showKernel": show_kernel,
    "gpaLsp.showLine": show_line,
    "gpaLsp.showReport": show_report,
    "gpaLsp.showPage": show_page,
    "gpaLsp.openReport": open_report,
}
