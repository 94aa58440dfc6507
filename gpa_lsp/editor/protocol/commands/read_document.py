"""``gpaLsp.readDocument``: the text of a SASS document, for clients that cannot ask for ``workspace/textDocumentContent``."""

from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.sass.library import LANGUAGE_ID, is_sass_uri


def read_document(session: Session, arguments: Arguments) -> dict[str, str] | None:
    """The document's text and language.

    Returns:
        None when the argument is no SASS document of a loaded profile.
    """
    uri = read_text(arguments)
    if uri is None or not is_sass_uri(uri):
        return None
    document = session.sass.make(uri)
    return None if document is None else {"text": document.text, "languageId": LANGUAGE_ID}


COMMAND = Command(name="gpaLsp.readDocument", run=read_document)
