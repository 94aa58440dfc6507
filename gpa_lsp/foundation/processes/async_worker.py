"""A worker for those who have an event loop: nothing here blocks it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.processes.supervision import Exchange, Worker, WorkerKind, WorkerLostError

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_RETRIES = 1  # a process that is stopped or killed from outside says nothing about its job; two say enough


class AsyncWorker:
    """One process, one job at a time; further ones wait.

    Args:
        kind: which.
    """

    def __init__(self, kind: WorkerKind) -> None:
        self._worker = Worker(kind)
        self._is_free = asyncio.Lock()

    @property
    def process_id(self) -> int | None:
        """The process's number; None where a job would have to wait for one to start."""
        return self._worker.process_id

    async def do(
        self, job: object, *, limit_s: float, tell: Callable[[Any], object] | None = None, is_per_message: bool = False
    ) -> Any:
        """The result of a job, which is tried again once where its process died or hangs.

        Cancelling the task that waits for it kills the process; the next job starts another.

        Args:
            job: can be pickled.
            limit_s: seconds of processor time that the process may take for it.
            tell: told what it says before the result, e.g. how far it is.
            is_per_message: the time begins again whenever it says something. Who puts together what is said tries again for itself.

        Raises:
            ToolError: the process died or hangs, twice, or took too long.
        """
        for _ in range(0 if is_per_message else _RETRIES):
            try:
                return await self._do(job, limit_s=limit_s, tell=tell, is_per_message=is_per_message)
            except WorkerLostError as error:
                logger.warning("%s; its job is tried again", error)
        return await self._do(job, limit_s=limit_s, tell=tell, is_per_message=is_per_message)

    async def _do(
        self, job: object, *, limit_s: float, tell: Callable[[Any], object] | None, is_per_message: bool
    ) -> Any:
        loop = asyncio.get_running_loop()
        async with self._is_free:
            exchange = Exchange(
                self._worker,
                job,
                limit_s=limit_s,
                tell=None if tell is None else lambda message: loop.call_soon_threadsafe(tell, message),
                is_per_message=is_per_message,
            )
            future = asyncio.wrap_future(exchange.future)
            # It is looked at, also where the task is cancelled once more while it waits for the process to go.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            try:
                while not (await asyncio.wait({future}, timeout=exchange.pause_s))[0]:
                    exchange.look()
            finally:
                exchange.give_up()
                await asyncio.wait({future})
            return exchange.find_result()

    async def leave(self) -> None:
        """End the process."""
        await asyncio.to_thread(self._worker.end)


async def attend(task: "asyncio.Task[_Result]", subject: object) -> _Result | None:
    """The result of work in a worker; None when it was given up, or failed, which is logged.

    Args:
        task: the work. It ends with the task that waits here.
        subject: what it is about.
    """
    try:
        return await task
    except asyncio.CancelledError:
        if not task.cancelled():
            task.cancel()
            raise  # it is this loop that ends
        return None
    except (ToolError, OSError) as error:
        logger.warning("%s: %s", subject, error)
        return None
