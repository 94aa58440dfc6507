"""The server's end of the process that compiles: started when it is needed, kept warm, and killed with everything it started when a job must end."""

import asyncio
import contextlib
import os
import pickle
import signal
import sys

from gpa_lsp.errors import ToolError
from gpa_lsp.lsp.static_results import StaticJob, StaticResult
from gpa_lsp.lsp.worker_messages import FRAME_HEADER, pack

_IDLE_S = 600.0
"""Without a job for so long its memory goes back to the system."""

_GRACE_S = 30.0
"""What is looked at after the compiler's own limit may take this long."""

_MAX_FRAME_BYTES = 1 << 26
_TOOL = "static analysis process"


class StaticProcess:
    """One process, one job at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def examine(self, job: StaticJob) -> StaticResult:
        """The result of a job. Cancelling the task that waits for it kills the process; the next job starts another.

        Raises:
            ToolError: the process died, or hangs.
        """
        async with self._turn:
            self._stop_waiting()
            try:
                async with asyncio.timeout(job.limit_s + _GRACE_S):
                    return await self._exchange(job)
            except TimeoutError:
                await self._kill()
                raise ToolError(_TOOL, f"did not answer within {job.limit_s + _GRACE_S:.0f} s and was ended") from None
            except (OSError, EOFError, pickle.PickleError) as error:
                await self._kill()
                raise ToolError(_TOOL, f"ended before it was done ({type(error).__name__})") from None
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

    async def _exchange(self, job: StaticJob) -> StaticResult:
        process = await self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(pack(job))
        await process.stdin.drain()
        (length,) = FRAME_HEADER.unpack(await process.stdout.readexactly(FRAME_HEADER.size))
        if length > _MAX_FRAME_BYTES:
            raise ToolError(_TOOL, f"sent a message of {length} bytes")
        result = pickle.loads(await process.stdout.readexactly(length))
        assert isinstance(result, StaticResult)
        return result

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # the workspace must not be able to put modules of its own in our way
                "-m",
                "gpa_lsp.lsp.static_worker",
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
