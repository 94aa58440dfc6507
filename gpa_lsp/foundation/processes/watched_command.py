"""A command that is not ours, under a watchdog: ended with all it started when it is not wanted any more, also by our own death.

:func:`run_command` is for those who may block; :mod:`gpa_lsp.profile.collect.command_run` for those who have an event loop.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from enum import Enum
from math import inf
from pathlib import Path
from time import monotonic
from typing import IO, Any

from msgspec import Struct

from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.numbers import format_seconds
from gpa_lsp.foundation.processes.python_children import isolate_script


def name_signal(number: int) -> str:
    """A signal's name.

    >>> name_signal(9), name_signal(250)
    ('SIGKILL', 'signal 250')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def describe_signal(number: int) -> str:
    """A signal's number, name and meaning.

    >>> describe_signal(11), describe_signal(250)
    ('signal 11 (SIGSEGV, segmentation fault)', 'signal 250')
    """
    meaning = (signal.strsignal(number) or "").lower() if number in set(signal.Signals) else ""
    return f"signal {number} ({name_signal(number)}, {meaning})" if meaning else f"signal {number}"


# How long a tool may run: so much time of a processor, and many times that by the clock.
#
# A tool that hangs is ended by either. On a busy machine, or one that was asleep, the clock runs while the tool does not: then only the processor
# time says whether it works too long.

# Seconds by the clock for each second of processor time: as much as nine other programs on one processor leave
CLOCK_PER_PROCESSOR = 10.0
_LOOK_S = 0.25
_PS_LIMIT_S = 5.0
# Ends the program's name in ``/proc/PID/stat``, which may hold anything; user and system time are the 12th and 13th word after it
_AFTER_NAME = b")"
_TICKS_PER_S = 10_000_000  # Of Windows' file times


class TimeLimits(Struct, frozen=True, kw_only=True):
    """The time that one run may take."""

    processor_s: float  # seconds that processors worked on it
    clock_s: float  # seconds from its start

    @classmethod
    def for_work(cls, processor_s: float) -> "TimeLimits":
        """A limit of processor time, with patience for a busy machine."""
        return cls(processor_s=processor_s, clock_s=CLOCK_PER_PROCESSOR * processor_s)

    @classmethod
    def by_clock(cls, clock_s: float) -> "TimeLimits":
        """A limit by the clock, for what waits for a person, a network or a GPU."""
        return cls(processor_s=inf, clock_s=clock_s)

    def find_excess(self, processor_s: float | None, clock_s: float) -> str | None:
        """The limit that a run has exceeded, as the rest of a sentence; None when none. Unknown processor time exceeds no limit.

        >>> limits = TimeLimits.for_work(30)
        >>> limits.find_excess(2.0, 200.0), limits.find_excess(31.0, 33.0)
        (None, 'timed out after 30 s of processor time')
        >>> limits.find_excess(0.5, 301.0)
        'timed out after 300 s (0.5 s of processor time)'
        """
        is_excess = clock_s > self.clock_s or (processor_s is not None and processor_s > self.processor_s)
        return self.describe_excess(processor_s) if is_excess else None

    def describe_excess(self, processor_s: float | None) -> str:
        """The limit that a run which was ended has exceeded, as the rest of a sentence."""
        if processor_s is not None and processor_s >= self.processor_s:
            return f"timed out after {format_seconds(self.processor_s)} of processor time"
        had = "" if processor_s is None else f" ({format_seconds(processor_s)} of processor time)"
        return f"timed out after {format_seconds(self.clock_s)}{had}"


@contextlib.contextmanager
def run_limited(
    tool: str,
    command: Sequence[str],
    limits: TimeLimits,
    *,
    folder: Path,
    output: int | IO[bytes],
    errors: int | IO[bytes],
    work: str = "",
    environment: Mapping[str, str] | None = None,
) -> "Iterator[subprocess.Popen[bytes]]":
    """A tool at work: without a process in between, because many runs are short. It is killed where the body fails, and has ended afterwards.

    Args:
        tool: its name, for errors.
        command: program and arguments.
        limits: of it.
        folder: it runs in.
        output: as for :class:`subprocess.Popen`.
        errors: as for :class:`subprocess.Popen`.
        work: what it does, for errors, such as ``reading libcublas.a``.
        environment: it sees; None for ours.

    Raises:
        ToolError: it cannot be started, or took too long, which is said at the end of the body.
    """
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=folder, env=environment
        )
    except OSError as error:
        raise ToolError(tool, f"{command[0]} cannot be started: {error.strerror or error}") from error
    excess: list[str] = []
    is_done = threading.Event()

    def watch() -> None:
        started_s = monotonic()
        while not is_done.wait(_LOOK_S):
            found = limits.find_excess(read_processor_time(process), monotonic() - started_s)
            if found is not None and process.returncode is None:
                excess.append(found)
                process.kill()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield process
    except BaseException:
        process.kill()
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()
        process.wait()
        is_done.set()
        thread.join()
    if excess:
        raise ToolError(tool, f"{work}: {excess[0]}" if work else excess[0])


