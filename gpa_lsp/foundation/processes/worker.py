"""A Python process of ours that does one job after the other: ``python -P -m gpa_lsp.foundation.processes.worker MODULE NICENESS MEMORY_BYTES
IDLE_S``.

What it does, the module says: it has a :class:`Work` named ``WORK``. Jobs come in on stdin; on stdout each is answered by one
:class:`~gpa_lsp.foundation.processes.python_children.Answer`, and perhaps by other messages before it. The process stays because a job must not
wait for Python to start and libraries to load, and goes when it has had no job for a while.

A thread of its own reads stdin: it ends the process with everything it started when the supervisor closes stdin, also by dying of anything. That
works on every platform. A job is cancelled by killing the process.
"""

import contextlib
import gc
import importlib
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct

from gpa_lsp.foundation.processes.python_children import Answer, Beat, Job, pack, read_message

Tell = Callable[[Any], int]  # Sends a message before the result, e.g. how far a job is; how many bytes it has.

# New objects between two searches for unreachable cycles: what a job makes mostly stays until its end, and was looked at again and again
_GARBAGE_THRESHOLD = 200_000

_PAUSE_S = 0.25  # Without a job for so long a process rests


class Work(Struct, frozen=True, kw_only=True):
    """The work of a worker."""

    do: Callable[[Any, Tell], object]  # the result of a job; may tell other messages before
    prepare: Callable[[], object] = lambda: None  # imports what the first job needs, while it is not waited for
    # the result of a job that failed, from the reason, a sentence without its subject; None where the caller gets an error
    explain: Callable[[Any, str], object] | None = None
    # lets go of what is kept from one job to the next; called when none has come for a moment
    rest: Callable[[], object] = lambda: None


def serve(module: str, *, niceness: int, memory_bytes: int, idle_s: float) -> NoReturn:
    """Answer jobs until stdin ends, or none has come for a while.

    Args:
        module: has the ``WORK``; the supervisor names it, so that this module knows no work.
    """
    wire = _Wire(os.dup(1))
    os.dup2(2, 1)  # whatever prints by mistake goes to the log, not between the results
    jobs: queue.SimpleQueue[tuple[bytes, threading.Event]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, wire), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(niceness)
    if memory_bytes:
        _limit_memory(memory_bytes)
    gc.set_threshold(_GARBAGE_THRESHOLD)
    work: Work = importlib.import_module(module).WORK
    work.prepare()
    content, is_done = jobs.get()
    while True:
        answer = _do_job(content, work, wire.send)
        is_done.set()
        wire.send(answer)
        del answer
        try:
            content, is_done = jobs.get(timeout=_PAUSE_S)
            continue
        except queue.Empty:
            work.rest()
        try:
            content, is_done = jobs.get(timeout=idle_s)
        except queue.Empty:
            os._exit(0)


class _Wire:
    """Sends messages of any thread, one after the other."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "wb")
        self._lock = threading.Lock()

    def send(self, message: object) -> int:
        frame = pack(message)
        try:
            with self._lock:
                self._stream.write(frame)
                self._stream.flush()
        except OSError:  # the listener is gone
            _end_with_group()
        return len(frame)


def _do_job(content: bytes, work: Work, tell: Tell) -> Answer:
    job = None
    try:
        job = pickle.loads(content)
        return Answer(result=work.do(job, tell), own_bytes=read_own_bytes())
    except MemoryError:
        reason = "there is not enough memory to read it"
    except Exception as error:  # a bug of ours in one job must not end the others' answers
        sys.excepthook(*sys.exc_info())
        reason = f"internal error ({type(error).__name__}: {error}); please report it"
    if job is None or work.explain is None:
        return Answer(failure=reason, own_bytes=read_own_bytes())
    return Answer(result=work.explain(job, reason), own_bytes=read_own_bytes())


def _receive(jobs: "queue.SimpleQueue[tuple[bytes, threading.Event]]", wire: _Wire) -> None:
    """Read jobs from the descriptor itself: a buffered stdin would be locked when the interpreter ends."""
    while True:
        try:
            job = read_message(lambda count: os.read(0, count))
        except (EOFError, OSError):
            _end_with_group()
        assert isinstance(job, Job)
        is_done = threading.Event()
        threading.Thread(target=_beat, args=(is_done, job.beat_s, wire), daemon=True).start()
        jobs.put((job.content, is_done))


def _beat(is_done: threading.Event, beat_s: float, wire: _Wire) -> None:
    while not is_done.wait(beat_s):
        wire.send(Beat())


def _end_with_group() -> NoReturn:
    """End this process and the tools it started."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # nvdisasm is in our group
    os._exit(1)


def _limit_memory(limit_bytes: int) -> None:
    """Limit the address space, where the system can; elsewhere its readers alone bound what is read."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read_own_bytes() -> int:
    """Memory this process holds and shares with no other; where the system does not say, the most it ever held, or 0."""
    with contextlib.suppress(OSError, ValueError):
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(ImportError):
        import resource  # not on Windows

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return 0


if __name__ == "__main__":
    serve(sys.argv[1], niceness=int(sys.argv[2]), memory_bytes=int(sys.argv[3]), idle_s=float(sys.argv[4]))
