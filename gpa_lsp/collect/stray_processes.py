"""The last resort: processes of a run that are left although the watchdog that should have ended them was killed itself."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

RUN_VARIABLE = "GPA_LSP_RUN"
"""Environment variable that every process of a run inherits; its value is the run's own."""

_LIMIT_S = 1.0


def find_strays(run_id: str) -> Iterator[int]:
    """Processes of a run, told by their environment; none where the system has no ``/proc``.

    Args:
        run_id: the value of :data:`RUN_VARIABLE`.
    """
    marker = f"{RUN_VARIABLE}={run_id}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended, or not ours
            if marker in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def kill_strays(run_id: str) -> None:
    """Kill the processes of a run until there are none."""
    until_s = time.monotonic() + _LIMIT_S
    while (found := list(find_strays(run_id))) and time.monotonic() < until_s:
        for process_id in found:
            with contextlib.suppress(OSError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(0.005)