def read_processor_time(process: "subprocess.Popen[bytes]") -> float | None:
    """Seconds that processors have worked on a running process, without its children; None when the system does not say."""
    if sys.platform == "win32":
        return _ask_windows(process)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(_AFTER_NAME)[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        return None
    return _ask_ps(process.pid)


def _ask_ps(process_id: int) -> float | None:
    command = ["ps", "-o", "time=", "-p", str(process_id)]
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=_PS_LIMIT_S
        )
        return parse_ps_time(done.stdout.strip())
    return None


def parse_ps_time(text: str) -> float:
    """Seconds of a time as ``ps`` prints it.

    Raises:
        ValueError: it is none.

    >>> parse_ps_time("1-02:00:01"), parse_ps_time("00:00:07"), parse_ps_time("2:03.25")
    (93601.0, 7.0, 123.25)
    """
    days, _, rest = text.rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = 60 * seconds + float(part)
    return 86_400 * int(days or 0) + seconds


def _ask_windows(process: "subprocess.Popen[bytes]") -> float | None:
    if sys.platform != "win32":
        return None
    import ctypes  # seldom needed, and only there

    times = [ctypes.c_uint64() for _ in range(4)]
    handle = ctypes.c_void_p(vars(process)["_handle"])
    if not ctypes.windll.kernel32.GetProcessTimes(handle, *map(ctypes.byref, times)):
        return None
    _, _, kernel, user = times
    return (kernel.value + user.value) / _TICKS_PER_S


TEMPORARY = "gpa-lsp-"  # Begins the name of a folder that is removed with the command that ran in it

RUN_VARIABLE = "GPA_LSP_RUN"  # Environment variable that every process of a run inherits; its value is the run's own

MOST_OUTPUT_BYTES = 4 << 20
_LARGEST_FILE_BYTES = 2 << 30
_POLL_S = 0.02
_READ_BYTES = 1 << 16
_END_LIMIT_S = 5.0  # A watchdog that has not ended so long after it should have is killed

# For the rest of the output when the command is gone; a process of another user that could not be ended may hold the pipe for ever
_DRAIN_S = 2.0

_STRAYS_LIMIT_S = 1.0
_TAIL_CHARACTERS = 2000
_NEEDED_VARIABLES = ("SYSTEMROOT", "SYSTEMDRIVE")  # Without the first, Windows starts no Python

_WATCHDOG = Path(__file__).with_name("watchdog_windows.py" if os.name == "nt" else "watchdog.py")


class Ending(Enum):
    """The way in which a command came to its end."""

    ENDED = "ended"  # By itself, well or badly
    NOT_STARTED = "not started"  # The program is not there, or cannot be executed
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    LOST = "lost"  # The process that watches over it died; what was left of the command was killed


class CommandEnd(Struct, frozen=True, kw_only=True):
    """The watchdog's report at the end of a command."""

    ending: Ending  # how the command ended
    status: int | None = None  # its exit status; minus the number of the signal that ended it; None when it has none
    duration_s: float | None = None  # from start to end; None when unknown
    processor_s: float | None = None  # that processors worked on it and all it started; None when unknown
    # processes that could not be ended, because they belong to another user or hang in the kernel
    left_running: tuple[int, ...] = ()
    error: int | None = None  # the system's number of the error why it was not started; None when it was
    words: str = ""  # the same for people


class RunLimits(Struct, frozen=True, kw_only=True):
    """The limits of a run."""

    # of a processor and by the clock; for tools that work, and do not wait, :meth:`TimeLimits.for_work`
    time: TimeLimits
    memory_limit_bytes: int  # address space of each process
    is_cancelled: Callable[[], bool] | None = None  # asked again and again; True ends the run
    largest_file_bytes: int = _LARGEST_FILE_BYTES  # of each file it writes


