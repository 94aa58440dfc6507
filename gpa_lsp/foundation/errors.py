"""Every error this package raises on purpose, as one tree.

::

    GpaError
    ├── InputError                    a file cannot be used: says file, place and remedy
    │   ├── UnsupportedInputError     the file is sound, but of a kind that is not read
    │   ├── MismatchError             two inputs do not belong together (samples and cubin)
    │   └── UnknownArchitectureError  no table for this compute capability
    ├── MissingToolError              an external tool is not installed; says what to install
    ├── ToolError                     an external tool failed; carries its own words
    ├── CatalogueError                a file in a catalogue folder does not define its thing
    └── ConservationError             samples were lost or invented; a bug of ours, raised by the checks

Broken input raises; a broken analysis or kernel becomes a ``Problem`` in the report, so that the rest goes on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TypedDict, Unpack

from gpa_lsp.foundation.records import PartlyCompared


class GpaError(Exception):
    """The root: everything a command or the server turns into one line of text."""


class InputError(GpaError):
    """A file that cannot be used.

    Args:
        message: what is wrong, without file name or full stop.
        path: the file, or None when the bytes came from no file.
        place: where in it, in the words of the format ("offset 0x1f0", "block 3", "section .debug_line"); None when it is the whole.
        remedy: what the reader can do about it; None only where nothing can be done.

    >>> str(InputError("block header is longer than the file", path=Path("a.ncu-rep"), place="offset 0x10", remedy="record it again"))
    'a.ncu-rep: offset 0x10: block header is longer than the file; record it again'
    """

    def __init__(
        self, message: str, *, path: Path | str | None = None, place: str | None = None, remedy: str | None = None
    ) -> None:
        self.message = message
        self.path = Path(path) if path is not None else None
        self.place = place
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        return _write_message(self)

    def at(self, path: Path | str) -> "InputError":
        """The same error with the file filled in, for readers that were handed bytes and learn their file's name one floor up."""
        if self.path is None:
            self.path = Path(path)
        return self


class UnsupportedInputError(InputError):
    """A sound file of a kind or version that is not read."""


class MismatchError(InputError):
    """Two inputs that do not belong together."""


class UnknownArchitectureError(InputError):
    """A compute capability without a table; the message lists those there are."""


class MissingToolError(GpaError):
    """An external tool that is not there.

    Args:
        tool: its name, e.g. ``nvdisasm``.
        needed_for: what cannot be done without it.
        install: how to get it.
    """

    def __init__(self, tool: str, *, needed_for: str, install: str) -> None:
        self.tool = tool
        self.needed_for = needed_for
        self.install = install
        super().__init__(f"{tool} is not installed: {needed_for} needs it; {install}")


class ToolError(GpaError):
    """An external tool that ran and failed, or did not end in time.

    Args:
        tool: its name.
        message: what happened.
        output: the tail of what it printed, for the log.
    """

    def __init__(self, tool: str, message: str, *, output: str = "") -> None:
        self.tool = tool
        self.output = output
        super().__init__(f"{tool}: {message}")


class CatalogueError(GpaError):
    """A member of a catalogue folder that does not define what the folder asks for."""


class ConservationError(GpaError):
    """Samples do not add up: a bug in this package, never the fault of an input."""


class ProblemSeverity(Enum):
    """The part of the answer that a problem costs."""

    ERROR = "error"  # Something asked for is missing from the answer
    WARNING = "warning"  # The answer is whole, but less certain or less detailed than it could be
    NOTE = "note"  # Good to know; nothing is missing


class _Where(TypedDict, total=False):
    path: Path | None
    place: str | None
    kernel: str | None
    is_passing: bool


class Problem(PartlyCompared, frozen=True, kw_only=True):
    """A failure or a doubt as data: it travels with the results it concerns and is shown beside them."""

    UNCOMPARED = ("is_passing",)

    severity: ProblemSeverity  # what it costs
    message: str  # what is wrong, one sentence without file name
    path: Path | None = None  # the file it is about; None when none
    place: str | None = None  # where in the file; None when the whole
    remedy: str | None = None  # what to do; None where nothing can be done
    kernel: str | None = None  # mangled name of the kernel it is about; None when not one kernel's
    is_passing: bool = False  # its cause is this machine at this moment, not the input: another attempt may go well

    @classmethod
    def note(cls, message: str, remedy: str | None = None, **where: Unpack[_Where]) -> "Problem":
        """A fact that is good to know."""
        return cls(severity=ProblemSeverity.NOTE, message=message, remedy=remedy, **where)

    @classmethod
    def warning(cls, message: str, remedy: str | None = None, **where: Unpack[_Where]) -> "Problem":
        """A doubt about the answer."""
        return cls(severity=ProblemSeverity.WARNING, message=message, remedy=remedy, **where)

    @classmethod
    def error(cls, message: str, remedy: str | None = None, **where: Unpack[_Where]) -> "Problem":
        """A gap in the answer."""
        return cls(severity=ProblemSeverity.ERROR, message=message, remedy=remedy, **where)

    @classmethod
    def from_error(cls, error: GpaError, *, kernel: str | None = None) -> "Problem":
        """The problem an error becomes when the rest goes on without it."""
        if isinstance(error, InputError):
            return cls.error(error.message, error.remedy, path=error.path, place=error.place, kernel=kernel)
        if isinstance(error, MissingToolError):
            message = f"{error.tool} is not installed: {error.needed_for} needs it"
            return cls.warning(message, error.install, kernel=kernel, is_passing=True)
        return cls.error(str(error), kernel=kernel, is_passing=isinstance(error, ToolError))

    @classmethod
    def from_fault(
        cls, what: str, error: Exception, *, path: Path | None = None, kernel: str | None = None
    ) -> "Problem":
        """The problem that a bug of ours becomes when the rest goes on without what it broke.

        Args:
            what: failed, as the subject of a sentence.
            error: an unexpected one.
            path: the file it is about; None when none.
            kernel: mangled name of the kernel it is about; None when not one kernel's.
        """
        remedy = "this is a fault of gpa-lsp; please report it"
        return cls.error(f"{what} failed: {type(error).__name__}: {error}", remedy, path=path, kernel=kernel)

    def __str__(self) -> str:
        return _write_message(self)


def _write_message(told: InputError | Problem) -> str:
    where = ": ".join(str(part) for part in (told.path, told.place) if part is not None)
    text = f"{where}: {told.message}" if where else told.message
    return f"{text}; {told.remedy}" if told.remedy else text


@contextmanager
def spare_others(what: str, problems: list[Problem], *, kernel: str | None = None) -> Iterator[None]:
    """A part of an answer: whatever goes wrong in it becomes a problem, and what comes after it goes on.

    Args:
        what: is done, as the subject of a sentence.
        problems: gets the problem.
        kernel: mangled name of the kernel it is about.
    """
    try:
        yield
    except GpaError as error:
        problems.append(Problem.from_error(error, kernel=kernel))
    except Exception as error:
        import logging  # what starts must not wait for it

        logging.getLogger(__name__).exception("%s failed", what)
        problems.append(Problem.from_fault(what, error, kernel=kernel))
