"""Commands under the watchdog: started, read line by line, and ended with all that they started."""

import asyncio
import codecs
import errno
import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.processes.watched_command import CommandEnd, Ending, TimeLimits, WatchedCommand
from gpa_lsp.profile.collect.explain import explain, says_nothing_measured
from gpa_lsp.profile.collect.measured_reports import discard_output, find_written
from gpa_lsp.profile.collect.model import CommandResult, Explanation, Measurement, Phase, RunResult
from gpa_lsp.profile.collect.variables import Command

_MAX_LINE_BYTES = 2_000
_TAIL_LINES = 200
_MARKED_LINES = 40

# What Nsight Compute puts in front of the lines that explain a failure; the application may print thousands after them
_MARKS = (b"==ERROR==", b"==WARNING==")

_CONTROL_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]?"  # two characters
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # single characters, but for the tab
)
# Marks that reorder what is read: output shown in an editor must not be able to hide anything
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_KERNEL = re.compile(r'==PROF== Profiling "(.+?)"')


class OutputLines:
    """Splits bytes into lines as they come, and keeps some of the last ones.

    A line ends at a line feed; what a carriage return overwrites on a screen is left out; a line of more than 2,000 bytes is cut.

    >>> lines = OutputLines()
    >>> lines.take(b"10 %\\r100 %\\r\\n\\x1b[31mfai"), lines.take(b"led\\x1b[0m\\nrest"), lines.finish()
    ((['100 %'], 0), (['failed'], 0), ['rest'])
    """

    def __init__(self, tail_lines: int = _TAIL_LINES) -> None:
        self._rest = b""
        self._tail: deque[bytes] = deque(maxlen=tail_lines)
        self._marked: deque[bytes] = deque(maxlen=_MARKED_LINES)

    def take(self, data: bytes, limit: int | None = None) -> tuple[list[str], int]:
        """Take some bytes. Lines beyond the limit only go into the tail, which is cheap; None for no limit."""
        *complete, rest = data.split(b"\n")
        if not complete:
            self._rest = _cut(self._rest + rest)
            return [], 0
        complete[0] = self._rest + complete[0]
        self._rest = _cut(rest)
        self._keep(complete, may_be_marked=_is_marked(data) or _is_marked(complete[0]))
        wanted = complete if limit is None else complete[:limit]
        return [clean_line(line) for line in wanted], len(complete) - len(wanted)

    def finish(self) -> list[str]:
        """Last line, if it has no end."""
        if not self._rest:
            return []
        last, self._rest = self._rest, b""
        self._keep([last], may_be_marked=True)
        return [clean_line(last)]

    @property
    def tail(self) -> tuple[str, ...]:
        """Marked lines that are not among the last ones, then the last ones."""
        last = list(self._tail)
        earlier = [line for line in self._marked if line not in last]
        return tuple(clean_line(line) for line in (*earlier, *last))

    def _keep(self, lines: list[bytes], *, may_be_marked: bool) -> None:
        if may_be_marked:
            self._marked.extend(_cut(line) for line in lines if _is_marked(line))
        count = self._tail.maxlen or 0
        self._tail.extend(_cut(line) for line in lines[-count:])


def _is_marked(data: bytes) -> bool:
    return any(mark in data for mark in _MARKS)


def _cut(line: bytes) -> bytes:
    """Cut a line to what is shown of it, even if more of it is still to come."""
    returns = line[len(line.rstrip(b"\r")) :]
    shown = line[line.rstrip(b"\r").rfind(b"\r") + 1 :]
    return shown if len(shown) <= _MAX_LINE_BYTES + 1 else shown[: _MAX_LINE_BYTES + 1] + returns[:1]


def clean_line(line: bytes) -> str:
    """A line as a terminal would show it.

    >>> clean_line(b"a\\x1b[1;31mb\\x1b]0;title\\x07c\\xff\\td\\r")
    'abc\\ufffd\\td'
    """
    shown = line.rstrip(b"\r")
    shown = shown[shown.rfind(b"\r") + 1 :]
    is_long = len(shown) > _MAX_LINE_BYTES
    text = _DIRECTION.sub("", _CONTROL_SEQUENCE.sub("", shown[:_MAX_LINE_BYTES].decode("utf-8", errors="replace")))
    return f"{text} …" if is_long else text


def find_profiled_kernel(line: str) -> str | None:
    """Kernel that Nsight Compute reports as measured; None for other lines.

    >>> find_profiled_kernel('==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 19 passes')
    'saxpy'
    """
    found = _KERNEL.match(line)
    return None if found is None else found.group(1)


logger = logging.getLogger(__name__)

TakeLines = Callable[[Sequence[str]], None]  # Gets lines as they are printed, several at a time

_LINES_PER_BATCH = 200
_BATCH_S = 0.1
_LAST_LINES = 40
# Between two reads of a command that floods us, up to 30 MB a second, so that the server has time for its client
_FLOOD_PAUSE_S = 0.002

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class CommandRun:
    """A running command.

    Args:
        command: program and arguments; no shell parses them.
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
        """Called in another thread; returns once the loop has handled the piece."""
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
        duration_s = time.monotonic() - self._started_s if end.duration_s is None else end.duration_s
        return _make_result(ending, status, duration_s, tail, end.left_running)


def _make_result(
    ending: Ending, status: int | None, duration_s: float, tail: tuple[str, ...], left_running: tuple[int, ...] = ()
) -> CommandResult:
    """Result of a command; a negative status is a signal's number."""
    number = -status if status is not None and status < 0 else None
    return CommandResult(
        ending=ending,
        status=None if number is not None else status,
        signal=number,
        duration_s=duration_s,
        tail=tail,
        left_running=left_running,
    )


