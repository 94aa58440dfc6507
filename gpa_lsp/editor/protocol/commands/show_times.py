"""``gpaLsp.showTimes``: how long the described launches of a source take on the GPU of this computer. The lens of a time runs this."""

from gpa_lsp.document.blocks import Part
from gpa_lsp.document.layout import Style
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.timed.view import build_times


def show_times(session: Session, arguments: Arguments) -> str | None:
    """Show the times of an open source: the argument is its URI.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None when nothing of it was timed.
    """
    uri = next(iter(arguments), None)
    view = session.view(uri) if isinstance(uri, str) else None
    anchors = () if view is None else view.timed
    names = {anchor.line: anchor.change.time.name for anchor in anchors}
    parts = [Part(title=name, style=Style.TITLE, blocks=[*build_times(anchors, line)]) for line, name in names.items()]
    if not parts:
        session.client.inform("no launch of this source was timed")
        return None
    return session.client.show_document("Times of described launches", "\n".join(write_markdown(parts)))


COMMAND = Command(name="gpaLsp.showTimes", run=show_times)
