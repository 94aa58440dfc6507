"""The emulator's core, compiled before the jobs that need it: work that all of them share, and that no save may end."""

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

from gpa_lsp.editor.protocol.threads import call_in_thread
from gpa_lsp.foundation.processes.frames import Step

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
