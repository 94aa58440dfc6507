"""Where a kernel as a whole is: its definition where the source is on this machine, else its SASS document."""

from lsprotocol import types

from gpa_lsp.lsp.lines.positions import span_line
from gpa_lsp.lsp.session_view import SessionView
from gpa_lsp.lsp.snapshot import VisibleKernel


def find_kernel_place(session: SessionView, shown: VisibleKernel) -> types.Location:
    """The place to show for a kernel."""
    source = find_source_place(session, shown)
    return source or types.Location(uri=session.sass.find_uri(shown), range=span_line(1))


def find_source_place(session: SessionView, shown: VisibleKernel) -> types.Location | None:
    """The line of a kernel's definition in an open document, else the topmost line of its body; None when neither is on this machine."""
    if shown.kernel.body is None:
        return None
    file, lines = shown.kernel.body
    topmost = next((found for line in lines if (found := session.places.locate(shown, (file, line)))), None)
    view = None if topmost is None else session.view(topmost.uri)
    if view is None:
        return topmost
    line = next((anchor.line for anchor in view.anchors if anchor.shown.kernel is shown.kernel), None)
    return topmost if line is None else types.Location(uri=view.uri, range=view.positions.find_text(line))
