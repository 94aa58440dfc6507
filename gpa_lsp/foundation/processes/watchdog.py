"""The process that watches over one command: ``python -I -S watchdog.py OPTIONS COMMAND…`` on Linux and other Unixes.

It starts the command in a session of its own and ends it, with everything the command started, when the command is done, when its time is
up, or when its own standard input ends; that is how a supervisor cancels a command, and what happens by itself when it dies, whatever it
dies of. On Linux the watchdog is the *subreaper* of the command's processes: those that leave their session or whose parent ends become its
children, so that none can escape, and no child left means that nothing is left.

The command's output goes to the watchdog's standard error, untouched, where the command was given no streams of its own; what happened is said
in one line of JSON on standard output.

A file of its own, without imports from this package: it starts in a third of the time, and nothing in the folder it runs in or in the
environment has a say in what it imports.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

# Between asking (SIGTERM) and killing (SIGKILL): what ssh, srun and docker need to pass the signal on to where the command really runs
GRACE_S = 0.04

# After which processes that cannot be killed (of another user, or stuck in a driver) are left alone and named
KILL_LIMIT_S = 2.0

LOOK_S = 0.25  # Shortest time between two looks at what processors have done

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_IS_LINUX = sys.platform.startswith("linux")
_LIBC = ctypes.CDLL(None, use_errno=True) if _IS_LINUX else None


class Watch:
    """The processes of one command, which itself leads a process group."""

    def __init__(self, process_id: int) -> None:
        self.process_id = process_id
        self.wait_status: int | None = None
        self.has_children = True
        self._untouchable: set[int] = set()

    def reap(self) -> None:
        """Take note of every process that has ended."""
        while self.has_children:
            try:
                ended, wait_status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.has_children = False
                return
            if ended == 0:
                return
            if ended == self.process_id:
                self.wait_status = wait_status

    def end_all(self, wakeup: int) -> list[int]:
        """End what still runs, politely and then not."""
        if self.has_children:
            self._signal_all(signal.SIGTERM)
        polite_until = time.monotonic() + GRACE_S
        while self.has_children and (left_s := polite_until - time.monotonic()) > 0:
            wait_for([wakeup], left_s)
            self.reap()
        kill_until = time.monotonic() + KILL_LIMIT_S
        while self.has_children and time.monotonic() < kill_until:
            found = self._signal_all(signal.SIGKILL)
            if found and self._untouchable.issuperset(found):
                break
            wait_for([wakeup], 0.005)
            self.reap()
        return find_descendants(os.getpid()) if self.has_children else []

    def _signal_all(self, number: int) -> list[int]:
        found = find_descendants(os.getpid())
        if not _IS_LINUX:
            with contextlib.suppress(OSError):
                os.killpg(self.process_id, number)  # also reaches those whose parents are gone
        for process_id in found:
            try:
                os.kill(process_id, number)
            except ProcessLookupError:
                continue
            except PermissionError:
                self._untouchable.add(process_id)
        return found


def find_descendants(process_id: int) -> list[int]:
    """Children, their children, and so on; processes that come and go meanwhile may be missing."""
    has_lists = os.access(f"/proc/self/task/{os.getpid()}/children", os.R_OK)
    find_children = _read_children if has_lists else _list_children()
    found: list[int] = []
    pending = [process_id]
    while pending:
        children = find_children(pending.pop())
        found += children
        pending += children
    return found


def _read_children(process_id: int) -> list[int]:
    """The children by the kernel's own lists, which cost the same however many other processes there are."""
    children: list[int] = []
    with contextlib.suppress(OSError):  # it may end while we read
        for thread in os.scandir(f"/proc/{process_id}/task"):
            children += map(int, _read_file(f"{thread.path}/children").split())
    return children


def _list_children() -> Callable[[int], list[int]]:
    """The children by a list of all processes, for systems without the kernel's lists."""
    command = ["/bin/ps", "-A", "-o", "pid=,ppid="]
    children: dict[int, list[int]] = {}
    listing = b""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        listing = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=1).stdout
    for line in listing.splitlines():
        words = line.split()
        if len(words) == 2:
            children.setdefault(int(words[1]), []).append(int(words[0]))
    return lambda process_id: children.get(process_id, [])