class WatchedCommand:
    """A command at work, each of whose processes may be ended from any thread.

    Args:
        command: program and arguments; no shell looks at them.
        folder: it runs in.
        environment: it is run with.
        limits: the time it may take.
        take: gets, in a thread of its own, what it prints, both streams together; it is read no further before that returns.
        memory_bytes: address space of each of its processes; 0 for no limit of either.
        file_bytes: of each file it writes.
        streams: descriptors that become its standard input, output and error; then ``take`` gets nothing. Not on Windows.
        temporary: a folder of ours that is removed with the command should we die; the one it runs in where that is temporary.

    Attributes:
        future: how it ended; done when nothing of it is left.

    Raises:
        OSError: the watchdog cannot be started (no memory, too many processes).
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: TimeLimits,
        take: Callable[[bytes], object],
        memory_bytes: int = 0,
        file_bytes: int = 0,
        streams: tuple[int, int, int] | None = None,
        temporary: Path | None = None,
    ) -> None:
        if temporary is None and folder.name.startswith(TEMPORARY):
            temporary = folder
        given = None if streams is None else [os.dup(stream) for stream in streams]
        options = {
            "folder": str(folder),
            "processor_s": limits.processor_s,
            "clock_s": limits.clock_s,
            "memory_bytes": memory_bytes,
            "file_bytes": file_bytes,
            "temporary": "" if temporary is None else str(temporary),
            "streams": given,
        }
        self._run_id = secrets.token_hex(8)
        try:
            self._process = subprocess.Popen(
                isolate_script(_WATCHDOG, json.dumps(options), *command).words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment, RUN_VARIABLE: self._run_id},
                start_new_session=True,
                pass_fds=given or (),
            )
        finally:
            for stream in given or ():
                os.close(stream)
        self._take = take
        self._late: threading.Timer | None = None
        self._expect_end(limits.clock_s)
        self.future: Future[CommandEnd] = Future()
        self.future.set_running_or_notify_cancel()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def watchdog_id(self) -> int:
        """Process id of the watchdog."""
        return self._process.pid

    def cancel(self) -> None:
        """End the command and all it started. Returns at once; the processes are gone within a tenth of a second."""
        if self._process.stdin is not None:
            self._process.stdin.close()  # which is the watchdog's signal to end everything
        if not self.future.done():
            self._expect_end(0.0)

    def _expect_end(self, limit_s: float) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = threading.Timer(limit_s + _END_LIMIT_S, self._process.kill)
        self._late.daemon = True
        self._late.start()

    def _watch(self) -> None:
        process = self._process
        assert process.stdout is not None
        reading = threading.Thread(target=self._read, daemon=True)
        reading.start()
        said = process.stdout.readline()
        reading.join(_DRAIN_S)
        status = process.wait()
        process.stdout.close()
        if status != 0:
            _kill_strays(self._run_id)
        self.future.set_result(_parse_end(said))
        self.cancel()
        if self._late is not None:
            self._late.cancel()

    def _read(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with stream:
            while piece := stream.read1(_READ_BYTES):  # type: ignore[attr-defined]
                self._take(piece)


def run_command(
    name: str, command: Sequence[str], *, folder: Path, environment: Mapping[str, str], limits: RunLimits
) -> tuple[bool, str]:
    """Run a program.

    Args:
        name: of it, for errors.
        command: program and arguments; no shell looks at them here (nvcc itself does, see :mod:`gpa_lsp.execution.compiler.compile`).
        folder: it runs in.
        environment: it runs with; what the system itself needs is added.
        limits: of it.

    Returns:
        Whether it ended well, and what it printed, both streams together; beyond :data:`MOST_OUTPUT_BYTES` nothing is kept.

    Raises:
        ToolError: it could not be started, did not end in time, was cancelled, or was killed (as for want of memory).
    """
    output = bytearray()

    def take(piece: bytes) -> None:
        output.extend(piece[: max(0, MOST_OUTPUT_BYTES - len(output))])

    needed = {one: os.environ[one] for one in _NEEDED_VARIABLES if one in os.environ}
    try:
        running = WatchedCommand(
            command,
            folder=folder,
            environment={**needed, **environment},
            limits=limits.time,
            take=take,
            memory_bytes=limits.memory_limit_bytes,
            file_bytes=limits.largest_file_bytes,
        )
    except OSError as error:
        raise ToolError(name, f"it cannot be started: {error.strerror or error}") from error
    try:
        while not wait([running.future], _POLL_S).done:
            if limits.is_cancelled is not None and limits.is_cancelled():
                break
    finally:
        running.cancel()
        end = running.future.result()
    return _judge(name, end, output.decode("utf-8", "replace"), limits)


def _parse_end(line: bytes) -> CommandEnd:
    """Read the watchdog's last report; it is empty when the watchdog was killed before."""
    try:
        said: Any = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return CommandEnd(ending=Ending.LOST)
    if "not_started" in said:
        return CommandEnd(ending=Ending.NOT_STARTED, error=said["not_started"], words=said["words"])
    return CommandEnd(
        ending=Ending(said["ending"]),
        status=said["status"],
        duration_s=said["duration_s"],
        processor_s=said["processor_s"],
        left_running=tuple(said["left"]),
    )


def _judge(name: str, end: CommandEnd, output: str, limits: RunLimits) -> tuple[bool, str]:
    tail = output[-_TAIL_CHARACTERS:]
    if end.ending is Ending.CANCELLED:
        raise ToolError(name, "it was cancelled", output=tail)
    if end.ending is Ending.TIMED_OUT:
        raise ToolError(name, limits.time.describe_excess(end.processor_s), output=tail)
    if end.ending is Ending.NOT_STARTED:
        raise ToolError(name, f"it cannot be started: {end.words}", output=tail)
    if end.status is None or end.status < 0:
        raise ToolError(name, "it was killed, perhaps for lack of memory", output=tail)
    return end.status == 0, output


def find_strays(run_id: str) -> Iterator[int]:
    """Processes of a run, told by their environment; none where the system has no ``/proc``."""
    marker = f"{RUN_VARIABLE}={run_id}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended, or not ours
            if marker in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def _kill_strays(run_id: str) -> None:
    """The last resort where the watchdog was killed itself: kill the processes of a run until there are none."""
    until_s = time.monotonic() + _STRAYS_LIMIT_S
    while (found := list(find_strays(run_id))) and time.monotonic() < until_s:
        for process_id in found:
            with contextlib.suppress(OSError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(0.005)
