"""Progress bars: what is being done, and for how long. Knows nothing of the protocol."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from gpa_lsp.foundation.numbers import format_count, format_count_of
from gpa_lsp.profile.collect.command_run import find_profiled_kernel
from gpa_lsp.profile.collect.model import Phase

_TICK_S = 1.0
_PHASE_WORDS = {Phase.BUILD: "building", Phase.PROFILE: "profiling"}


class ProgressDisplay(Protocol):
    """A progress bar of the client's."""

    def report(self, text: str, ratio: float | None) -> None:
        """Show what is being done, and how much of all is done (0 to 1; None when unknown)."""
        ...

    def end(self, text: str) -> None:
        """Take the bar away."""
        ...


class WorkProgress:
    """A bar that says what is being done, and counts the seconds.

    Args:
        show: makes the client's bar.
        words: what is being done first.
        after_s: before this time there is no bar: most work takes no time.
    """

    def __init__(self, show: Callable[[], ProgressDisplay], words: str, *, after_s: float = 0.0) -> None:
        self._show_bar = show
        self._display = None if after_s else show()
        self._words = words
        self._ratio: float | None = None
        self._started_s = time.monotonic()
        self._kernel_count = 0
        self._ticking = asyncio.get_running_loop().create_task(self._tick(after_s))

    def tell(self, words: str, ratio: float | None = None) -> None:
        """Tell what is being done from now on, and how much of all is done (0 to 1; None when unknown)."""
        self._words, self._ratio = words, ratio
        self._show()

    def begin(self, phase: Phase) -> None:
        """Another command of a measurement begins."""
        self.tell(_PHASE_WORDS[phase])

    def take_lines(self, lines: Sequence[str]) -> None:
        """Read from what a profiler prints how far it is."""
        kernels = [kernel for line in lines if (kernel := find_profiled_kernel(line)) is not None]
        if kernels:
            self._kernel_count += len(kernels)
            launches = format_count_of(self._kernel_count, "launch")
            self.tell(f"{_PHASE_WORDS[Phase.PROFILE]}, {launches} measured, last {kernels[-1]}")

    def end(self, text: str) -> None:
        """Take the bar away, once."""
        self._ticking.cancel()
        if self._display is not None:
            self._display.end(text)
            self._display = None

    def _show(self) -> None:
        if self._display is not None:
            self._display.report(f"{self._words}, {format_count(time.monotonic() - self._started_s)} s", self._ratio)

    async def _tick(self, after_s: float) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            if self._display is None:
                await asyncio.sleep(after_s)
                self._display = self._show_bar()
                self._show()
            while True:
                await asyncio.sleep(_TICK_S)
                self._show()
