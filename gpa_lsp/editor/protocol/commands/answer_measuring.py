"""``gpaLsp.answerMeasuring``: whether the command that measures may run, while that is asked."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.plain_json import read_text


def answer_measuring(session: SessionActions, arguments: Sequence[Any]) -> str:
    """Take the answer in the arguments, ``once``, ``always`` or ``never``, or put the question again."""
    return session.answer_measuring(read_text(arguments))


COMMAND = Command(name="gpaLsp.answerMeasuring", run=answer_measuring)
