"""How long a tool may run: so much time of a processor, and many times that by the clock.

A tool that hangs is ended by either. On a busy machine, or one that was asleep, the clock runs while the tool does not: then only the processor
time says whether it works too long.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from time import monotonic
from typing import IO

from msgspec import Struct

from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.numbers import format_seconds

# Seconds by the clock for each second of processor time: as much as nine other programs on one processor leave
CLOCK_PER_PROCESSOR = 10.0
_LOOK_S = 0.25
_PS_LIMIT_S = 5.0
# Ends the program's name in ``/proc/PID/stat``, which may hold anything; user and system time are the 12th and 13th word after it
_AFTER_NAME = b")"
_TICKS_PER_S = 10_000_000  # Of Windows' file times


class TimeLimits(Struct, frozen=True, kw_only=True):
    """What one run may take."""

    processor_s: float  # seconds that processors worked on it
    clock_s: float  # seconds from its start

    @classmethod
    def for_work(cls, processor_s: float) -> "TimeLimits":
        """So much processor time, and patience for a busy machine."""
        return cls(processor_s=processor_s, clock_s=CLOCK_PER_PROCESSOR * processor_s)

    @classmethod
    def by_clock(cls, clock_s: float) -> "TimeLimits":
        """So much time by the clock, for what waits for a person, a network or a GPU."""
        return cls(processor_s=inf, clock_s=clock_s)

    def find_excess(self, processor_s: float | None, clock_s: float) -> str | None:
        """What a run that took so long has exceeded, as the rest of a sentence; None when nothing. Unknown processor time exceeds nothing.

        >>> limits = TimeLimits.for_work(30)
        >>> limits.find_excess(2.0, 200.0), limits.find_excess(31.0, 33.0)
        (None, 'timed out after 30 s of processor time')
        >>> limits.find_excess(0.5, 301.0)
        'timed out after 300 s (0.5 s of processor time)'
        """
        is_excess = clock_s > self.clock_s or (processor_s is not None and processor_s > self.processor_s)
        return self.describe_excess(processor_s) if is_excess else None

    def describe_excess(self, processor_s: float | None) -> str:
        """What a run that was ended has exceeded, as the rest of a sentence."""
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
