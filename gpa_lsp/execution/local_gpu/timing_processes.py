"""Handle of the worker that times launches: :func:`time_on_gpu`. The worker ends when idle for ten minutes."""

import atexit
import os
import tempfile
from collections.abc import Callable

from gpa_lsp.execution.local_gpu.timing import Greeting, GreetJob, LaunchTiming, TimingAnswer, TimingJob
from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.processes.supervision import WorkerKind, WorkerPool

TITLE = "the process that times launches"
_START_LIMIT_S = 120.0
_SPARE_S = 60.0  # For loading code and filling arrays, beside the launches themselves
_IDLE_S = 600.0
_KIND = WorkerKind(
    module="gpa_lsp.execution.local_gpu.timing_worker",
    title=TITLE,
    niceness=0,
    memory_bytes=0,  # a CUDA context reserves more address space than any limit would allow
    idle_s=_IDLE_S,
    folder=tempfile.gettempdir(),
    is_quiet=True,
)
_POOL = WorkerPool(_KIND, most_idle=1)


def find_gpu() -> Greeting:
    """GPU that launches are timed on.

    Raises:
        MissingToolError: there is none, or no driver, or no bindings; says which.
        ToolError: the process did not start.
    """
    greeting: Greeting = _POOL.do(GreetJob(), limit_s=_START_LIMIT_S, work="looking for a GPU")
    if greeting.failure:
        _POOL.close()
    if greeting.missing is not None:
        tool, needed_for, install = greeting.missing
        raise MissingToolError(tool, needed_for=needed_for, install=install)
    if greeting.failure:
        raise ToolError(TITLE, greeting.failure)
    return greeting


def time_on_gpu(job: TimingJob, *, is_cancelled: Callable[[], bool] | None = None) -> LaunchTiming:
    """Time a launch.

    Raises:
        ToolError: it failed, did not end, or was cancelled.
    """
    limit_s = job.settings.launch_seconds * (1 + job.settings.warm_ups) + job.settings.seconds + _SPARE_S
    answer: TimingAnswer = _POOL.do(job, limit_s=limit_s, is_cancelled=is_cancelled, work="timing a launch")
    if answer.is_spent:
        _POOL.close()  # what comes next starts with a context that nothing is wrong with
    if answer.timing is None:
        raise ToolError("timing", answer.failure)
    return answer.timing


def close_processes() -> None:
    """End idle workers; later jobs start new ones."""
    _POOL.close()


atexit.register(close_processes)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.forget)
