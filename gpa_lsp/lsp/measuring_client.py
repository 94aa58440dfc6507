"""What measuring and recording need of the client: a bar, a question, a log."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lsprotocol import types

from gpa_lsp.collect.measured_reports import find_measured_folder
from gpa_lsp.collect.model import RunResult
from gpa_lsp.collect.result_words import describe_result
from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.settings import Settings
from gpa_lsp.lsp.client import Client
from gpa_lsp.lsp.loader import ProgressDisplay
from gpa_lsp.lsp.open_question import OpenQuestion
from gpa_lsp.lsp.status import MEASURING, Status

_SUFFIXES = (".ncu-rep", ".ncu-repz")

OUTPUT_METHOD = "gpaLsp/output"


class MeasuringClient:
    """The client, as measuring sees it.

    Args:
        client: the editor.
        status: its status line.
        abilities: what the client wants to be sent.
        finished: told about every measurement that is over.
        state: of the status line while a command runs.
        question: that of another one, so that there is one question at a time; None for its own.

    Attributes:
        question: whether a command may run.
    """

    def __init__(
        self,
        client: Client,
        status: Status,
        abilities: Abilities,
        *,
        finished: Callable[[RunResult], None] = lambda result: None,
        state: str = MEASURING,
        question: OpenQuestion | None = None,
    ) -> None:
        self._client = client
        self._status = status
        self._sends_output = abilities.output
        self._finished = finished
        self._state = state
        self.question = question or OpenQuestion(self, status, is_shown=abilities.status, is_beside=abilities.questions)
        self._is_new_run = True

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins; ``cancel`` ends it."""
        self._is_new_run = True
        self._status.fail("")
        return self._status.watch(self._state, self._client.start_progress(title, cancel))

    async def confirm(self, text: str, actions: tuple[str, ...], *, is_explicit: bool) -> str | None:
        """Ask the user, however long the answer takes."""
        return await self.question.ask(text, actions, is_wanted=is_explicit, state=self._state)

    async def ask(self, text: str, actions: Sequence[str]) -> str | None:
        """Put a question."""
        return await self._client.choose(text, actions, types.MessageType.Warning)

    def mention(self, text: str) -> None:
        """Say that a save waits for an answer."""
        self._client.warn(f"a save waits for your answer (gpaLsp.answerMeasuring): {text}")

    def log(self, text: str) -> None:
        """Add lines to the output channel."""
        if self._sends_output:
            self._client.notify(OUTPUT_METHOD, {"text": text + "\n", "clear": self._is_new_run})
            self._is_new_run = False
        else:
            params = types.LogMessageParams(type=types.MessageType.Log, message=text)
            self._client.notify(types.WINDOW_LOG_MESSAGE, params)

    def warn(self, text: str) -> None:
        """Something the user must know."""
        self._client.warn(text)

    def inform(self, text: str) -> None:
        """Something the user asked for."""
        self._client.inform(text)

    def show_times(self, text: str) -> None:
        """What launches take, for the status line."""
        self._status.show_times(text)

    def explain(self, detail: str) -> None:
        """What is not done here, and why, for whoever looks closer at the status line."""
        self._status.explain(detail)

    def finished(self, result: RunResult) -> None:
        """A measurement is over."""
        failed = not (result.is_success or result.is_cancelled)
        self._status.fail(describe_result(result) if failed else "")
        self._finished(result)


def watch_measured(settings: Settings, roots: Sequence[Path]) -> Settings:
    """Settings with which the reports measured from the editor are found too."""
    globs = tuple(f"{find_measured_folder(root).as_posix()}/*{suffix}" for root in roots for suffix in _SUFFIXES)
    return replace(settings, profile_globs=(*settings.profile_globs, *globs))
