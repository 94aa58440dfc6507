"""Time and memory of a whole process, and medians of several runs."""

import json
import os
import statistics
import subprocess
import sys
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


# Linux counts what the forking process held into a child's peak memory, so a small process starts the measured one.
_LAUNCHER = """
import json, os, sys, time
begin = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
    (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
    (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
])
_, status, usage = os.wait4(child, 0)
print(json.dumps({
    "wall_s": time.perf_counter() - begin, "cpu_s": usage.ru_utime + usage.ru_stime,
    "peak_bytes": usage.ru_maxrss * 1024, "exit_code": os.waitstatus_to_exitcode(status),
}))
"""


def run_once(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Run a command, named by its full path, with its output thrown away."""
    finished = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command],
        env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return Run(**json.loads(finished.stdout))


def run_several(command: Sequence[str], times: int, prepare: Callable[[], Mapping[str, str]]) -> Run:
    """The medians of several runs; ``prepare`` gives each run its environment."""
    runs = [run_once(command, prepare()) for _ in range(times)]
    return Run(
        wall_s=statistics.median(run.wall_s for run in runs),
        cpu_s=statistics.median(run.cpu_s for run in runs),
        peak_bytes=max(run.peak_bytes for run in runs),
        exit_code=max(run.exit_code for run in runs),
    )
