"""Runs of the user's commands, measuring among them: after a pause or at once, one at a time, and only what the user has confirmed."""

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import ClassVar

from lsprotocol import types
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.permission import Display, Permission, find_workspace, is_below
from gpa_lsp.editor.progress import ProgressDisplay, WorkProgress
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.status import MEASURING, Status
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.profile.collect.allowance import Allowance
from gpa_lsp.profile.collect.command_run import MeasurementRun
from gpa_lsp.profile.collect.explain import ask_to_run, describe_ending, describe_result, list_log_lines, show_command
from gpa_lsp.profile.collect.measured_reports import choose_output, keep_report
from gpa_lsp.profile.collect.model import Measurement, Phase, RunResult
from gpa_lsp.profile.collect.variables import (
    Command,
    CommandError,
    Values,
    expand_command,
    list_environment,
    uses_variable,
)

logger = logging.getLogger(__name__)

LEAVE_LIMIT_S = 0.5  # So long is waited for processes that were ended, when the client leaves


class Request(Struct, frozen=True, kw_only=True):
    """Request for a run, by the user or a save."""

    file: Path | None = None  # the source it is about; None for none
    kernel: str | None = None  # the kernel, by the name its source has
    command: Command | None = None  # what to run; None for what the settings say
    is_explicit: bool = True  # the user asks, and no save
    number: int = 0


