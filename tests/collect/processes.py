"""Processes as the kernel sees them: what a test leaves running, told by an environment variable that all of a test's processes inherit."""

import contextlib
import re
import signal
from pathlib import Path

from tests.patience import wait_until

MARK = "GPA_LSP_TEST_MARK"


def find_marked(mark: str) -> dict[int, str]:
    """Living processes that inherited a mark → their command lines."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def wait_until_gone(mark: str) -> None:
    """Wait until no process with a mark is left."""
    wait_until(lambda: not find_marked(mark), lambda: find_marked(mark))


def find_children(process_id: int) -> set[int]:
    """All living descendants of a process."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents[int(folder.name)] = int(fields[1])
    found = {process_id}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process_id}


def is_alive(process_id: int) -> bool:
    """Whether a process runs, or may run again."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def measure_peak_bytes(process_id: int) -> int:
    """The most memory a process has had; 0 when it is gone."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process_id}/status").read_text())
        return 1024 * int(found[1]) if found else 0
    return 0


def wait_for_file(path: Path) -> None:
    """Wait until a process has got so far that it wrote a file."""
    wait_until(path.exists, path)


def hear_interrupts() -> None:
    """Shells start what runs in the background with interrupts ignored, and programs inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
