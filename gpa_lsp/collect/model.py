"""What a measurement is asked to do, and what became of it."""

import os
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.processes.watched_command import Ending

PATIENCE_S = 600.0
"""How long a command may take unless the user says otherwise."""


REPORT_SUFFIX = ".ncu-rep"


class Phase(Enum):
    """The two commands of a measurement, in their order."""

    BUILD = "build"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What became of one command and everything it started.

    Attributes:
        ending: how it ended.
        status: exit status; 127 and 126, as in a shell, for programs that are not there or cannot be executed; None when a signal ended it.
        signal: number of the signal that ended it; None when none did.
        duration_s: from start to end.
        tail: the last lines it printed, and before them those that profilers mark as errors and warnings; cleaned of control sequences.
        left_running: processes that could not be ended, because they belong to another user or hang in the kernel.
    """

    ending: Ending
    status: int | None
    signal: int | None
    duration_s: float
    tail: tuple[str, ...]
    left_running: tuple[int, ...] = ()

    @property
    def is_success(self) -> bool:
        """It ended by itself with status 0."""
        return self.ending is Ending.ENDED and self.status == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a command failed, and what to do about it.

    Attributes:
        name: of the entry in the catalogue, stable; for tests and for telling one failure from another.
        summary: one clause, without full stop.
        remedies: what to try, most promising first; sentences without full stop.
        line: the printed line that gave it away; None where the exit status did.
        url: where the reader finds more; None when nowhere.
    """

    name: str
    summary: str
    remedies: tuple[str, ...] = ()
    line: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Commands to run, all variables filled in.

    Attributes:
        folder: where they run.
        profile: the command that measures.
        build: the command before it; None when there is nothing to build.
        timeout_s: for each of the two.
        environment: what they are run with, whole.
        output: where a report is expected; None when the commands write where they like.
        needs_output: the command names the output, so that a report missing there is a failure.
    """

    folder: Path
    profile: tuple[str, ...]
    build: tuple[str, ...] | None = None
    timeout_s: float = PATIENCE_S
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    output: Path | None = None
    needs_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What became of a measurement.

    Attributes:
        phase: the command that was run last.
        command: what became of it.
        explanation: why there is no measurement, or why it may be incomplete; None when all is well, or nobody knows.
        report: the report at the place that was expected; None when there is none there.
        duration_s: of both commands.
    """

    phase: Phase
    command: CommandResult
    explanation: Explanation | None
    report: Path | None
    duration_s: float

    @property
    def is_success(self) -> bool:
        """Both commands ended well and, where a report was expected, it is there."""
        return self.phase is Phase.PROFILE and self.command.is_success and self.explanation is None

    @property
    def is_cancelled(self) -> bool:
        """The user, or a newer request, ended it."""
        return self.command.ending is Ending.CANCELLED
