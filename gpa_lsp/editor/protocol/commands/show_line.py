"""``gpaLsp.showLine``: all that is known of a line, as a page: the tables that its hover leaves out."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import need_place
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.sass.library import is_sass_uri


def show_line(session: Session, arguments: Arguments) -> str | None:
    """Show the line in the arguments.

    Returns:
        The page's Markdown, for clients that would rather show it themselves; None where nothing is known.
    """
    place = need_place(arguments)
    page = _describe(session, *place)
    if page is None:
        session.client.inform("nothing is known of this line")
        return None
    return session.client.show_document(f"line {place[1]}", f"# Line {place[1]}\n\n{page}")


def _describe(session: Session, uri: str, line: int) -> str | None:
    from gpa_lsp.editor.sass.hover import describe_instruction
    from gpa_lsp.editor.source.hover import describe_line_page

    if is_sass_uri(uri):
        sass = session.sass.view(uri)
        return None if sass is None else describe_instruction(sass, line)
    view = session.view(uri)
    return None if view is None else describe_line_page(view, line)


COMMAND = Command(name="gpaLsp.showLine", run=show_line)
