"""Waiting on the event loop for what other tasks do."""

import asyncio
from collections.abc import Callable


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not is_so():
            await asyncio.sleep(0.001)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0.002)
