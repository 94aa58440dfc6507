"""``gpaLsp.answerMeasuring``: whether the command that measures may run, while that is asked."""

from gpa_lsp.editor.permission import ANSWERS
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session


def answer_measuring(session: Session, arguments: Arguments) -> str:
    """Take the answer in the arguments, ``once``, ``always`` or ``never``, or put the question again."""
    return session.question.take(ANSWERS.get(read_text(arguments) or "")).value


COMMAND = Command(name="gpaLsp.answerMeasuring", run=answer_measuring)
