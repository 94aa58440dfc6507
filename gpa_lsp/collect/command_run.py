"""One command under the watchdog: started, listened to, and gone without a trace when it is not wanted any more."""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.collect.model import CommandResult, Ending
from gpa_lsp.collect.output_lines import OutputLines
from gpa_lsp.collect.stray_processes import RUN_VARIABLE, kill_strays

logger = logging.getLogger(__name__)

TakeLines = Callable[[Sequence[str]], None]
"""Gets lines as they are printed, several at a time."""

_WATCHDOG = Path(__file__).with_name("watchdog_windows.py" if os.name == "nt" else "watchdog.py")

_READ_BYTES = 1 << 16
_LINES_PER_BATCH = 200
_BATCH_S = 0.1
_LAST_LINES = 40
_FLOOD_PAUSE_S = 0.002
"""Between two reads of a command that prints more than anybody reads: it may print 30 MB a second, and the server has time for its client."""

_DRAIN_S = 0.25
"""For the rest of the output when the command is gone; a process of another user that could not be ended may hold the pipe for ever."""

_END_LIMIT_S = 3.0
"""A watchdog that has not ended so long after it should have is killed."""

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_NO_SUCH_FILE = 2


class CommandRun:
    """A running command; made by :func:`start_command`."""

    def __init__(self, watchdog: Process, leash: int, run_id: str, take_lines: TakeLines) -> None:
        self._watchdog = watchdog
        self._leash: int | None = leash
        self._run_id = run_id
        self._output = _Output(take_lines)
        self._is_cancelled = False
        self._started_s = time.monotonic()
        self._supervision = asyncio.get_running_loop().create_task(self._supervise())

    @property
    def watchdog_id(self) -> int:
        """Process id of the watchdog."""
        return self._watchdog.pid

    def cancel(self) -> None:
        """End the command and all it started. Returns at once; the processes are gone within a tenth of a second."""
        self._is_cancelled = True
        self._let_go()

    async def wait(self) -> CommandResult:
        """Wait for the end. Cancelling the task that waits cancels the command."""
        try:
            return await asyncio.shield(self._supervision)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def _let_go(self) -> None:
        """Close the watchdog's standard input, which is its signal to end everything."""
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None

    async def _supervise(self) -> CommandResult:
        assert self._watchdog.stdout is not None
        assert self._watchdog.stderr is not None
        reading = asyncio.create_task(self._output.read(self._watchdog.stderr))
        try:
            said = await self._hear(self._watchdog.stdout)
            await asyncio.wait({reading}, timeout=_DRAIN_S)
        finally:
            reading.cancel()
            self._let_go()
            await self._bury()
        self._output.finish()
        return self._judge(said)

    async def _hear(self, stream: asyncio.StreamReader) -> Mapping[str, Any]:
        """What the watchdog says when all is over; nothing when it died before."""
        line = b""
        with contextlib.suppress(ValueError):
            line = await stream.readline()
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        return said if isinstance(said, dict) else {}

    async def _bury(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_LIMIT_S):
                await self._watchdog.wait()
        if self._watchdog.returncode is None:
            self._watchdog.kill()
            await self._watchdog.wait()
        if self._watchdog.returncode != 0:
            await asyncio.to_thread(kill_strays, self._run_id)

    def _judge(self, said: Mapping[str, Any]) -> CommandResult:
        duration_s = float(said.get("duration_s", time.monotonic() - self._started_s))
        status: int | None = said.get("status")
        ending = Ending(said["ending"]) if "ending" in said else Ending.LOST
        tail = self._output.lines.tail
        if "not_started" in said:
            ending = Ending.NOT_STARTED
            status = _NOT_FOUND if said["not_started"] == _NO_SUCH_FILE else _NOT_EXECUTABLE
            tail = (*tail, str(said["words"]))
        if self._is_cancelled and ending in (Ending.LOST, Ending.NOT_STARTED):
            ending = Ending.CANCELLED  # before it had begun
        is_signal = status is not None and status < 0
        return CommandResult(
            ending=ending,
            status=None if is_signal else status,
            signal=-status if is_signal and status is not None else None,
            duration_s=duration_s,
            tail=tail,
            left_running=tuple(said.get("left", ())),
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

    async def read(self, stream: asyncio.StreamReader) -> None:
        waiting: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()
        while data := await stream.read(_READ_BYTES):
            shown, more = self.lines.take(data, _LINES_PER_BATCH - len(self._batch))
            self._note(shown, more)
            if waiting is not None:
                waiting.cancel()
            due_s = self._passed_on_s + _BATCH_S
            if loop.time() >= due_s:
                self._pass_on()
            else:
                waiting = loop.call_at(due_s, self._pass_on)
            if more:
                await asyncio.sleep(_FLOOD_PAUSE_S)
        if waiting is not None:
            waiting.cancel()

    def finish(self) -> None:
        """Pass on what is left; where the last lines were left out, some of them."""
        end = self.lines.finish()
        count = min(self._hidden_last, _LAST_LINES)
        last = self.lines.tail[-count - len(end) :] if count else tuple(end)
        self._left_out = max(0, self._left_out - count)
        self._pass_on()
        self._give(last)

    def _note(self, shown: list[str], more: int) -> None:
        self._batch += shown
        self._left_out += more
        self._hidden_last = more + (0 if shown else self._hidden_last)

    def _pass_on(self) -> None:
        self._passed_on_s = asyncio.get_running_loop().time()
        batch, self._batch = self._batch, []
        if self._left_out > 0:
            batch.append(f"… {self._left_out:,} lines are not shown")
        self._left_out = 0
        self._give(batch)

    def _give(self, lines: Sequence[str]) -> None:
        try:
            if lines:
                self._take_lines(lines)
        except Exception:  # whoever shows the output must not keep us from reading it
            logger.exception("the output of a command cannot be shown")


async def start_command(
    command: Sequence[str],
    *,
    folder: Path,
    timeout_s: float,
    take_lines: TakeLines,
    environment: Mapping[str, str] | None = None,
) -> CommandRun:
    """Start a command.

    Args:
        command: program and arguments; no shell looks at them.
        folder: where it runs.
        timeout_s: after which it is ended.
        take_lines: gets what it prints.
        environment: what it is run with; None for this process' own.

    Raises:
        OSError: the watchdog cannot be started (no memory, too many processes).
    """
    run_id = secrets.token_hex(8)
    # A pipe of our own: closing its end takes effect at once, from anywhere, even while the event loop is busy.
    watchdog_end, leash = os.pipe()
    try:
        watchdog = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_WATCHDOG),
            repr(float(timeout_s)),
            str(folder),
            *command,
            stdin=watchdog_end,
            stdout=PIPE,
            stderr=PIPE,
            env={**(os.environ if environment is None else environment), RUN_VARIABLE: run_id},
            start_new_session=True,
        )
    except BaseException:
        os.close(leash)
        raise
    finally:
        os.close(watchdog_end)
    return CommandRun(watchdog, leash, run_id, take_lines)
