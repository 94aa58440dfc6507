"""A question that waits for its answer as long as it takes: in the status line, where a person finds it again after its window has gone."""

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from gpa_lsp.lsp.status import MEASURING, Status


class Outcome(Enum):
    """What came of answering, or of asking again; the values are what clients are told."""

    NOTHING = "nothing"
    """Nobody is asked anything."""
    ANSWERED = "answered"
    ASKED = "asked"
    """The question was put again."""
    OPEN = "open"
    """It stands open in the client, seen or unseen."""


class Dialog(Protocol):
    """The client, as far as it is asked."""

    async def ask(self, text: str, actions: Sequence[str]) -> str | None:
        """The action chosen; None when there was no answer, or nobody can be asked."""
        ...

    def mention(self, text: str) -> None:
        """Say that a question waits, without asking it."""
        ...


class OpenQuestion:
    """One question at a time.

    Args:
        dialog: asks it.
        status: where it stands until it is answered.
        is_shown: the client shows it in its status line; others are asked once, and no answer is one.
        is_beside: what the client asks stands beside the work: it may be asked of its own accord, and to close it is no answer.
    """

    def __init__(self, dialog: Dialog, status: Status, *, is_shown: bool, is_beside: bool) -> None:
        self._dialog, self._status = dialog, status
        self._is_shown, self._is_beside = is_shown, is_beside
        self._text = ""
        self._actions: tuple[str, ...] = ()
        self._answer: asyncio.Future[str | None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, text: str, actions: tuple[str, ...], *, is_wanted: bool, state: str = MEASURING) -> str | None:
        """Ask until there is an answer; after the question that is open now, if any.

        Args:
            text: the question.
            actions: the answers.
            is_wanted: the person waits for the question: where asking is in the way of work, too, it is put.
            state: of the status line once the answer is yes.
        """
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
