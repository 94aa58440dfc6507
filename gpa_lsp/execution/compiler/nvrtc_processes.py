"""Processes with NVRTC in them, kept warm between compilations (:mod:`gpa_lsp.execution.compiler.nvrtc_worker`)."""

import atexit
import os
import tempfile
import time
from collections.abc import Callable

from gpa_lsp.execution.compiler.nvrtc_worker import GREET, NvrtcAnswer, NvrtcGreeting, NvrtcJob
from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.processes.supervision import WorkerKind, WorkerPool

TOOL = "NVRTC"
INSTALL = "install gpa-lsp[cuda], which brings cuda-python and NVRTC"
# Address space of one process; compiling the largest headers of CUDA's libraries takes less than a quarter of it
MEMORY_LIMIT_BYTES = 6 << 30

_START_LIMIT_S = 60.0
_IDLE_S = 900.0  # A process that waits holds about 100 MB

_MOST_IDLE = 2
_MISSING_S = 60.0  # For so long it is not looked for again when it was not there


class NvrtcProcesses:
    """Lends a process to one compilation at a time.

    Args:
        memory_limit_bytes: address space of each.
    """

    def __init__(self, memory_limit_bytes: int = MEMORY_LIMIT_BYTES) -> None:
        kind = WorkerKind(
            module="gpa_lsp.execution.compiler.nvrtc_worker",
            title=TOOL,
            niceness=0,
            memory_bytes=memory_limit_bytes,
            idle_s=_IDLE_S,
            folder=tempfile.gettempdir(),
            is_quiet=True,
        )
        self.pool = WorkerPool(kind, most_idle=_MOST_IDLE)
        self._greeting: NvrtcGreeting | None = None
        self._asked_s = 0.0

    def greet(self) -> NvrtcGreeting:
        """Version and architectures of NVRTC; the first call starts a process, which stays warm.

        Raises:
            MissingToolError: there is none.
            ToolError: the process did not start.
        """
        is_missing = self._greeting is not None and self._greeting.version is None
        if self._greeting is None or (is_missing and time.monotonic() - self._asked_s > _MISSING_S):
            self._greeting = self.pool.do(GREET, limit_s=_START_LIMIT_S, work="starting")
            self._asked_s = time.monotonic()
        assert self._greeting is not None
        if self._greeting.version is None:
            self.pool.close()  # it cannot find it later either
            raise MissingToolError(TOOL, needed_for="compiling device code", install=INSTALL)
        return self._greeting

    def compile(self, job: NvrtcJob, *, is_cancelled: Callable[[], bool] | None = None) -> NvrtcAnswer:
        """Compile in a process.

        Raises:
            MissingToolError: there is no NVRTC.
            ToolError: it crashed (also for lack of memory), did not end in time, or was cancelled.
        """
        self.greet()
        answer: NvrtcAnswer = self.pool.do(
            job, limit_s=job.limit_s, is_cancelled=is_cancelled, work=f"compiling {job.name}"
        )
        return answer


PROCESSES = NvrtcProcesses()  # Those of this process


def identify_nvrtc() -> tuple[int, int] | None:
    """The version of NVRTC; None when it is not installed, or does not work."""
    try:
        return PROCESSES.greet().version
    except (MissingToolError, ToolError):
        return None


def list_nvrtc_architectures() -> tuple[int, ...]:
    """Numbers of the architectures NVRTC compiles for, ascending; empty if it is not installed."""
    return PROCESSES.greet().architectures if identify_nvrtc() is not None else ()


atexit.register(PROCESSES.pool.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESSES.pool.forget)