def _read_file(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(descriptor, 65_536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def wait_for(descriptors: list[int], timeout_s: float | None) -> list[int]:
    """The descriptors that can be read from within a time; what the signal handlers wrote is taken away."""
    ready = select.select(descriptors, [], [], timeout_s)[0]
    for descriptor in ready:
        if descriptor != 0:
            os.read(descriptor, 4096)
    return ready


def main(arguments: list[str]) -> int:
    """Watch over one command.

    Args:
        arguments: options as :func:`gpa_lsp.foundation.processes.watched_command.isolate_watchdog` writes them, the command.
    """
    options, command = json.loads(arguments[0]), arguments[1:]
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wakeup, asked_to_end = _listen_for_signals()
    if wait_for([0], 0):
        _conclude(options, {"ending": "cancelled", "status": None, "duration_s": 0.0, "processor_s": 0.0, "left": []})
        return 0  # before it began
    started_s = time.monotonic()
    given = options["streams"]
    try:
        process = subprocess.Popen(
            command,
            cwd=options["folder"],
            stdin=subprocess.DEVNULL if given is None else given[0],
            stdout=2 if given is None else given[1],
            stderr=2 if given is None else given[2],
            start_new_session=True,
            preexec_fn=lambda: _limit_command(options),  # noqa: PLW1509 - there is one thread
        )
    except (OSError, ValueError) as error:
        number = (error.errno if isinstance(error, OSError) else None) or errno.ENOEXEC
        _say({"not_started": number, "words": _describe(error, command[0])})
        return 0
    watch = Watch(process.pid)
    ending = _wait_for_end(watch, wakeup, asked_to_end, started_s, options)
    duration_s, processor_s = time.monotonic() - started_s, measure_processor_time()
    left = watch.end_all(wakeup)
    process.returncode = 0  # its status was taken here; it must not look for it
    status = None if watch.wait_status is None else os.waitstatus_to_exitcode(watch.wait_status)
    spent = {"duration_s": duration_s, "processor_s": processor_s}
    _conclude(options, {"ending": ending, "status": status, **spent, "left": left})
    return 0


def _listen_for_signals() -> tuple[int, list[int]]:
    """A descriptor that becomes readable with each signal, and the list that signals asking us to end are put in."""
    read_end, write_end = os.pipe()
    for descriptor in (read_end, write_end):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    asked: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in _ENDING_SIGNALS:
        signal.signal(number, lambda number, frame: asked.append(number))
    return read_end, asked


def _wait_for_end(
    watch: Watch, wakeup: int, asked_to_end: list[int], started_s: float, options: "dict[str, float]"
) -> str:
    cores = os.cpu_count() or 1
    while True:
        watch.reap()
        if watch.wait_status is not None:
            return "ended"
        left_s = started_s + options["clock_s"] - time.monotonic()
        # Several processes use no more than all cores at once, so there is no need to look sooner.
        unused_s = options["processor_s"] - (measure_processor_time() or 0.0)
        if left_s <= 0 or unused_s <= 0:
            return "timed out"
        if 0 in wait_for([0, wakeup], min(left_s, max(LOOK_S, unused_s / cores), 3600.0)) or asked_to_end:
            return "cancelled"


def measure_processor_time() -> float | None:
    """Seconds that processors worked on the command and all it started, ended or not; None where the system does not say."""
    if not _IS_LINUX:
        return None
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for process_id in find_descendants(os.getpid()):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may end while we read
            # user and system time, its own and of its ended children, behind a name that may hold anything
            words = _read_file(f"/proc/{process_id}/stat").rpartition(b")")[2].split()
            ticks += sum(map(int, words[11:15]))
    return ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def _limit_command(options: dict[str, int]) -> None:
    """Runs in the command's process before the command does: should the watchdog be killed, the kernel kills the command."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    limits = {resource.RLIMIT_AS: options["memory_bytes"], resource.RLIMIT_FSIZE: options["file_bytes"]}
    for kind, most in {**limits, resource.RLIMIT_CORE: 0}.items() if any(limits.values()) else ():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))


def _describe(error: OSError | ValueError, program: str) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or program}: {error.strerror}"
    return f"{program}: {error}"


def _conclude(options: dict[str, object], event: dict[str, object]) -> None:
    if event["ending"] == "cancelled" and options["temporary"]:
        # The supervisor may be dead; then nothing else removes it.
        shutil.rmtree(str(options["temporary"]), ignore_errors=True)
    _say(event)


def _say(event: dict[str, object]) -> None:
    with contextlib.suppress(OSError):  # the listener may be gone
        os.write(1, json.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    os._exit(
        main(sys.argv[1:])
    )  # nothing is buffered, and an interpreter that cleans up takes as long as ending the command did
