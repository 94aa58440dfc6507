"""The server's end of the worker process: start it, hear it out, and be rid of it at once when the work is not wanted any more."""

import asyncio
import contextlib
import os
import pickle
import signal
import sys
from collections.abc import AsyncGenerator

from gpa_lsp.errors import ToolError
from gpa_lsp.lsp.worker_messages import FRAME_HEADER, Job, Message, pack

SILENCE_LIMIT_S = 600.0
"""A worker that says nothing for this long is taken to hang."""

_MAX_FRAME_BYTES = 1 << 28


async def analyse_profiles(job: Job) -> AsyncGenerator[Message, None]:
    """Read profiles in a process of its own.

    Closing this generator, or cancelling the task that runs it, kills the process and the tools it started.

    Yields:
        The worker's messages, in order.

    Raises:
        ToolError: the process died, or hangs, before it was done.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # the workspace must not be able to put modules of its own in our way
        "-m",
        "gpa_lsp.lsp.worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        await _send_job(process, job)
        while (message := await _read_message(process)) is not None:
            yield message
        status = await process.wait()
        if status != 0:
            raise ToolError("analysis process", f"ended with status {status} before it was done")
    finally:
        await _end(process)


async def _send_job(process: asyncio.subprocess.Process, job: Job) -> None:
    assert process.stdin is not None
    process.stdin.write(pack(job))
    await process.stdin.drain()  # stdin stays open: its end tells the worker that we are gone


async def _read_message(process: asyncio.subprocess.Process) -> Message | None:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(SILENCE_LIMIT_S):
            header = await process.stdout.readexactly(FRAME_HEADER.size)
            (length,) = FRAME_HEADER.unpack(header)
            if length > _MAX_FRAME_BYTES:
                raise ToolError("analysis process", f"sent a message of {length} bytes")
            body = await process.stdout.readexactly(length)
    except asyncio.IncompleteReadError:
        return None
    except TimeoutError:
        raise ToolError("analysis process", f"was silent for {SILENCE_LIMIT_S:.0f} s and was ended") from None
    message: Message = pickle.loads(body)
    return message


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        if os.name == "posix":
            _kill_group(process.pid)
        else:
            process.kill()
    await process.wait()


def _kill_group(process_id: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may end by itself in this moment
        os.killpg(process_id, signal.SIGKILL)
