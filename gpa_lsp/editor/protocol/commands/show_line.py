"""``gpaLsp.showLine``: all that is known of a line, as a page: the tables that its hover leaves out."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.plain_json import read_place
from gpa_lsp.editor.protocol.safe_markdown import defuse


def show_line(session: SessionActions, arguments: Sequence[Any]) -> str | None:
    """Show the line in the arguments.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None where nothing is known.
    """
    from gpa_lsp.editor.source.hover import describe_line_page

    place = read_place(arguments)
    view = None if place is None else session.view(place[0])
    page = None if view is None or place is None else describe_line_page(view, place[1])
    if page is None or place is None:
        session.show_message("nothing is known of this line")
        return None
    page = defuse(f"# Line {place[1]}\n\n{page}")
    session.show_document(f"line {place[1]}", page)
    return page


COMMAND = Command(name="gpaLsp.showLine", run=show_line)
