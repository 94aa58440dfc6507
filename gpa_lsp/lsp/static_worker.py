"""The process that compiles sources for the server and looks at their code: ``python -P -m gpa_lsp.lsp.static_worker``.

Unlike the process that reads profiles it stays: a job must not wait for Python to start and numpy to load. Jobs come in on stdin one after the
other, each answered by one result on stdout, both pickled with their length in front. A job is cancelled by killing the process with everything it
started; it ends when the server closes its stdin, also by dying.
"""

import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from typing import NoReturn

from gpa_lsp.lsp.static_results import StaticJob, StaticResult
from gpa_lsp.lsp.worker_messages import FRAME_HEADER, pack


def main(arguments: Sequence[str] = ()) -> int:
    """Answer jobs until stdin ends."""
    del arguments
    from gpa_lsp.lsp.worker import end_with_group, limit_memory

    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints by mistake goes to the log, not between the results
    jobs: queue.SimpleQueue[StaticJob] = queue.SimpleQueue()
    # Stdin is read beside the work, so that the server's end is seen while a compiler runs.
    threading.Thread(target=lambda: _receive(jobs, end_with_group), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(5)  # typing comes first
    limit_memory()
    from gpa_lsp.lsp.static_work import do_job, warm_up

    warm_up()
    while True:
        wire.write(pack(_answer(jobs.get(), do_job)))
        wire.flush()


def _answer(job: StaticJob, do: Callable[[StaticJob], StaticResult]) -> StaticResult:
    try:
        return do(job)
    except MemoryError:
        return StaticResult(
            path=job.path, text=job.text, failure=f"{job.path}: there is not enough memory to look at it"
        )
    except Exception as error:  # a bug of ours in one source must not end the others' answers
        sys.excepthook(*sys.exc_info())
        reason = f"{job.path}: internal error ({type(error).__name__}: {error}); please report it"
        return StaticResult(path=job.path, text=job.text, failure=reason)


def _receive(jobs: "queue.SimpleQueue[StaticJob]", end: Callable[[], NoReturn]) -> None:
    while True:
        head = _read(FRAME_HEADER.size)
        body = None if head is None else _read(FRAME_HEADER.unpack(head)[0])
        if body is None:
            end()
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


if __name__ == "__main__":
    raise SystemExit(main())
