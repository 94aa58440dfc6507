"""The progress bar of one measurement, or recording."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

from gpa_lsp.editor.protocol.loader import ProgressDisplay
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.profile.collect.model import Phase
from gpa_lsp.profile.collect.output_lines import find_profiled_kernel

_TICK_S = 1.0
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
