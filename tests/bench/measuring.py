"""Time and memory of a whole process, and medians of several runs."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One finished process.

    Attributes:
        wall_s: from start to reaping.
        cpu_s: user and system time, children included.
        peak_bytes: largest resident set of any process in it.
        exit_code: as reaped.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int
    exit_code: int


def run_once(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Run a command with its output thrown away."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(
        wall_s=time.perf_counter() - begin,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * 1024,
        exit_code=process.returncode,
    )


def run_several(command: Sequence[str], times: int, prepare: Callable[[], Mapping[str, str]]) -> Run:
    """The medians of several runs; ``prepare`` gives each run its environment."""
    runs = [run_once(command, prepare()) for _ in range(times)]
    return Run(
        wall_s=statistics.median(run.wall_s for run in runs),
        cpu_s=statistics.median(run.cpu_s for run in runs),
        peak_bytes=max(run.peak_bytes for run in runs),
        exit_code=max(run.exit_code for run in runs),
    )
