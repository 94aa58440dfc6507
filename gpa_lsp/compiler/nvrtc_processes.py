"""Processes with NVRTC in them, kept warm between compilations (:mod:`gpa_lsp.compiler.nvrtc_worker`)."""

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO

from gpa_lsp.compiler.nvrtc_frames import NvrtcAnswer, NvrtcGreeting, NvrtcJob, read_frame, write_frame
from gpa_lsp.errors import MissingToolError, ToolError

TOOL = "NVRTC"
INSTALL = "install gpa-lsp[cuda], which brings cuda-python and NVRTC"
MEMORY_LIMIT_BYTES = 6 << 30
"""Address space of one process; compiling the largest headers of CUDA's libraries takes less than a quarter of it."""

_START_LIMIT_S = 60.0
_POLL_S = 0.02
_MOST_IDLE = 2
_MISSING_S = 60.0
"""For so long it is not looked for again when it was not there."""

IsCancelled = Callable[[], bool]


class NvrtcProcesses:
    """Starts processes as they are needed, and lends each to one compilation at a time.

    Args:
        memory_limit_bytes: address space of each.
    """

    def __init__(self, memory_limit_bytes: int = MEMORY_LIMIT_BYTES) -> None:
        self._memory_limit_bytes = memory_limit_bytes
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._greeting: NvrtcGreeting | None = None
        self._missing_until_s = 0.0

    def greet(self) -> NvrtcGreeting:
        """What NVRTC there is; starts a process the first time, which is then warm.

        Raises:
            MissingToolError: there is none.
            ToolError: the process did not start.
        """
        if self._greeting is None:
            self._give_back(self._take())
        assert self._greeting is not None
        return self._greeting

    def compile(self, job: NvrtcJob, *, is_cancelled: IsCancelled | None = None) -> NvrtcAnswer:
        """Have something compiled.

        Args:
            job: what.
            is_cancelled: asked again and again; True ends the process.

        Raises:
            MissingToolError: there is no NVRTC.
            ToolError: it crashed (also for lack of memory), did not end in time, or was cancelled.
        """
        process = self._take()
        try:
            answer = process.ask(job, is_cancelled)
        except BaseException:
            process.end()
            raise
        self._give_back(process)
        return answer

    def close(self) -> None:
        """End the processes that wait; others end with their compilation."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def forget(self) -> None:
        """Processes of the parent are not this one's, after a fork."""
        self._lock = threading.Lock()
        self._idle = []

    def _take(self) -> "_Process":
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.is_alive():
                    return process
                process.end()
        if time.monotonic() < self._missing_until_s:
            raise MissingToolError(TOOL, needed_for="compiling device code", install=INSTALL)
        process = _Process(self._memory_limit_bytes)
        if process.greeting.version is None:
            process.end()
            self._missing_until_s = time.monotonic() + _MISSING_S
            raise MissingToolError(TOOL, needed_for="compiling device code", install=INSTALL)
        self._greeting = process.greeting
        return process

    def _give_back(self, process: "_Process") -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(process)
                return
        process.end()


class _Process:
    """One of them."""

    def __init__(self, memory_limit_bytes: int) -> None:
        try:
            self._process = subprocess.Popen(
                # -P: the workspace must not be able to put modules of its own in our way.
                [sys.executable, "-P", "-m", "gpa_lsp.compiler.nvrtc_worker", str(memory_limit_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=tempfile.gettempdir(),
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(TOOL, f"its process cannot be started: {error.strerror or error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions: IO[bytes] = self._process.stdin
        self._answers: IO[bytes] = self._process.stdout
        with _Guard(self._process, _START_LIMIT_S, None) as guard:
            greeting = read_frame(self._answers)
        if not isinstance(greeting, NvrtcGreeting):
            self.end()
            raise ToolError(TOOL, f"its process {guard.reason or 'ended before it began'}")
        self.greeting = greeting

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, job: NvrtcJob, is_cancelled: IsCancelled | None) -> NvrtcAnswer:
        with _Guard(self._process, job.limit_s, is_cancelled) as guard:
            try:
                write_frame(self._questions, job)
                answer = read_frame(self._answers)
            except OSError:
                answer = None
        if isinstance(answer, NvrtcAnswer):
            return answer
        status = self._process.wait()
        raise ToolError(TOOL, f"it {guard.reason or _describe_end(status)} compiling {job.name}")

    def end(self) -> None:
        self._process.kill()
        for stream in (self._questions, self._answers):
            with contextlib.suppress(OSError):
                stream.close()
        self._process.wait()


def _describe_end(status: int) -> str:
    """How a process ended that nobody ended."""
    return (
        f"crashed (signal {-status})"
        if status < 0
        else f"ended by itself (status {status}), perhaps for lack of memory,"
    )


class _Guard:
    """Ends a process when its time is up or nobody wants its answer any more.

    Attributes:
        reason: why it was ended; None when it was not.
    """

    def __init__(self, process: subprocess.Popen[bytes], limit_s: float, is_cancelled: IsCancelled | None) -> None:
        self.reason: str | None = None
        self._process = process
        self._limit_s = limit_s
        self._is_cancelled = is_cancelled
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "_Guard":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        deadline_s = time.monotonic() + self._limit_s
        while not self._done.wait(_POLL_S if self._is_cancelled else max(0.0, deadline_s - time.monotonic())):
            if self._is_cancelled is not None and self._is_cancelled():
                self._end("was cancelled")
                return
            if time.monotonic() >= deadline_s:
                self._end(f"did not end within {self._limit_s:.0f} s")
                return

    def _end(self, reason: str) -> None:
        self.reason = reason
        self._process.kill()


PROCESSES = NvrtcProcesses()
"""Those of this process."""


def identify_nvrtc() -> tuple[int, int] | None:
    """The version of NVRTC; None when it is not installed, or does not work."""
    try:
        return PROCESSES.greet().version
    except (MissingToolError, ToolError):
        return None


def list_nvrtc_architectures() -> tuple[int, ...]:
    """The numbers of the architectures NVRTC compiles for, ascending; none where it is not installed."""
    return PROCESSES.greet().architectures if identify_nvrtc() is not None else ()


atexit.register(PROCESSES.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESSES.forget)
