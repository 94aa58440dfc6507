"""``gpaLsp.chooseColumns``: what stands beside the instructions of SASS documents from now on."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.kept_choices import check_names
from gpa_lsp.editor.protocol.session import Session


def choose_columns(session: Session, arguments: Arguments) -> list[str]:
    """Show the columns with the names in the arguments, in that order; the usual ones without names."""
    from gpa_lsp.editor.sass.columns import USUAL_COLUMNS

    names = arguments[0] if arguments and isinstance(arguments[0], list) else None
    session.choose_columns(None if names is None else check_names(names))
    return list(USUAL_COLUMNS if session.sass.columns is None else session.sass.columns)


COMMAND = Command(name="gpaLsp.chooseColumns", run=choose_columns)
