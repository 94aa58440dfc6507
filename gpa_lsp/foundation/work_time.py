"""The clock of budgets: processor time of a thread, less what it prepared for the first time on this machine."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


def count_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Thread(threading.local):
    """The part of one thread's time that is left out."""

    seconds = 0.0
    depth = 0  # of preparations, one within the other
    begun = 0.0


_THREAD = _Thread()


def work_time() -> float:
    """Seconds of processor time of this thread, from some moment on, less those within :func:`preparing`.

    Loops that are compiled at their first use take seconds once on a machine: budgets by this clock end work at the same place then as later.
    """
    left_out = _THREAD.seconds if _THREAD.depth == 0 else _THREAD.seconds + time.thread_time() - _THREAD.begun
    return time.thread_time() - left_out


@contextmanager
def preparing() -> Iterator[None]:
    """Leave the work within it out of :func:`work_time`."""
    if _THREAD.depth == 0:
        _THREAD.begun = time.thread_time()
    _THREAD.depth += 1
    try:
        yield
    finally:
        _THREAD.depth -= 1
        if _THREAD.depth == 0:
            _THREAD.seconds += time.thread_time() - _THREAD.begun
