"""``gpaLsp.showTimes``: how long the described launches of a source take on the GPU of this computer. The lens of a time runs this."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.document.markdown_text import quote_code
from gpa_lsp.editor.protocol.commands import Command
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.timed.view import describe_times


def show_times(session: Session, arguments: Sequence[Any]) -> str | None:
    """Show the times of an open source: the argument is its URI.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None when nothing of it was timed.
    """
    uri = next(iter(arguments), None)
    view = session.view(uri) if isinstance(uri, str) else None
    anchors = () if view is None else view.timed
    names = {anchor.line: anchor.change.time.name for anchor in anchors}
    parts = [f"## {quote_code(name)}\n\n{describe_times(anchors, line)}" for line, name in names.items()]
    if not parts:
        session.client.inform("no launch of this source was timed")
        return None
    page = defuse("\n\n".join(parts))
    session.client.show_document("Times of described launches", page)
    return page


COMMAND = Command(name="gpaLsp.showTimes", run=show_times)
