"""Measurements: their commands and results."""

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.foundation.processes.watched_command import Ending

PATIENCE_S = 600.0  # How long a command may take unless the user says otherwise


REPORT_SUFFIX = ".ncu-rep"


class Phase(Enum):
    """The two commands of a measurement, in their order."""

    BUILD = "build"
    PROFILE = "profile"


class CommandResult(Struct, frozen=True, kw_only=True):
    """Outcome of one command and everything it started."""

    ending: Ending  # how it ended
    # exit status; 127 and 126, as in a shell, for programs that are not there or cannot be executed; None when a signal ended it
    status: int | None
    signal: int | None  # number of the signal that ended it; None when none did
    duration_s: float  # from start to end
    # the last lines it printed, and before them those that profilers mark as errors and warnings; cleaned of control sequences
    tail: tuple[str, ...]
    # processes that could not be ended, because they belong to another user or hang in the kernel
    left_running: tuple[int, ...] = ()

    @property
    def is_success(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.ending is Ending.ENDED and self.status == 0


class Explanation(Struct, frozen=True, kw_only=True):
    """Cause of a failure, and remedies."""

    name: str  # of the entry in the catalogue, stable; for tests and for telling one failure from another
    summary: str  # one clause, without full stop
    remedies: tuple[str, ...] = ()  # what to try, most promising first; sentences without full stop
    line: str | None = None  # the printed line that gave it away; None where the exit status did
    url: str | None = None  # where the reader finds more; None when nowhere


class Measurement(Struct, frozen=True, kw_only=True):
    """Commands to run, all variables filled in."""

    folder: Path  # where they run
    profile: tuple[str, ...]  # the command that measures
    build: tuple[str, ...] | None = None  # the command before it; None when there is nothing to build
    timeout_s: float = PATIENCE_S  # for each of the two
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))  # what they are run with, whole
    output: Path | None = None  # where a report is expected; None when the commands write where they like
    needs_output: bool = False  # the command names the output, so that a report missing there is a failure


class RunResult(Struct, frozen=True, kw_only=True):
    """Outcome of a measurement."""

    phase: Phase  # the command that was run last
    command: CommandResult  # what became of it
    # why there is no measurement, or why it may be incomplete; None when all is well, or nobody knows
    explanation: Explanation | None
    report: Path | None  # the report at the place that was expected; None when there is none there
    duration_s: float  # of both commands

    @property
    def is_success(self) -> bool:
        """Whether both commands ended well and an expected report was written."""
        return self.phase is Phase.PROFILE and self.command.is_success and self.explanation is None

    @property
    def is_cancelled(self) -> bool:
        """Whether the user, or a newer request, ended it."""
        return self.command.ending is Ending.CANCELLED
