"""Permission to run the user's commands."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from gpa_lsp.editor.progress import ProgressDisplay
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.profile.collect.allowance import Allowance, make_digest
from gpa_lsp.profile.collect.explain import ask_to_run, name_allow_command
from gpa_lsp.profile.collect.variables import Command

RUN = "Run once"  # The save or the wish that waits; a later one asks again

ALWAYS = "Always in this workspace"  # Also next time

NEVER = "Never"  # Not on save, for as long as the server lives; an explicit measurement asks again

ANSWERS = {"once": RUN, "always": ALWAYS, "never": NEVER}  # The answers by the words clients send


class Display(Protocol):
    """Prompt and messages for commands that may run. All of it is called on the event loop."""

    async def confirm(self, text: str, actions: tuple[str, ...], *, is_explicit: bool) -> str | None:
        """Ask the user, however long the answer takes; the action chosen, None when there was no answer or the client cannot ask."""
        ...

    def warn(self, text: str) -> None:
        """Show a warning."""
        ...

    def inform(self, text: str) -> None:
        """Show a message."""
        ...

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins; ``cancel`` ends it."""
        ...

    def log(self, text: str) -> None:
        """Add lines to the output channel."""
        ...

    def show_times(self, text: str) -> None:
        """Show the latest times in the status line."""
        ...

    def explain(self, detail: str) -> None:
        """Show in the details of the status line what is not done here, and why."""
        ...


class Permission:
    """Commands that the user has allowed or refused.

    Args:
        asker: asks the user.
        allowance: what was confirmed before; None for the user's own file.
        word_question: (workspace, command before, command) → the question; None where it is too long to be read.
    """

    def __init__(
        self,
        asker: Display,
        allowance: Allowance | None,
        word_question: Callable[[Path, Command | None, Command], str | None] = ask_to_run,
    ) -> None:
        self._asker = asker
        self._word_question = word_question
        self._allowance = allowance
        self._allowed: set[str] = set()
        self._allowed_once: set[str] = set()
        self._refused: set[str] = set()

    async def is_given(self, workspace: Path, build: Command | None, profile: Command, *, is_explicit: bool) -> bool:
        """Whether commands may run in a workspace; asks when that is unknown.

        Args:
            build: the command before; None when there is none.
        """
        digest = make_digest(os.path.realpath(workspace), build, profile)
        if digest in self._allowed | self._allowed_once or await call_in_thread(
            lambda: self._is_remembered(workspace, build, profile)
        ):
            return True
        if digest in self._refused and not is_explicit:
            return False
        question = self._word_question(workspace, build, profile)
        answer = (
            None
            if question is None
            else await self._asker.confirm(question, (RUN, ALWAYS, NEVER), is_explicit=is_explicit)
        )
        if answer not in (RUN, ALWAYS):
            self._refused.add(digest)
            if answer is None:
                confirming = name_allow_command(workspace, build, profile)
                self._asker.inform(f"nothing was run; the command is confirmed with: {confirming}")
            return False
        self._refused.discard(digest)
        if answer == ALWAYS:
            self._allowed.add(digest)
            await self._remember(workspace, build, profile)
        else:
            self._allowed_once.add(digest)  # a newer save may take the place of the one that asked
        return True

    def use(self) -> None:
        """A command runs now: what was allowed once is used up."""
        self._allowed_once.clear()

    def _find_allowance(self) -> Allowance:
        if self._allowance is None:
            self._allowance = Allowance()
        return self._allowance

    def _is_remembered(self, workspace: Path, build: Command | None, profile: Command) -> bool:
        return self._find_allowance().is_allowed(workspace, build, profile)

    async def _remember(self, workspace: Path, build: Command | None, profile: Command) -> None:
        try:
            await call_in_thread(lambda: self._find_allowance().allow(workspace, build, profile))
        except InputError as error:
            self._asker.warn(f"the confirmation holds only until the editor is closed: {error}")


def find_workspace(roots: Sequence[Path], file: Path | None) -> Path | None:
    """The innermost workspace folder a file is in, else the first; None where there is none."""
    around = [root for root in roots if file is not None and is_below(file, root)]
    return max(around, key=lambda root: len(root.parts), default=next(iter(roots), None))


def is_below(file: Path, folder: Path) -> bool:
    """Links followed: editors name files as they were opened."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))
