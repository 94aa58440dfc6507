"""``gpaLsp.openSass``: show the instructions of a source line, or of a kernel."""

from lsprotocol.types import Location

from gpa_lsp.editor.lines.positions import span_line
from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.plain_json import encode_location, read_place, read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.sass.library import is_sass_uri
from gpa_lsp.editor.snapshot import VisibleKernel


def open_sass(session: Session, arguments: Arguments) -> JsonObject | None:
    """Show the instruction of a place that matters most, or the beginning of a kernel's document.

    Returns:
        Where that is; None when there is nothing to show, which is said.
    """
    place = read_place(arguments)
    location = _find_kernel(session, read_text(arguments)) if place is None else _find_line(session, *place)
    if location is None:
        session.client.inform("no loaded profile has instructions of this " + ("kernel" if place is None else "line"))
        return None
    session.client.show_location(location)
    return encode_location(location)


def _find_line(session: Session, uri: str, line: int) -> Location | None:
    """The instruction of a line; the kernel's document for the line a kernel's lens stands on."""
    from gpa_lsp.editor.sass.links import find_links

    if is_sass_uri(uri):
        return None if session.sass.find_kernel(uri) is None else Location(uri=uri, range=span_line(line))
    links = find_links(session, uri, line)
    if links:
        return links[0].location
    view = session.view(uri)
    anchors = () if view is None else view.anchors
    return next((_begin(session, anchor.shown) for anchor in anchors if anchor.line == line), None)


def _find_kernel(session: Session, mangled: str | None) -> Location | None:
    kernels = (shown for shown in session.snapshot.visible if shown.kernel.report.mangled_name == mangled)
    return next((_begin(session, shown) for shown in kernels), None)


def _begin(session: Session, shown: VisibleKernel) -> Location:
    return Location(uri=session.sass.find_uri(shown), range=span_line(1))


COMMAND = Command(name="gpaLsp.openSass", run=open_sass)
