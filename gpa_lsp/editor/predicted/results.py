"""Messages between the server and the process that predicts, and the results that the server keeps.

Small data: it is unpickled between two requests; and this module is imported before the client has its answer to initialize, without numpy.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from gpa_lsp.foundation.errors import ProblemSeverity

if TYPE_CHECKING:
    from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact


Fact = TypeVar("Fact")


class PredictedJob(Struct, frozen=True, kw_only=True):
    """A source to emulate."""

    path: Path  # of the source, links resolved
    text: str  # what the editor holds of it
    launches_path: Path  # the description of its launches
    launches_text: str  # what it says; empty where there is none
    roots: tuple[Path, ...]  # workspace folders
    architecture: tuple[int, int] | None  # compute capability to compile for; None for that of the compile command
    machine: str | None  # name of the GPU to predict for; None for that of the reports, or one of that architecture
    limit_s: float  # for the compiler
    seconds: float  # for emulating one launch; all of them together may take twice that
    memory_bytes: int  # for one launch
    # name of the GPU that the newest report of the workspace is of; None where there is none
    measured_on: str | None = None

    @property
    def most_s(self) -> float:
        """Time after which the process hangs: compiling and all launches, the last of which may begin late, with their analyses."""
        return self.limit_s + 4 * self.seconds + 30.0


class TrialsJob(Struct, frozen=True, kw_only=True):
    """Launch configurations to look for: what :class:`TrialsResult` answers."""

    base: PredictedJob  # what was predicted
    seconds: float  # for all of it


class PageJob(Struct, frozen=True, kw_only=True):
    """A page to write, from what was predicted last, or from a new prediction."""

    base: PredictedJob  # what was predicted
    target: Path  # the file


class PageResult(Struct, frozen=True, kw_only=True):
    """Result of a page job: ``failure`` is empty, or a line for people."""

    failure: str = ""


class TemplateJob(Struct, frozen=True, kw_only=True):
    """A description of a launch to begin with."""

    base: PredictedJob  # the source
    kernel: str  # mangled name
    told: str = ""  # what the user says of sizes, such as ``n = 4096, threads = 64x64``


class TemplateResult(Struct, frozen=True, kw_only=True):
    """The text to append to the description, or why there is none."""

    text: str = ""
    guessed: str = ""  # sizes that nothing in the source says, as ``told`` takes them
    failure: str = ""


Job = PredictedJob | TrialsJob | PageJob | TemplateJob


class PredictedLaunch(Struct, frozen=True, kw_only=True):
    """One launch of one kernel."""

    mangled_name: str  # of the kernel
    name: str  # readable
    line: int | None  # topmost line of the kernel's body in the source; None when it has none there
    words: str  # limiter, volumes and time, as a lens says them
    what: str  # which launch of how many blocks was emulated for which GPU, a clause
    described_line: int | None  # of its table in the description; None when unknown
    grid: tuple[int, int, int] | None = None  # blocks in x, y, z; None when unknown
    block: tuple[int, int, int] | None = None  # threads in x, y, z; None in the same case
    emulated_ratio: float = 1.0  # blocks of the grid that were executed, 0..1
    limits: str = ""  # how much was emulated, for the end of a lens; empty where that is all


class LaunchFact(Struct, Generic[Fact], frozen=True, kw_only=True):
    """Fact about a line in one launch."""

    launch: int  # index of it
    fact: Fact  # of a line of the source, as it was compiled


class PredictedFault(Struct, frozen=True, kw_only=True):
    """Fault of the program in one launch, or the place where its emulation ended."""

    line: int | None  # on the call path the innermost one in the source; None when it has none there
    launch: int  # index of it
    kind: str  # in words
    message: str  # what happened, with what shows it
    remedy: str  # what to do; may be empty
    is_ending: bool  # it says nothing against the program
    # file and line that name it where that is not the source's ``line``, or of the library inlined there; None else
    place: tuple[str, int] | None = None
    other: tuple[str, int] | None = None  # file and line of the other access of a race; None without one


class PredictedProblem(Struct, frozen=True, kw_only=True):
    """Problem that kept something from being predicted."""

    severity: ProblemSeverity  # how much is missing
    message: str  # what is wrong and what to do, a sentence
    described_line: int | None = None  # in the description; None where it is not about a line of it
    kernel: str | None = None  # mangled name of the kernel it is about; None when of none


class PredictedResult(Struct, frozen=True, kw_only=True):
    """Result of a job."""

    job: PredictedJob  # what was asked
    has_failed: bool = False  # the source does not compile: what was known before stays
    launches: tuple[PredictedLaunch, ...] = ()  # in their order
    accesses: "tuple[LaunchFact[AccessLineFact], ...]" = ()  # of the source's lines
    branches: "tuple[LaunchFact[BranchLineFact], ...]" = ()  # of the source's lines
    faults: tuple[PredictedFault, ...] = ()  # of all launches
    problems: tuple[PredictedProblem, ...] = ()  # what could not be done
    undescribed: tuple[str, ...] = ()  # mangled names of kernels without a launch
    page: str = ""  # everything as text, Markdown
    seconds: float = 0.0  # it took
    failure: str = ""  # why there is nothing at all, a line; empty otherwise


class BlockEdit(Struct, frozen=True, kw_only=True):
    """Edit of a description that gives a launch another block."""

    line: int  # of the description, 1-based; the edit stays within it
    old: str  # text of that line
    start: int  # characters of it before the edit
    end: int  # and before what stays behind it
    new: str  # what takes the place of what is between


class PredictedTrial(BlockEdit, frozen=True, kw_only=True):
    """Block that is predicted to be faster, with the edit that tries it."""

    launch: int  # index of it
    words: str  # what is predicted


class TrialsResult(Struct, frozen=True, kw_only=True):
    """Result of a search for configurations."""

    job: PredictedJob  # what was predicted
    trials: tuple[PredictedTrial, ...] = ()  # at most one per launch
    remarks: tuple[str, ...] = ()  # for the log, a line each


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
