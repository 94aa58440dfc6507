"""A progress bar for work that usually takes no time: :class:`LateProgress`. Knows nothing of the protocol."""

import asyncio
import contextlib
import time
from collections.abc import Callable

from gpa_lsp.editor.protocol.loader import ProgressDisplay
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.processes.frames import Step

_MOMENT_S = 1.0  # What takes no longer has no progress bar

_TICK_S = 1.0


class LateProgress:
    """A bar that comes only after a second.

    Args:
        start: shows a bar: (title, what cancels the work).
        title: of the bar.
    """

    def __init__(self, start: Callable[[str, Callable[[], None]], ProgressDisplay], title: str) -> None:
        self._start = start
        self._title = title
        self._task = asyncio.current_task()
        self._display: ProgressDisplay | None = None
        self._step = Step(words="compiling", done=0, total=1)
        self._started_s = time.monotonic()
        self._ticking = asyncio.get_running_loop().create_task(self._tick())

    def take(self, step: Step) -> None:
        """Another step begins."""
        self._step = step
        self._show()

    def end(self) -> None:
        """Take the bar away."""
        self._ticking.cancel()
        if self._display is not None:
            self._display.end("done")
            self._display = None

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _show(self) -> None:
        if self._display is not None:
            ratio = self._step.done / self._step.total if self._step.total > 1 else None
            self._display.report(f"{self._step.words}, {format_count(time.monotonic() - self._started_s)} s", ratio)

    async def _tick(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(_MOMENT_S)
            self._display = self._start(self._title, self._cancel)
            while True:
                self._show()
                await asyncio.sleep(_TICK_S)
