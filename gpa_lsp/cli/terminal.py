"""Output streams: colour, width and encoding (:class:`Terminal`); and a bar for what takes long (:class:`ProgressBar`)."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from gpa_lsp.document.layout import Line, Style, read_plain
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.visible_text import make_lines_visible, make_visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from gpa_lsp.document.blocks import Block

_RICH_STYLES = {
    Style.TITLE: "bold",
    Style.HEADING: "bold underline",
    Style.DIM: "dim",
    Style.PATH: "cyan",
    Style.BAR: "yellow",
    Style.HOT: "bold red",
    Style.WARM: "yellow",
    Style.ERROR: "bold red",
    Style.WARNING: "bold yellow",
    Style.NOTE: "blue",
}

# For terminals that know no more
_ASCII = str.maketrans(
    {
        "█": "#",
        "▉": "#",
        "▊": "#",
        "▋": "#",
        "▌": "=",
        "▍": "=",
        "▎": "-",
        "▏": "-",
        "│": "|",
        "·": "*",
        "×": "x",
        "±": "+-",
        "µ": "u",
        "–": "-",
        "−": "-",
        "…": "...",
        "→": "->",
    }
)

_PROBE = "█▏│·×±µ–−…→"


class Terminal:
    """Standard output and error of one command.

    Args:
        out: standard output; None when the process was started without one, and what is printed is lost.
        err: standard error; None as for ``out``.
        colour: ``auto``, ``always`` or ``never``.
    """

    def __init__(self, out: TextIO | None, err: TextIO | None, colour: str = "auto") -> None:
        self.out = out if out is not None else _open_nowhere()
        self.err = err if err is not None else _open_nowhere()
        self.colour = colour
        for stream in (self.out, self.err):
            if hasattr(stream, "reconfigure"):  # a path may hold what the encoding lacks; better escaped than a crash
                stream.reconfigure(errors="backslashreplace")

    @cached_property
    def is_interactive(self) -> bool:
        """Whether standard output is a terminal."""
        return _is_terminal(self.out)

    @cached_property
    def shows_progress(self) -> bool:
        """Whether standard error is a terminal that can redraw a line."""
        return _is_terminal(self.err) and os.environ.get("TERM") != "dumb"

    @cached_property
    def has_colour(self) -> bool:
        """Whether output is coloured: as asked for, else on a terminal unless ``NO_COLOR`` is set or the terminal cannot."""
        if self.colour != "auto":
            return self.colour == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return self.is_interactive and os.environ.get("TERM") != "dumb"

    @cached_property
    def width(self) -> int | None:
        """Characters per line: of the screen, or of ``COLUMNS``; None (no limit) when output goes elsewhere."""
        if self.is_interactive or os.environ.get("COLUMNS", "").isdigit():
            return max(20, shutil.get_terminal_size((100, 24)).columns)
        return None

    def print_safely(self, write: Callable[[], None]) -> None:
        """Print, and stop quietly when the reader closes the pipe (``| head``).

        Raises:
            InputError: standard output cannot be written, as on a full disk.
        """
        try:
            write()
            self.out.flush()
        except OSError as error:
            if error.filename is not None:
                raise  # of a file that was read on the way
            # What is still buffered has nowhere to go; without this the interpreter complains about it on its way out.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())
            if not isinstance(error, BrokenPipeError):
                message = f"standard output cannot be written: {error.strerror or error}"
                raise InputError(message, remedy="make room, or send it elsewhere") from error

    def write_lines(self, lines: Iterable[Line]) -> None:
        """Print styled lines on standard output."""
        fit = str if _can_encode(self.out) else _to_ascii
        if not self.has_colour:
            self.out.writelines(fit(read_plain(line)) + "\n" for line in lines)
            return
        codes = _find_codes(self.out)
        for line in lines:
            spans = (
                f"{codes[style][0]}{fit(text)}{codes[style][1]}" if style in codes else fit(text)
                for text, style in ((make_visible(text), style) for text, style in line)
            )
            self.out.write("".join(spans).rstrip(" ") + "\n")

    def write_blocks(
        self, blocks: "Sequence[Block]", *, max_rows: int | None = None, indent: int = 0, is_listing: bool = False
    ) -> None:
        """Print blocks on standard output at the screen's width; a listing that is redirected has a line per paragraph.

        Raises:
            InputError: as of :meth:`print_safely`.
        """
        from gpa_lsp.document.terminal import write_terminal  # loads what --help and --version do without

        width = None if is_listing and not self.is_interactive else self.width
        self.print_safely(lambda: self.write_lines(write_terminal(blocks, width, max_rows=max_rows, indent=indent)))

    def write_text(self, text: str) -> None:
        """Print plain text of any number of lines on standard output."""
        self.out.write(make_lines_visible(text))

    def pass_on(self, content: bytes) -> None:
        """Print the output of the user's program unchanged."""
        try:
            raw = getattr(self.out, "buffer", None)
            if raw is None:
                self.out.write(content.decode("utf-8", "replace"))
            else:
                self.out.flush()
                raw.write(content)
            self.out.flush()
        except (OSError, ValueError):
            return  # nobody listens any more; the program goes on

    def find_streams(self) -> tuple[int, int, int] | None:
        """Descriptors of standard input, output and error, for a program of the user's; None where one of them has none."""
        try:
            self.out.flush()
            return sys.stdin.fileno(), self.out.fileno(), self.err.fileno()
        except (AttributeError, OSError, ValueError):
            return None

    def write_page(self, text: str) -> None:
        """Print HTML on standard output in UTF-8, which the page declares, whatever the locale."""
        if hasattr(self.out, "reconfigure"):
            self.out.reconfigure(encoding="utf-8", errors="backslashreplace")
        self.out.write(text)

    def complain(self, text: str) -> None:
        """Print one line on standard error."""
        with contextlib.suppress(OSError, ValueError):  # there is nobody to tell
            self.err.write(f"{make_visible(text)}\n")
            self.err.flush()


def _open_nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - stands in for a stream that is never closed


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False  # closed


def _can_encode(stream: TextIO) -> bool:
    try:
        _PROBE.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def _to_ascii(text: str) -> str:
    return text.translate(_ASCII)


def _find_codes(stream: TextIO) -> dict[Style, tuple[str, str]]:
    """Escape codes before and after each style, as rich picks them for the terminal's palette."""
    from rich.color import ColorSystem  # only with colour: it takes longer to import than a small report to print
    from rich.console import Console
    from rich.style import Style as RichStyle

    name = Console(file=stream).color_system or "standard"
    palette = {
        "standard": ColorSystem.STANDARD,
        "256": ColorSystem.EIGHT_BIT,
        "truecolor": ColorSystem.TRUECOLOR,
        "windows": ColorSystem.STANDARD,
    }[name]
    codes = {}
    for style, definition in _RICH_STYLES.items():
        before, _, after = RichStyle.parse(definition).render("\0", color_system=palette).partition("\0")
        if before:
            codes[style] = (before, after)
    return codes


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