class _Output:
    """Passes lines on in batches, at a rate that can be read."""

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
        """Pass on what is left; if the last lines were left out, some of them."""
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
        except Exception:  # errors in showing the output must not stop us from reading it
            logger.exception("the output of a command cannot be shown")


TellPhase = Callable[[Phase], None]

# Endings in the middle of things, after which a report is half a report
_STOPPED = frozenset({Ending.CANCELLED, Ending.TIMED_OUT, Ending.LOST})


class MeasurementRun:
    """A measurement, which can be cancelled at any time, from any task.

    Args:
        measurement: what to run.
        take_lines: gets what the commands print.
        tell_phase: hears which of them begins.
    """

    def __init__(
        self, measurement: Measurement, take_lines: TakeLines, tell_phase: TellPhase = lambda phase: None
    ) -> None:
        self._measurement = measurement
        self._take_lines = take_lines
        self._tell_phase = tell_phase
        self._current: CommandRun | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """End what runs, and start nothing more. Returns at once."""
        self._is_cancelled = True
        if self._current is not None:
            self._current.cancel()

    async def run(self) -> RunResult:
        """Run the commands. Cancelling the task that awaits this cancels the measurement.

        Raises:
            OSError: no process can be started at all.
        """
        started_s = time.monotonic()
        measurement = self._measurement
        if measurement.build is not None:
            built = await self._run_command(Phase.BUILD, measurement.build)
            if not built.is_success:
                return self._conclude(Phase.BUILD, built, None, started_s)
        profiled = await self._run_command(Phase.PROFILE, measurement.profile)
        return self._conclude(Phase.PROFILE, profiled, self._find_report(profiled), started_s)

    async def _run_command(self, phase: Phase, command: Command) -> CommandResult:
        if self._is_cancelled:
            return _make_result(Ending.CANCELLED, None, 0.0, ())
        self._tell_phase(phase)
        measurement = self._measurement
        self._current = CommandRun(
            command,
            folder=measurement.folder,
            timeout_s=measurement.timeout_s,
            take_lines=self._take_lines,
            environment=measurement.environment,
        )
        if self._is_cancelled:  # by what was told of the phase
            self._current.cancel()
        return await self._current.wait()

    def _find_report(self, result: CommandResult) -> Path | None:
        output = self._measurement.output
        if output is None:
            return None
        if result.ending in _STOPPED:
            discard_output(output)
            return None
        return find_written(output)

    def _conclude(self, phase: Phase, result: CommandResult, report: Path | None, started_s: float) -> RunResult:
        return RunResult(
            phase=phase,
            command=result,
            explanation=self._explain(phase, result, report),
            report=report,
            duration_s=time.monotonic() - started_s,
        )

    def _explain(self, phase: Phase, result: CommandResult, report: Path | None) -> Explanation | None:
        measurement = self._measurement
        command = measurement.build if phase is Phase.BUILD and measurement.build else measurement.profile
        if result.is_success and report is not None and not says_nothing_measured(result):
            return None
        found = explain(result, program=command[0], phase=phase, timeout_s=measurement.timeout_s)
        if found is None and result.is_success and measurement.needs_output:
            return Explanation(
                name="no-report",
                summary="the command ended well, but wrote no report where it was asked to",
                remedies=("hand ${output} to the profiler: ncu --force-overwrite --export ${output} …",),
            )
        return found


_PATIENCE_S = 5.0  # For a command that was interrupted along with us to end by itself

_READ_BYTES = 1 << 16


def run_in_foreground(command: Sequence[str], out: TextIO, err: TextIO) -> CommandResult:
    """Run a command and relay its output as it comes.

    Args:
        command: program and arguments; no shell parses them.
        out: gets its standard output.
        err: gets its standard error.

    Raises:
        KeyboardInterrupt: the user interrupted it; it has ended.
    """
    started_s = time.monotonic()
    lines, lock = OutputLines(), threading.Lock()
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        status = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        tail = (f"{error.filename or command[0]}: {error.strerror}",)
        return _make_result(Ending.NOT_STARTED, status, 0.0, tail)
    relays = [
        threading.Thread(target=_relay, args=(source, target, lines, lock), daemon=True)
        for source, target in ((process.stdout, out), (process.stderr, err))
    ]
    with _pass_on_signals(process):
        for relay in relays:
            relay.start()
        status = _wait(process)
    for relay in relays:
        relay.join(timeout=_PATIENCE_S)  # something it left running in the background may hold the pipe
    return _make_result(Ending.ENDED, status, time.monotonic() - started_s, lines.tail)


def _wait(process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(timeout=_PATIENCE_S)  # the terminal has interrupted it as well
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
        raise


@contextmanager
def _pass_on_signals(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Forward signals that end this process to the command."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may listen
    before = {number: signal.signal(number, lambda number, frame: process.send_signal(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _relay(source: IO[bytes], target: TextIO, lines: OutputLines, lock: threading.Lock) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    own_lines = OutputLines()  # of this stream: pieces of two streams must not be joined to one line
    is_open = True
    while data := source.read1(_READ_BYTES):  # type: ignore[attr-defined]
        complete, _ = own_lines.take(data)
        with lock:
            lines.take("".join(f"{line}\n" for line in complete).encode())
            if is_open:
                is_open = _write(target, decoder.decode(data))
    with lock:
        lines.take("".join(f"{line}\n" for line in own_lines.finish()).encode())


def _write(target: TextIO, text: str) -> bool:
    """Write text; False if the output is closed, so that the command goes on without it."""
    try:
        target.write(text)
        target.flush()
    except (OSError, ValueError):
        return False
    return True
