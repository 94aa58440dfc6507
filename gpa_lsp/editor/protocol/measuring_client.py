"""What measuring and recording need of the client: a bar, a question, a log."""

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

from lsprotocol import types
from msgspec.structs import replace

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.progress import ProgressDisplay
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.status import MEASURING, Status
from gpa_lsp.editor.settings import Settings
from gpa_lsp.profile.collect.explain import describe_result
from gpa_lsp.profile.collect.measured_reports import find_measured_folder
from gpa_lsp.profile.collect.model import RunResult


class Outcome(Enum):
    """What came of answering, or of asking again; the values are what clients are told."""

    NOTHING = "nothing"  # Nobody is asked anything
    ANSWERED = "answered"
    ASKED = "asked"  # The question was put again
    OPEN = "open"  # It stands open in the client, seen or unseen


class OpenQuestion:
    """One question at a time.

    Args:
        dialog: asks it.
        status: where it stands until it is answered.
        is_shown: the client shows it in its status line; others are asked once, and no answer is one.
        is_beside: what the client asks stands beside the work: it may be asked of its own accord, and to close it is no answer.
    """

    def __init__(self, dialog: "MeasuringClient", status: Status, *, is_shown: bool, is_beside: bool) -> None:
        self._dialog, self._status = dialog, status
        self._is_shown, self._is_beside = is_shown, is_beside
        self._text = ""
        self._actions: tuple[str, ...] = ()
        self._answer: asyncio.Future[str | None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, text: str, actions: tuple[str, ...], *, is_wanted: bool, state: str = MEASURING) -> str | None:
        """Ask until there is an answer; after the question that is open now, if any."""
        async with self._turn:
            return await self._ask(text, actions, is_wanted=is_wanted, state=state)

    async def _ask(self, text: str, actions: tuple[str, ...], *, is_wanted: bool, state: str) -> str | None:
        self._text, self._actions = text, actions
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._status.ask(text, state)
        try:
            if is_wanted or self._is_beside or not self._is_shown:
                self._put()
            else:
                self._dialog.mention(text)
            return await answer
        finally:
            if self._answer is answer:
                self._end()

    def _end(self) -> None:
        self._answer = None
        self._status.ask("")
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def take(self, action: str | None) -> Outcome:
        """The person answers, or wants to see the question again."""
        if self._answer is None or self._answer.done():
            return Outcome.NOTHING
        if action in self._actions:
            self._answer.set_result(action)
            return Outcome.ANSWERED
        return Outcome.ASKED if self._put() else Outcome.OPEN

    def _put(self) -> bool:
        """Whether it was not open before."""
        if self._asking is not None and not self._asking.done():
            return False
        self._asking = asyncio.get_running_loop().create_task(self._wait())
        return True

    async def _wait(self) -> None:
        action = await self._dialog.ask(self._text, self._actions)
        is_final = action is not None or not (self._is_shown and self._is_beside)
        if is_final and self._answer is not None and not self._answer.done():
            self._answer.set_result(action)


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
