"""What the processes that stay have in common: jobs come in, each is answered by one result.

Unlike the process that reads profiles they stay: a job must not wait for Python to start and numpy to load. Jobs come in on stdin one after the
other, each answered by one result on stdout, and perhaps by :class:`~gpa_lsp.lsp.worker_messages.Step` before it, all pickled with their length in
front. A job is cancelled by killing the process with everything it started; it ends when the server closes its stdin, also by dying.
"""

import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from gpa_lsp.lsp.worker import end_with_group, limit_memory
from gpa_lsp.lsp.worker_messages import FRAME_HEADER, Step, pack

Tell = Callable[[Step], None]
Do = Callable[[Any, Tell], object]
"""Does a job, telling how far it is."""

Explain = Callable[[Any, str], object]
"""The result of a job that failed for a reason, a sentence without its subject."""


def serve_jobs(prepare: Callable[[], Do], explain: Explain, *, niceness: int = 5) -> NoReturn:
    """Answer jobs until stdin ends.

    Args:
        prepare: imports what jobs need, and gives what does them.
        explain: makes a result of a failure.
        niceness: how much others come first.
    """
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints by mistake goes to the log, not between the results
    jobs: queue.SimpleQueue[object] = queue.SimpleQueue()
    # Stdin is read beside the work, so that the server's end is seen while a compiler runs.
    threading.Thread(target=lambda: _receive(jobs), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(niceness)  # typing comes first
    limit_memory()

    def send(message: object) -> None:
        wire.write(pack(message))
        wire.flush()

    do = prepare()
    while True:
        send(_answer(jobs.get(), do, explain, send))


def _answer(job: object, do: Do, explain: Explain, tell: Tell) -> object:
    try:
        return do(job, tell)
    except MemoryError:
        return explain(job, "there is not enough memory to look at it")
    except Exception as error:  # a bug of ours in one source must not end the others' answers
        sys.excepthook(*sys.exc_info())
        return explain(job, f"internal error ({type(error).__name__}: {error}); please report it")


def _receive(jobs: "queue.SimpleQueue[object]") -> None:
    while True:
        head = _read(FRAME_HEADER.size)
        body = None if head is None else _read(FRAME_HEADER.unpack(head)[0])
        if body is None:
            end_with_group()
        jobs.put(pickle.loads(body))


def _read(count: int) -> bytes | None:
    """From the descriptor itself; None at its end."""
    parts = bytearray()
    while len(parts) < count:
        try:
            part = os.read(0, count - len(parts))
        except OSError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
