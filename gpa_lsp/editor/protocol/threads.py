"""Work that blocks, beside the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from gpa_lsp.foundation.processes.python_children import Step

Result = TypeVar("Result")


async def call_in_thread(function: Callable[[], Result]) -> Result:
    """Run something that blocks on the file system, in a daemon thread: a dead network drive must not keep the server from ending, and
    the threads of an executor are waited for at exit.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def deliver(result: Result | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[Result | None, BaseException | None] = (function(), None)
        except BaseException as error:
            outcome = (None, error)
        with contextlib.suppress(RuntimeError):  # the loop has ended; nobody waits any more
            loop.call_soon_threadsafe(deliver, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return await future


_BUILDS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[None]] = WeakKeyDictionary()
_STEP = Step(words="compiling the emulator's core, once on this machine", done=0, total=1)


async def await_core(tell: Callable[[Step], object] | None) -> None:
    """Wait until the core is compiled, or cannot be. Cancelling the wait leaves the build at work, for the next one that waits."""
    loop = asyncio.get_running_loop()
    build = _BUILDS.get(loop)
    if build is None:
        build = _BUILDS[loop] = loop.create_task(call_in_thread(_build))
    if not build.done() and tell is not None:
        tell(_STEP)
    await asyncio.shield(build)


def _build() -> None:
    from gpa_lsp.foundation.native.shared_library import build_core  # only those who emulate need it

    build_core()
