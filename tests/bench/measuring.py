"""CPU time and memory of whole processes: of one that ended, and of a living one with all its children (Linux)."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One finished process."""

    wall_s: float  # from start to reaping
    cpu_s: float  # user and system time, children included
    peak_bytes: int  # largest resident set of any process in it
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


def list_tree(process_id: int) -> list[int]:
    """The process and its living descendants."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(folder.name)] = int(_read_fields(int(folder.name))[1])
    found = [process_id]
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found


def read_cpu_s(process_id: int) -> float:
    """CPU seconds of a process, its living descendants, and those that have ended and were waited for."""
    ticks = 0
    for one in list_tree(process_id):
        with contextlib.suppress(OSError):
            ticks += sum(int(number) for number in _read_fields(one)[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def read_busy_s(process_id: int) -> float:
    """CPU seconds of a process alone, to the nanosecond: what one answer takes."""
    total_ns = 0
    for task in Path(f"/proc/{process_id}/task").iterdir():
        with contextlib.suppress(OSError):
            total_ns += int((task / "schedstat").read_text().split()[0])
    return total_ns / 1e9


def read_pss_bytes(process_ids: list[int]) -> int:
    """Memory of processes, pages they share counted once."""
    total = 0
    for one in process_ids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
    return total


def _read_fields(process_id: int) -> list[str]:
    """Fields of ``/proc/PID/stat``, from the state on."""
    return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
