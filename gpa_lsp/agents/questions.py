"""The question of a call → its answer. What answers is imported with the first one: a client asks for the list of tools at each start."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpa_lsp.agents.tools import read_call
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.foundation.visible_text import make_one_line

if TYPE_CHECKING:
    from gpa_lsp.agents.answers import Answers

_MOST_ERROR_BYTES = 1000


class NoAnswerError(Exception):
    """Why there is no answer, in one line for the agent.

    Args:
        message: of at most so many bytes.
        is_absent: what was asked for is not there; else something failed.
    """

    def __init__(self, message: str, *, is_absent: bool) -> None:
        super().__init__(message)
        self.is_absent = is_absent


class Questions:
    """Asks :class:`~gpa_lsp.agents.answers.Answers`; not to be used by two threads at once.

    Args:
        folder: reports and sources below it are read, nothing else.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answers: Answers | None = None
        # Paths as the agent names them: where its folder lies is nobody's business. What an answer loses by it makes it shorter.
        names = {str(folder), os.path.realpath(folder)} - {os.sep}
        named = rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(names)))})"
        self._starts = re.compile(rf"{named}{re.escape(os.sep)}" if names else "(?!)")
        self._ends = re.compile(rf"{named}(?![\w.-])" if names else "(?!)")

    def ask(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The answer to a call.

        Raises:
            NoAnswerError: the call is wrong, or there is nothing to say.
        """
        try:
            read = read_call(tool, arguments)
            if self._answers is None:
                from gpa_lsp.agents.answers import Answers

                self._answers = Answers(self._folder)
            answer = getattr(self._answers, tool)(**read)
        except GpaError as error:
            told = self._ends.sub("this folder", self._starts.sub("", str(error)))
            raise NoAnswerError(_cut(told), is_absent=isinstance(error, InputError)) from error
        assert isinstance(answer, str)
        return self._starts.sub("", answer)


def _cut(text: str) -> str:
    shown = make_one_line(text).encode("utf-8", "replace")[:_MOST_ERROR_BYTES]
    return shown.decode("utf-8", "ignore")
