"""CPU time and memory of a process with all its children, on Linux."""

import contextlib
import os
from pathlib import Path


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
    """Of ``/proc/PID/stat``, from the state on."""
    return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
