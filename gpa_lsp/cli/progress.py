"""A progress bar on standard error."""

import time
from types import TracebackType
from typing import TYPE_CHECKING

from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.visible_text import make_visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE_S = 0.4  # Work done before this shows no bar: it would only flicker, and drawing one costs an import


class ProgressBar:
    """Shows ``(what, done, total)`` reports as a bar that disappears at the end; silent where standard error is no terminal.

    Args:
        terminal: where to draw.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._is_wanted = terminal.shows_progress
        self._start_s = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Update the bar."""
        if not self._is_wanted or (self._bar is None and time.monotonic() - self._start_s < _PATIENCE_S):
            return
        if self._bar is None:
            self._start_bar()
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(self._task, description=make_visible(what), completed=done, total=total or None)

    def _start_bar(self) -> None:
        from rich.console import Console  # only when there is a bar to draw
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(file=self._terminal.err, no_color=not self._terminal.has_colour or None)
        text = TextColumn("{task.description}", markup=False)
        self._bar = Progress(text, BarColumn(), TimeElapsedColumn(), console=console, transient=True)
        self._task = self._bar.add_task("working", total=None)
        self._bar.start()
