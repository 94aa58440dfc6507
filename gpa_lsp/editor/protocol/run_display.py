"""What runs of the user's commands need of the client: a bar, a question, a log."""

import asyncio
from collections.abc import Callable
from enum import Enum

from lsprotocol import types

from gpa_lsp.editor.progress import ProgressDisplay
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.status import MEASURING, Status

OUTPUT_METHOD = "gpaLsp/output"


class Outcome(Enum):
    """What came of answering, or of asking again; the values are what clients are told."""

    NOTHING = "nothing"  # Nobody is asked anything
    ANSWERED = "answered"
    ASKED = "asked"  # The question was put again
    OPEN = "open"  # It stands open in the client, seen or unseen


class OpenQuestion:
    """One question at a time.

    Args:
        client: is asked.
        status: where it stands until it is answered.
        is_shown: the client shows it in its status line; others are asked once, and no answer is one.
        is_beside: what the client asks stands beside the work: it may be asked of its own accord, and to close it is no answer.
    """

    def __init__(self, client: Client, status: Status, *, is_shown: bool, is_beside: bool) -> None:
        self._client, self._status = client, status
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
                self._client.warn(f"a save waits for your answer (gpaLsp.answerMeasuring): {text}")
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
        text = self._text
        action = await self._client.choose(text, self._actions, types.MessageType.Warning)
        is_final = action is not None or not (self._is_shown and self._is_beside)
        if is_final and self._answer is not None and not self._answer.done():
            self._answer.set_result(action)


class RunDisplay:
    """The client, as one kind of runs sees it.

    Args:
        client: the editor.
        status: its status line.
        question: whether a command may run; of all kinds together, so that there is one at a time.
        sends_output: the client shows what commands print by itself.
        state: of the status line while a command runs.
    """

    def __init__(
        self, client: Client, status: Status, question: OpenQuestion, *, sends_output: bool, state: str = MEASURING
    ) -> None:
        self._client, self._status, self._question = client, status, question
        self._sends_output, self._state = sends_output, state
        self._is_new_run = True
        self.warn, self.inform = client.warn, client.inform
        self.show_times, self.explain = status.show_times, status.explain

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins; ``cancel`` ends it."""
        self._is_new_run = True
        self._status.fail("")
        return self._status.watch(self._state, self._client.start_progress(title, cancel))

    async def confirm(self, text: str, actions: tuple[str, ...], *, is_explicit: bool) -> str | None:
        """Ask the user, however long the answer takes."""
        return await self._question.ask(text, actions, is_wanted=is_explicit, state=self._state)

    def log(self, text: str) -> None:
        """Add lines to the output channel."""
        if self._sends_output:
            self._client.notify(OUTPUT_METHOD, {"text": text + "\n", "clear": self._is_new_run})
            self._is_new_run = False
        else:
            params = types.LogMessageParams(type=types.MessageType.Log, message=text)
            self._client.notify(types.WINDOW_LOG_MESSAGE, params)
