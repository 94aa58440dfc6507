"""Workers of one kind, as many as there are jobs at a time, for those who may block."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, Generic, TypeVar

from gpa_lsp.foundation.processes.supervision import Worker, WorkerKind
from gpa_lsp.foundation.processes.worker import Tell, Work

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

_NO_LIMIT_S = 1e9
_CALL = "gpa_lsp.foundation.processes.worker_pool"


class WorkerPool:
    """Starts workers as they are needed, and lends each to one job at a time. Any thread may ask.

    Args:
        kind: of the workers.
        most_idle: kept for further jobs.
    """

    def __init__(self, kind: WorkerKind, *, most_idle: int) -> None:
        self._kind = kind
        self._most_idle = most_idle
        self._lock = threading.Lock()
        self._idle: list[Worker] = []

    def do(self, job: object, *, limit_s: float, is_cancelled: Callable[[], bool] | None = None, work: str = "") -> Any:
        """The result of a job; see :meth:`gpa_lsp.foundation.processes.supervision.Worker.do`."""
        with self._lock:
            worker = self._idle.pop() if self._idle else Worker(self._kind)
        try:
            return worker.do(job, limit_s=limit_s, is_cancelled=is_cancelled, work=work)
        finally:
            with self._lock:
                is_kept = len(self._idle) < self._most_idle
                if is_kept:
                    self._idle.append(worker)
            if not is_kept:
                worker.end()

    def close(self) -> None:
        """End the workers that wait; others end with their job."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def forget(self) -> None:
        """Workers of the parent are not this process' own, after a fork."""
        self._lock = threading.Lock()
        self._idle = []


class PartWorkers(Generic[_Part, _Result]):
    """Processes of this machine that apply a function to the parts of a work. They start at once, before the first part is known.

    To be used in a ``with`` statement, at whose end they are ended.

    Args:
        function: it and what it holds can be pickled.
        count: how many processes at most.
        title: of one of them, for people.
        prepare: called in each before its first part, to load what that needs; it can be pickled, too.
    """

    def __init__(
        self,
        function: Callable[[_Part], _Result],
        *,
        count: int,
        title: str,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._function = function
        self._is_over = threading.Event()
        self._pool = WorkerPool(WorkerKind(module=_CALL, title=title, niceness=0, memory_bytes=0), most_idle=count)
        self._threads = ThreadPoolExecutor(count)
        for _ in range(count if prepare is not None else 0):
            self._threads.submit(self._do, _prepare, prepare)

    def run(self, parts: Sequence[_Part]) -> Iterator[_Result]:
        """The results as they are known, in any order.

        Args:
            parts: each can be pickled.

        Raises:
            ToolError: a process died.
        """
        futures: list[Future[_Result]] = [self._threads.submit(self._do, self._function, part) for part in parts]
        for future in as_completed(futures):
            yield future.result()

    def _do(self, function: Callable[[Any], Any], part: object) -> Any:
        return self._pool.do((function, part), limit_s=_NO_LIMIT_S, is_cancelled=self._is_over.is_set)

    def __enter__(self) -> "PartWorkers[_Part, _Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()  # what was begun is wanted no more, and may take long
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._pool.close()


def run_parts(
    function: Callable[[_Part], _Result], parts: Sequence[_Part], *, count: int, title: str
) -> Iterator[_Result]:
    """Apply a function to the parts of a work, at least one, in processes of this machine; see :class:`PartWorkers`.

    Whoever stops listening ends the processes.
    """
    with PartWorkers(function, count=min(count, len(parts)), title=title) as workers:
        yield from workers.run(parts)


def _prepare(prepare: Callable[[], object]) -> None:
    prepare()


def _call(job: tuple[Callable[[Any], object], object], tell: Tell) -> object:
    function, part = job
    return function(part)


WORK = Work(do=_call)  # Calls what comes with each job
