"""What the server and the process that simulates say to each other. Plain data without numpy: this module is imported before the client has its
answer to initialize.
"""

from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.editor.predicted.results import PredictedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationJob:
    """Launches of a source to simulate.

    Attributes:
        base: the source, and the description of its launches.
        kernel: mangled name of the one that is meant; None for all that are described.
        target: the profile to write.
        seconds: for executing the blocks of one launch.
        total_seconds: for those of all launches together; None for no such limit.
    """

    base: PredictedJob
    kernel: str | None
    target: Path
    seconds: float
    total_seconds: float | None = None

    @property
    def most_s(self) -> float:
        """After this time the process hangs: compiling, what a launch may take with its further tries, and an SM."""
        return self.base.limit_s + 10 * self.seconds + 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """What became of it.

    Attributes:
        job: what was asked.
        words: a clause for each simulated launch; empty where nothing was written.
        kernels: mangled names of the simulated kernels.
        problems: what was not simulated, and why, a sentence each.
        seconds: it took.
        failure: why nothing was simulated, a line; empty otherwise.
    """

    job: SimulationJob
    words: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonJob:
    """A measured kernel to simulate, and to put beside its measurement on a page.

    Attributes:
        profile: where it was measured.
        kernel: mangled name.
        launches: describes what is passed to it.
        page: the file to write.
        simulated: the profile to write on the way.
        machine: GPU to simulate; None for the one that was measured.
        seconds: for executing the blocks of one launch.
        memory_bytes: of one launch.
    """

    profile: Path
    kernel: str
    launches: Path
    page: Path
    simulated: Path
    machine: str | None
    seconds: float
    memory_bytes: int

    @property
    def most_s(self) -> float:
        """After this time the process hangs: the report of a large program is read, launches are simulated, and both are judged."""
        return 10 * self.seconds + 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """What became of it.

    Attributes:
        failure: why there is no page, a line; empty where there is one.
    """

    failure: str = ""
