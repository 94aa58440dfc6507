"""A progress bar for work that usually takes no time: :class:`LateProgress`. Knows nothing of the protocol."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

from gpa_lsp.editor.protocol.loader import ProgressDisplay
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.profile.collect.command_run import find_profiled_kernel
from gpa_lsp.profile.collect.model import Phase

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


_PHASE_WORDS = {Phase.BUILD: "building", Phase.PROFILE: "profiling"}


class MeasureProgress:
    """What is being done, and for how long.

    Args:
        display: the client's bar.
    """

    def __init__(self, display: ProgressDisplay) -> None:
        self._display = display
        self._started_s = time.monotonic()
        self._words = "starting"
        self._kernel_count = 0
        self._has_ended = False
        self._ticking = asyncio.get_running_loop().create_task(self._tick())

    def begin(self, phase: Phase) -> None:
        """Another command begins."""
        self.tell(_PHASE_WORDS[phase])

    def tell(self, words: str) -> None:
        """What is being done from now on."""
        self._words = words
        self._show()

    def take_lines(self, lines: Sequence[str]) -> None:
        """Read from what a command prints how far it is."""
        kernels = [kernel for line in lines if (kernel := find_profiled_kernel(line)) is not None]
        if kernels:
            self._kernel_count += len(kernels)
            launches = "1 launch" if self._kernel_count == 1 else f"{self._kernel_count} launches"
            self._words = f"{_PHASE_WORDS[Phase.PROFILE]}, {launches} measured, last {kernels[-1]}"
            self._show()

    def end(self, text: str) -> None:
        """Take the bar away, once."""
        self._ticking.cancel()
        if not self._has_ended:
            self._has_ended = True
            self._display.end(text)

    def _show(self) -> None:
        if not self._has_ended:
            self._display.report(f"{self._words}, {format_count(time.monotonic() - self._started_s)} s", None)

    async def _tick(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(_TICK_S)
                self._show()
