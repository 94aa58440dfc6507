"""The server's end of a process that stays: started when it is needed, kept warm, and killed with everything it started when a job must end.

Which process it is, its module says: one compiles sources, another one emulates them.
"""

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import TypeVar

from gpa_lsp.errors import ToolError
from gpa_lsp.lsp.worker_messages import FRAME_HEADER, Step, pack

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_IDLE_S = 600.0
"""Without a job for so long its memory goes back to the system."""

_MAX_FRAME_BYTES = 1 << 26


class StayingProcess:
    """One process, one job at a time.

    Args:
        module: is run; see :mod:`gpa_lsp.lsp.staying_worker`.
        title: for people.
    """

    def __init__(self, module: str, title: str) -> None:
        self._module = module
        self._title = title
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def do(self, job: object, *, limit_s: float, tell: Callable[[Step], None] | None = None) -> object:
        """The result of a job. Cancelling the task that waits for it kills the process; the next job starts another.

        Args:
            job: can be pickled.
            limit_s: the process is ended after this time.
            tell: told how far it is.

        Raises:
            ToolError: the process died, or hangs.
        """
        async with self._turn:
            self._stop_waiting()
            try:
                async with asyncio.timeout(limit_s):
                    return await self._exchange(job, tell)
            except TimeoutError:
                await self._kill()
                raise ToolError(self._title, f"did not answer within {limit_s:.0f} s and was ended") from None
            except (OSError, EOFError, pickle.PickleError) as error:
                await self._kill()
                raise ToolError(self._title, f"ended before it was done ({type(error).__name__})") from None
            except BaseException:
                # Whatever comes late on the pipe would be taken for the next job's answer.
                await self._kill()
                raise
            finally:
                self._idle = asyncio.get_running_loop().call_later(_IDLE_S, self._end_idle)

    async def leave(self) -> None:
        """End the process."""
        self._stop_waiting()
        await self._kill()

    async def _exchange(self, job: object, tell: Callable[[Step], None] | None) -> object:
        process = await self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(pack(job))
        await process.stdin.drain()
        while True:
            (length,) = FRAME_HEADER.unpack(await process.stdout.readexactly(FRAME_HEADER.size))
            if length > _MAX_FRAME_BYTES:
                raise ToolError(self._title, f"sent a message of {length} bytes")
            message: object = pickle.loads(await process.stdout.readexactly(length))
            if not isinstance(message, Step):
                return message
            if tell is not None:
                tell(message)

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # the workspace must not be able to put modules of its own in our way
                "-m",
                self._module,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        return self._process

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _end_idle(self) -> None:
        self._idle = None
        if self._process is not None and self._process.stdin is not None and not self._turn.locked():
            self._process.stdin.close()  # its end is the process' end

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it may end by itself in this moment
                if os.name == "posix":
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
        await process.wait()


async def attend(task: "asyncio.Task[_Result]", subject: object) -> _Result | None:
    """The result of work in a process; None when it was given up, or failed, which is logged.

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
