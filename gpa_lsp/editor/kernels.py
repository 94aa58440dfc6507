"""Kernels by a part of their name, and where a kernel as a whole is: its definition where the source is on this machine, else its SASS document."""

from lsprotocol.types import Location, SymbolKind, WorkspaceSymbol

from gpa_lsp.editor.lines.positions import span_line
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import VisibleKernel

_MOST_SYMBOLS = 200


def find_kernels(session: SessionView, query: str) -> list[WorkspaceSymbol]:
    """The kernels whose name holds the query's characters in their order, those that hold it as it is first, then longest first."""
    query = query.strip().casefold()
    found = [shown for shown in session.snapshot.visible if is_subsequence(query, shown.name.casefold())]
    found.sort(key=lambda shown: query not in shown.name.casefold())
    return [
        WorkspaceSymbol(
            name=_name(shown),
            location=find_kernel_place(session, shown),
            kind=SymbolKind.Function,
            container_name=shown.profile.path.name,
        )
        for shown in found[:_MOST_SYMBOLS]
    ]


def _name(shown: VisibleKernel) -> str:
    from gpa_lsp.document.sampling_words import describe_time  # it needs numpy

    report = shown.kernel.report
    return shown.name if report.duration_ns is None else f"{shown.name} · {describe_time(report, report.duration_ns)}"


def is_subsequence(part: str, whole: str) -> bool:
    """Whether all characters of one text stand in another one, in their order.

    >>> is_subsequence("sxp", "saxpy"), is_subsequence("yx", "saxpy")
    (True, False)
    """
    rest = iter(whole)
    return all(character in rest for character in part)


def find_kernel_place(session: SessionView, shown: VisibleKernel) -> Location:
    """The place to show for a kernel."""
    source = find_source_place(session, shown)
    return source or Location(uri=session.sass.find_uri(shown), range=span_line(1))


def find_kernel_at(session: SessionView, uri: str, line: int) -> VisibleKernel | None:
    """The kernel that a line of a document is in: of a source the last one that begins at or above it, else the longest that has samples in the file.

    Args:
        line: 1-based.
    """
    for shown in session.snapshot.visible:
        if session.sass.find_uri(shown) == uri:
            return shown
    view = session.view(uri)
    if view is None:
        return None
    above = [anchor for anchor in view.anchors if anchor.line <= line]
    if above:
        start = max(anchor.line for anchor in above)
        return next(anchor.shown for anchor in above if anchor.line == start)
    return next(iter(session.snapshot.by_file.get(view.local_path, ())), None)


def find_source_place(session: SessionView, shown: VisibleKernel) -> Location | None:
    """The line of a kernel's definition in an open document, else the topmost line of its body; None when neither is on this machine."""
    if shown.kernel.body is None:
        return None
    file, lines = shown.kernel.body
    topmost = next((found for line in lines if (found := session.places.locate(shown, (file, line)))), None)
    view = None if topmost is None else session.view(topmost.uri)
    if view is None:
        return topmost
    line = next((anchor.line for anchor in view.anchors if anchor.shown.kernel is shown.kernel), None)
    return topmost if line is None else Location(uri=view.uri, range=view.positions.find_text(line))
