"""Waiting for what must come, with an end for tests that fail.

No test says how long something takes: it waits for the event itself. The one limit below is only there so that a broken test ends; it is far beyond
what a busy machine needs. ``GPA_LSP_TEST_PATIENCE=5`` makes it five times as long for a very slow machine, ``0.05`` a twentieth for whoever breaks
things on purpose. What must be ended rather than waited for sleeps for an hour.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

PATIENCE = float(os.environ.get("GPA_LSP_TEST_PATIENCE", "1"))
LIMIT_S = 600.0 * PATIENCE
CPU_LIMIT_S = 20.0 * PATIENCE

# What servers that tests start keep to instead of the limits for users: they look often, and have the time that a busy machine needs.
_LIMITS = {
    "poll_seconds": 0.1,
    "debounce_s": 0.05,
    "emulation_s": LIMIT_S,
    "simulation_s": LIMIT_S,
    "exploration_s": 0,
}

_Found = TypeVar("_Found")


def set_limits(**changed: float) -> dict[str, str]:
    """The environment of a server with other limits than tests usually give it."""
    return {"GPA_LSP_LIMITS": json.dumps({**_LIMITS, **changed})}


@contextmanager
def in_bounded_time() -> Iterator[None]:
    """Bound the CPU time: work that grows with its input takes a small part of the limit, quadratic work many times as much."""
    begin_s = time.process_time()
    try:
        yield
    finally:
        assert time.process_time() - begin_s < CPU_LIMIT_S


def wait_until(is_so: Callable[[], _Found], what: object = "", *, pause_s: float = 0.01) -> _Found:
    """The first true answer.

    Args:
        is_so: asked again and again.
        what: it is about, for the message when it never comes; a function is called then.
        pause_s: between two questions.
    """
    end_s = time.monotonic() + LIMIT_S
    while not (found := is_so()):
        assert time.monotonic() < end_s, f"it never came: {what() if callable(what) else what or is_so}"
        time.sleep(pause_s)
    return found


async def wait_until_so(is_so: Callable[[], _Found], what: object = "", *, pause_s: float = 0.002) -> _Found:
    """The same on an event loop, for what its other tasks do."""
    end_s = time.monotonic() + LIMIT_S
    while not (found := is_so()):
        assert time.monotonic() < end_s, f"it never came: {what() if callable(what) else what or is_so}"
        await asyncio.sleep(pause_s)
    return found
