"""Messages between the server and the process that simulates. Plain data without numpy: this module is imported before the client has its
answer to initialize.
"""

from pathlib import Path

from msgspec import Struct

from gpa_lsp.editor.predicted.results import PredictedJob


class SimulationJob(Struct, frozen=True, kw_only=True):
    """Launches of a source to simulate."""

    base: PredictedJob  # the source, and the description of its launches
    kernel: str | None  # mangled name of the one that is meant; None for all that are described
    target: Path  # the profile to write
    seconds: float  # for executing the blocks of one launch
    total_seconds: float | None = None  # for those of all launches together; None for no such limit

    @property
    def most_s(self) -> float:
        """Time after which the process hangs: compiling, what a launch may take with its further tries, and an SM."""
        return self.base.limit_s + 10 * self.seconds + 60.0


class SimulationResult(Struct, frozen=True, kw_only=True):
    """Result of a simulation."""

    job: SimulationJob  # what was asked
    words: tuple[str, ...] = ()  # a clause for each simulated launch; empty where nothing was written
    kernels: tuple[str, ...] = ()  # mangled names of the simulated kernels
    problems: tuple[str, ...] = ()  # what was not simulated, and why, a sentence each
    seconds: float = 0.0  # it took
    failure: str = ""  # why nothing was simulated, a line; empty otherwise


class ComparisonJob(Struct, frozen=True, kw_only=True):
    """A measured kernel to simulate, and to put beside its measurement on a page."""

    profile: Path  # where it was measured
    kernel: str  # mangled name
    launches: Path  # describes what is passed to it
    page: Path  # the file to write
    simulated: Path  # the profile to write on the way
    machine: str | None  # GPU to simulate; None for the one that was measured
    seconds: float  # for executing the blocks of one launch
    memory_bytes: int  # of one launch

    @property
    def most_s(self) -> float:
        """Time after which the process hangs: the report of a large program is read, launches are simulated, and both are judged."""
        return 10 * self.seconds + 300.0


class ComparisonResult(Struct, frozen=True, kw_only=True):
    """Result of a comparison."""

    failure: str = ""  # why there is no page, a line; empty where there is one
