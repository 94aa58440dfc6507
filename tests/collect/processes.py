"""Processes as the kernel sees them: what a test leaves running, told by an environment variable that all of a test's processes inherit."""

import contextlib
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
    """Until none of the processes with a mark is left."""
    wait_until(lambda: not find_marked(mark), lambda: find_marked(mark))


def wait_for_file(path: Path) -> None:
    """Wait until a process has got so far that it wrote a file."""
    wait_until(path.exists, path)


def hear_interrupts() -> None:
    """Shells start what runs in the background with interrupts ignored, and programs inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
