"""Processes as the kernel sees them: what a test leaves running, told by an environment variable that all of a test's processes inherit."""

import contextlib
import time
from pathlib import Path

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


def wait_until_gone(mark: str, timeout_s: float = 10.0) -> dict[int, str]:
    """What is left when there should be nothing any more; the limit is only there for tests that fail."""
    until_s = time.monotonic() + timeout_s
    while (found := find_marked(mark)) and time.monotonic() < until_s:
        time.sleep(0.01)
    return found


def wait_for_file(path: Path, timeout_s: float = 20.0) -> None:
    """Wait until a process has got so far that it wrote a file."""
    until_s = time.monotonic() + timeout_s
    while not path.exists():
        assert time.monotonic() < until_s, f"{path} was never written"
        time.sleep(0.005)
