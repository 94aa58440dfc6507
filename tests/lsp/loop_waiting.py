"""Waiting on the event loop for what other tasks do, and for the moment when nothing is left to do."""

import asyncio
import threading
from typing import Any

from tests.patience import wait_until_so as wait_until

__all__ = ["settle", "wait_until"]

SOON_S = 0.3
"""Timers that run out sooner are pauses of what is tested, which tests make short; later ones are its limits."""


MOST_TURNS = 200
"""Of the loop, a millisecond each at least: what looks around again and again is never quiet, and has had its chance by then."""


async def settle() -> None:
    """Wait until nothing goes on by itself any more: no task is ready to run, no short timer runs, and no thread works for the loop."""
    loop: Any = asyncio.get_running_loop()
    quiet = 0
    for _ in range(MOST_TURNS):
        await asyncio.sleep(0.001)
        soon = [timer for timer in loop._scheduled if not timer.cancelled() and timer.when() < loop.time() + SOON_S]
        is_helped = any(thread.name.endswith("(run)") for thread in threading.enumerate())
        quiet = 0 if loop._ready or soon or is_helped else quiet + 1
        if quiet == 3:
            return
