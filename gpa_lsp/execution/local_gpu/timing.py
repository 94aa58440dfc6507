"""Times described launches on a GPU: :func:`time_launch`, in a worker: :func:`time_on_gpu`. Needs no permission to read counters."""

import atexit
import os
import tempfile
import time
from collections.abc import Callable
from math import ceil, floor, sqrt
from statistics import median

from msgspec import Struct

from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.local_gpu.local_gpu import LocalGpu, PlacedLaunch
from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.processes.supervision import WorkerKind, WorkerPool

_CONFIDENCE = 1.96  # Standard deviations: 95 % of a normal distribution
_FLUSH_TIMES = 2  # Of the size of L2 that is written to overwrite it
_FILLER_BYTES, _FILLERS = 1 << 20, 32


class TimingSettings(Struct, frozen=True, kw_only=True):
    """Number and conditions of timed launches."""

    warm_ups: int = 5  # launches before those that count
    repetitions: int = 30  # launches that count, at most
    seconds: float = 5.0  # of all of it; fewer launches are made when it takes longer, but one
    launch_seconds: float = 60.0  # that one launch may take
    # L2 is overwritten before each launch; else it holds what the launch before left, and its inputs
    is_cold: bool = True


DEFAULT_TIMING = TimingSettings()


class LaunchTiming(Struct, frozen=True, kw_only=True):
    """The times of a launch."""

    times_ns: tuple[float, ...]  # of each launch that counts, in order
    gpu: str  # name of the product
    compute_capability: tuple[int, int]  # of the GPU
    sm_count: int | None  # of the GPU; None where the driver does not say
    is_cold: bool  # L2 was overwritten before each

    @property
    def median_ns(self) -> float:
        """Median of the times."""
        return float(median(self.times_ns))

    @property
    def error_ns(self) -> float | None:
        """Half of the 95 % confidence interval of the median; None for too few times.

        Source: order statistics, by the normal approximation of the binomial distribution of how many lie below the median.
        """
        count = len(self.times_ns)
        reach = _CONFIDENCE * sqrt(count) / 2
        low, high = floor(count / 2 - reach), ceil(count / 2 + reach)
        if low < 1 or high > count:
            return None
        ordered = sorted(self.times_ns)
        return (ordered[high - 1] - ordered[low - 1]) / 2


def time_launch(gpu: LocalGpu, placed: PlacedLaunch, settings: TimingSettings, *, keeps_inputs: bool) -> LaunchTiming:
    """Launch repeatedly and time each launch.

    Raises:
        ToolError: the kernel ended with an error, or did not end. The GPU can be used no more by this process then.
    """
    flush = find_flush(gpu) if settings.is_cold else None
    queue_work = flush or _find_filler(gpu)
    times: list[float] = []
    begun_s = time.monotonic()
    for number in range(settings.warm_ups + settings.repetitions):
        if number and not keeps_inputs:
            placed.fill()
        queue_work()
        time_ns = gpu.time_ns(placed.start, settings.launch_seconds)
        is_last = time.monotonic() - begun_s > settings.seconds
        if number >= settings.warm_ups or is_last:
            times.append(time_ns)
        if is_last:
            break
    facts = gpu.facts
    return LaunchTiming(
        times_ns=tuple(times),
        gpu=facts.name,
        compute_capability=facts.compute_capability,
        sm_count=gpu.read_attribute("multiprocessor_count"),
        is_cold=flush is not None,
    )


def find_flush(gpu: LocalGpu) -> Callable[[], None] | None:
    """Function that overwrites L2; None if its size is unknown."""
    l2_bytes = gpu.read_attribute("l2_cache_size")
    if not l2_bytes:
        return None
    size = _FLUSH_TIMES * l2_bytes
    address = gpu.allocate(size)
    return lambda: gpu.clear(address, size)


def _find_filler(gpu: LocalGpu) -> Callable[[], None]:
    """Function that keeps the GPU busy while the launch is queued, so that the host's time does not count."""
    address = gpu.allocate(_FILLER_BYTES)

    def fill() -> None:
        for _ in range(_FILLERS):
            gpu.clear(address, _FILLER_BYTES)

    return fill


class GreetJob(Struct, frozen=True, kw_only=True):
    """Request for the GPU's name."""


class TimingJob(Struct, frozen=True, kw_only=True):
    """A launch to be timed."""

    image: bytes  # what is loaded: a cubin, or PTX that the driver assembles
    ptx: str  # of the same code, which says what the parameters are
    function: str  # mangled name of the kernel
    launch: LaunchDescription  # grid, block and arguments
    settings: TimingSettings  # how it is timed
    memory_bytes: int  # of all arrays


Job = GreetJob | TimingJob


class Greeting(Struct, frozen=True, kw_only=True):
    """The GPU that launches are timed on, or why there is none."""

    name: str = ""  # of the product; empty where there is none
    compute_capability: tuple[int, int] = (0, 0)  # of it
    failure: str = ""  # what the driver refused
    # what is not there: its name, what needs it, how to get it; None for nothing
    missing: tuple[str, str, str] | None = None


class TimingAnswer(Struct, frozen=True, kw_only=True):
    """Result of a job."""

    timing: LaunchTiming | None = None  # None where it failed
    failure: str = ""  # why; a sentence
    is_spent: bool = False  # the process can use its GPU no more


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