class UserRuns(ABC):
    """One kind of runs; a newer request ends what goes on.

    Args:
        display: asks and is told.
        allowance: what the user has confirmed before; None for the user's own file.
    """

    title: ClassVar[str]  # of the progress bar
    word_question: ClassVar[Callable[[Path, Command | None, Command], str | None]]

    def __init__(self, display: Display, allowance: Allowance | None = None) -> None:
        self._display = display
        self._permission = Permission(display, allowance, type(self).word_question)
        self._settings = Settings()
        self._roots: tuple[Path, ...] = ()
        self._is_trusted = False
        self._number = 0
        self._wanted: Request | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._run: MeasurementRun | None = None
        self._progress: WorkProgress | None = None
        self._is_asking = self._has_left = False

    # The definition

    @abstractmethod
    def choose_commands(self, settings: Settings, request: Request) -> tuple[Command | None, Command] | None:
        """The command before and the command, as they are confirmed; None where the settings want none (any more)."""

    @abstractmethod
    async def serve(self, request: Request, settings: Settings, workspace: Path) -> None:
        """Run what was confirmed, see :meth:`carry_out`, and tell what came of it.

        Raises:
            CommandError: variables cannot be filled in.
            OSError: there is no place for what is written.
        """

    # What its users call

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; where they are not trusted (any more) nothing runs (on)."""
        self._settings, self._roots, self._is_trusted = settings, tuple(roots), is_trusted
        if not is_trusted:
            self.cancel()

    @property
    def is_running(self) -> bool:
        """A command runs, or waits for an answer."""
        return self._work is not None and not self._work.done()

    def contains(self, file: Path) -> bool:
        """Whether a file lies in one of the workspace folders."""
        return any(is_below(file, root) for root in self._roots)

    def request(self, request: Request, *, delay_s: float = 0.0) -> bool:
        """Run something now or after a pause, in place of what goes on; False where nothing may run."""
        if not self._is_trusted and request.is_explicit:
            self._display.warn("nothing is run in a workspace that is not trusted")
        if not self._is_trusted or self._has_left:
            return False
        self._number += 1
        self._wanted = replace(request, number=self._number)
        self._stop()
        if request.is_explicit:
            self.stop_asking()  # an unanswered question must not block the next one
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._begin)
        return True

    def cancel(self) -> None:
        """End what goes on or is about to, if anything. Returns at once; its processes are gone within a tenth of a second."""
        self._number += 1
        self._wanted = None
        self._stop()
        self.stop_asking()

    async def leave(self) -> None:
        """End everything, and wait until it has ended, but never long."""
        self._has_left = True
        self.cancel()
        if self._work is not None and not self._work.done():
            if self._run is None:
                self._work.cancel()  # it waits for the user
            await asyncio.wait({self._work}, timeout=LEAVE_LIMIT_S)

    def stop_asking(self) -> None:
        """Withdraw an unanswered question."""
        if self._is_asking and self._work is not None:
            self._work.cancel()
            self._work = None

    # When

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._run is not None:
            self._run.cancel()
        if self._progress is not None:
            self._progress.end("cancelled")

    def _begin(self) -> None:
        self._timer = None
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._work_off())

    async def _work_off(self) -> None:
        """One request after the other; while the pause after a save lasts there is none."""
        while self._timer is None and (request := self._wanted) is not None:
            self._wanted = None
            try:
                await self._try(request)
            except (CommandError, OSError) as error:
                self._display.warn(f"the command cannot be run: {error}")
            except Exception as error:
                logger.exception("%s failed", self.title)
                self._display.warn(f"the run failed: {error}")

    def is_current(self, request: Request) -> bool:
        """Whether no newer run was asked for and the session is open."""
        return request.number == self._number and not self._has_left

    # What

    async def _try(self, request: Request) -> None:
        settings, workspace = self._settings, find_workspace(self._roots, request.file)
        commands = self.choose_commands(settings, request)
        if commands is None:
            return  # the settings have changed meanwhile
        if workspace is None:
            self._display.warn("nothing is run without a workspace folder")
            return
        self._is_asking = True
        try:
            is_permitted = await self._permission.is_given(workspace, *commands, is_explicit=request.is_explicit)
        finally:
            self._is_asking = False
        if is_permitted and self.is_current(request):
            await self.serve(request, settings, workspace)

    async def carry_out(self, measurement: Measurement, words: str, shown: Command | None = None) -> RunResult:
        """Run commands with a bar and a log.

        Args:
            words: what is being done at first.
            shown: what the log says is run; None for the commands themselves.
        """
        self._permission.use()
        progress = self._progress = WorkProgress(lambda: self._display.start_progress(self.title, self.cancel), words)

        def take_lines(lines: Sequence[str]) -> None:
            self._display.log("\n".join(lines))
            progress.take_lines(lines)

        def tell_phase(phase: Phase) -> None:
            command = measurement.build if phase is Phase.BUILD else measurement.profile
            self._display.log(f"> {show_command(shown or command or ())}")
            if shown is None:
                progress.begin(phase)

        run = self._run = MeasurementRun(measurement, take_lines, tell_phase)
        text = "failed"
        try:
            result = await run.run()
            text = describe_ending(result.command) if shown else describe_result(result)
            return result
        finally:
            self._run = self._progress = None
            progress.end(text)


class Measuring(UserRuns):
    """Measures when a source is saved, and when the user asks for it.

    Args:
        display: asks and is told.
        is_relevant: whether saving a file is a reason to measure.
        finished: told about every measurement that is over.
        allowance: what the user has confirmed before; None for the user's own file.
    """

    title = "Measuring"
    word_question = ask_to_run

    def __init__(
        self,
        display: Display,
        *,
        is_relevant: Callable[[Path], bool],
        finished: Callable[[RunResult], None],
        allowance: Allowance | None = None,
    ) -> None:
        super().__init__(display, allowance)
        self._is_relevant, self._finished = is_relevant, finished
        self._told = ""

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, folders and trust; without a command nothing is measured (on)."""
        super().configure(settings, roots, is_trusted=is_trusted)
        if settings.profile_command is None:
            self.cancel()

    def saved(self, file: Path, kernel: str | None = None) -> None:
        """A file was saved: measure after a pause. What is being measured is out of date, and ends now."""
        request = Request(file=file, kernel=kernel, is_explicit=False)
        if self.choose_commands(self._settings, request) is not None and self._is_trusted and self._is_relevant(file):
            self.request(request, delay_s=self._settings.debounce_s)

    def measure_now(self, file: Path | None = None, kernel: str | None = None) -> bool:
        """The user asks for a measurement; whether there is a command that may be run, once they have confirmed it."""
        if self._is_trusted and self._settings.profile_command is None:
            self._display.inform(
                "set gpaLsp.profile.command to the command that measures, for example "
                'gpa-lsp profile --kernel "${kernel}" -o "${output}" -- ./app'
            )
            return False
        return self.request(Request(file=file, kernel=kernel))

    def choose_commands(self, settings: Settings, request: Request) -> tuple[Command | None, Command] | None:
        """Return the commands of the settings; after a save only where measuring on save is set."""
        if settings.profile_command is None or not (settings.profiles_on_save or request.is_explicit):
            return None
        return settings.build_command, settings.profile_command

    async def serve(self, request: Request, settings: Settings, workspace: Path) -> None:
        """Measure, and put the report where it is looked for."""
        measurement = await call_in_thread(lambda: _prepare(settings, workspace, request))
        if not self.is_current(request):
            return
        result = await self.carry_out(measurement, "starting")
        if result.report is not None:
            report = result.report
            result = replace(result, report=await call_in_thread(lambda: keep_report(report, workspace)))
        if not self._has_left:
            self._tell(result, request)

    def _tell(self, result: RunResult, request: Request) -> None:
        self._display.log("\n".join(list_log_lines(result)))
        text = describe_result(result)
        is_news = request.is_explicit or text != self._told
        if not result.is_cancelled:
            self._told = text
            if not result.is_success and is_news:
                self._display.warn(text)  # once, not at each save
        self._finished(result)


def _prepare(settings: Settings, workspace: Path, request: Request) -> Measurement:
    """Fill in the variables.

    Raises:
        CommandError: that cannot be done.
        OSError: there is no place for the report.
    """
    assert settings.profile_command is not None
    output = choose_output(workspace)
    values = Values(workspace=workspace, file=request.file, kernel=request.kernel, output=output)
    environment = {**os.environ, **list_environment(values)}
    return Measurement(
        folder=workspace,
        build=None if settings.build_command is None else expand_command(settings.build_command, values, environment),
        profile=expand_command(settings.profile_command, values, environment),
        timeout_s=settings.profile_timeout_s,
        environment=environment,
        output=output,
        needs_output=uses_variable(settings.profile_command, "output"),
    )


OUTPUT_METHOD = "gpaLsp/output"


class Outcome(Enum):
    """Result of answering a question, or of asking it again; clients receive the values."""

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
