"""One command under the watchdog: started, listened to, and gone without a trace when it is not wanted any more."""

import asyncio
import errno
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.processes.time_limits import TimeLimits
from gpa_lsp.foundation.processes.watched_command import CommandEnd, Ending, WatchedCommand
from gpa_lsp.profile.collect.model import CommandResult
from gpa_lsp.profile.collect.output_lines import OutputLines

logger = logging.getLogger(__name__)

TakeLines = Callable[[Sequence[str]], None]  # Gets lines as they are printed, several at a time

_LINES_PER_BATCH = 200
_BATCH_S = 0.1
_LAST_LINES = 40
# Between two reads of a command that prints more than anybody reads: it may print 30 MB a second, and the server has time for its client
_FLOOD_PAUSE_S = 0.002

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class CommandRun:
    """A command at work.

    Args:
        command: program and arguments; no shell looks at them.
        folder: where it runs.
        timeout_s: after which it is ended.
        take_lines: gets what it prints.
        environment: what it is run with; None for this process' own.

    Raises:
        OSError: the watchdog cannot be started (no memory, too many processes).
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        timeout_s: float,
        take_lines: TakeLines,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._output = _Output(take_lines)
        self._is_cancelled = False
        self._started_s = time.monotonic()
        self._watched = WatchedCommand(
            command,
            folder=folder,
            environment=os.environ if environment is None else environment,
            limits=TimeLimits.by_clock(timeout_s),
            take=self._take,
        )
        self._supervision = self._loop.create_task(self._supervise())

    @property
    def watchdog_id(self) -> int:
        """Process id of the watchdog."""
        return self._watched.watchdog_id

    def cancel(self) -> None:
        """End the command and all it started. Returns at once; the processes are gone within a tenth of a second."""
        self._is_cancelled = True
        self._watched.cancel()

    async def wait(self) -> CommandResult:
        """Wait for the end. Cancelling the task that waits cancels the command."""
        try:
            return await asyncio.shield(self._supervision)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def _take(self, piece: bytes) -> None:
        """In another thread: it goes on when the loop has dealt with the piece."""
        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._output.take(piece), self._loop).result()

    async def _supervise(self) -> CommandResult:
        end = await asyncio.wrap_future(self._watched.future)
        self._output.finish()
        return self._judge(end)

    def _judge(self, end: CommandEnd) -> CommandResult:
        ending, status, tail = end.ending, end.status, self._output.lines.tail
        if ending is Ending.NOT_STARTED:
            status = _NOT_FOUND if end.error == errno.ENOENT else _NOT_EXECUTABLE
            tail = (*tail, end.words)
        if self._is_cancelled and ending in (Ending.LOST, Ending.NOT_STARTED):
            ending = Ending.CANCELLED  # before it had begun
        is_signal = status is not None and status < 0
        return CommandResult(
            ending=ending,
            status=None if is_signal else status,
            signal=-status if is_signal and status is not None else None,
            duration_s=time.monotonic() - self._started_s if end.duration_s is None else end.duration_s,
            tail=tail,
            left_running=end.left_running,
        )


class _Output:
    """Passes lines on in batches, and no more of them than somebody can read."""

    def __init__(self, take_lines: TakeLines) -> None:
        self.lines = OutputLines()
        self._take_lines = take_lines
        self._batch: list[str] = []
        self._left_out = 0
        self._hidden_last = 0
        self._passed_on_s = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    async def take(self, data: bytes) -> None:
        shown, more = self.lines.take(data, _LINES_PER_BATCH - len(self._batch))
        self._note(shown, more)
        self._stop_waiting()
        loop = asyncio.get_running_loop()
        due_s = self._passed_on_s + _BATCH_S
        if loop.time() >= due_s:
            self._pass_on()
        else:
            self._waiting = loop.call_at(due_s, self._pass_on)
        if more:
            await asyncio.sleep(_FLOOD_PAUSE_S)

    def finish(self) -> None:
        """Pass on what is left; where the last lines were left out, some of them."""
        self._stop_waiting()
        end = self.lines.finish()
        count = min(self._hidden_last, _LAST_LINES)
        last = self.lines.tail[-count - len(end) :] if count else tuple(end)
        self._left_out = max(0, self._left_out - count)
        self._pass_on()
        self._give(last)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def _note(self, shown: list[str], more: int) -> None:
        self._batch += shown
        self._left_out += more
        self._hidden_last = more + (0 if shown else self._hidden_last)

    def _pass_on(self) -> None:
        self._passed_on_s = asyncio.get_running_loop().time()
        batch, self._batch = self._batch, []
        if self._left_out > 0:
            batch.append(f"… {format_count(self._left_out)} lines are not shown")
        self._left_out = 0
        self._give(batch)

    def _give(self, lines: Sequence[str]) -> None:
        try:
            if lines:
                self._take_lines(lines)
        except Exception:  # whoever shows the output must not keep us from reading it
            logger.exception("the output of a command cannot be shown")
