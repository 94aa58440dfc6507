"""What the server and the process that predicts say to each other, and what the server keeps of it.

Small data: it is unpickled between two requests; and this module is imported before the client has its answer to initialize, without numpy.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from gpa_lsp.basis.errors import ProblemSeverity
from gpa_lsp.basis.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from gpa_lsp.traces.line_facts import AccessLineFact, BranchLineFact

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedJob:
    """A source to emulate.

    Attributes:
        path: of the source, links resolved.
        text: what the editor holds of it.
        launches_path: the description of its launches.
        launches_text: what it says; empty where there is none.
        roots: workspace folders.
        architecture: compute capability to compile for; None for that of the compile command.
        machine: name of the GPU to predict for; None for that of the reports, or one of that architecture.
        limit_s: for the compiler.
        seconds: for emulating one launch; all of them together may take twice that.
        memory_bytes: for one launch.
        measured_on: name of the GPU that the newest report of the workspace is of; None where there is none.
    """

    path: Path
    text: str
    launches_path: Path
    launches_text: str
    roots: tuple[Path, ...]
    architecture: tuple[int, int] | None
    machine: str | None
    limit_s: float
    seconds: float
    memory_bytes: int
    measured_on: str | None = None

    @property
    def most_s(self) -> float:
        """After this time the process hangs: compiling and all launches, the last of which may begin late, with their analyses."""
        return self.limit_s + 4 * self.seconds + 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsJob:
    """Launch configurations to look for: what :class:`TrialsResult` answers.

    Attributes:
        base: what was predicted.
        seconds: for all of it.
    """

    base: PredictedJob
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageJob:
    """A page to write, from what was predicted last, or from a new prediction.

    Attributes:
        base: what was predicted.
        target: the file.
    """

    base: PredictedJob
    target: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PageResult:
    """What became of it: ``failure`` is empty, or a line for people."""

    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateJob:
    """A description of a launch to begin with.

    Attributes:
        base: the source.
        kernel: mangled name.
    """

    base: PredictedJob
    kernel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateResult:
    """The text to append to the description, or why there is none."""

    text: str = ""
    failure: str = ""


Job = PredictedJob | TrialsJob | PageJob | TemplateJob


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLaunch:
    """One launch of one kernel.

    Attributes:
        mangled_name: of the kernel.
        name: readable.
        line: topmost line of the kernel's body in the source; None when it has none there.
        words: limiter, volumes and time, as a lens says them.
        what: which launch of how many blocks was emulated for which GPU, a clause.
        described_line: of its table in the description; None when unknown.
        grid: blocks in x, y, z; None when unknown.
        block: threads in x, y, z; None in the same case.
        emulated_ratio: blocks of the grid that were executed, 0..1.
        limits: how much was emulated, for the end of a lens; empty where that is all.
    """

    mangled_name: str
    name: str
    line: int | None
    words: str
    what: str
    described_line: int | None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    emulated_ratio: float = 1.0
    limits: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFact(Generic[Fact]):
    """What the room of traces says of a line, in one launch.

    Attributes:
        launch: index of it.
        fact: of a line of the source, as it was compiled.
    """

    launch: int
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedFault:
    """What the program did wrong in one launch, or where its emulation ended.

    Attributes:
        line: on the call path the innermost one in the source; None when it has none there.
        launch: index of it.
        kind: in words.
        message: what happened, with what shows it.
        remedy: what to do; may be empty.
        is_ending: it says nothing against the program.
        place: file and line that name it where that is not the source's ``line``, or of the library inlined there; None else.
        other: file and line of the other access of a race; None without one.
    """

    line: int | None
    launch: int
    kind: str
    message: str
    remedy: str
    is_ending: bool
    place: tuple[str, int] | None = None
    other: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedProblem:
    """What could not be done.

    Attributes:
        severity: how much is missing.
        message: what is wrong and what to do, a sentence.
        described_line: in the description; None where it is not about a line of it.
        kernel: mangled name of the kernel it is about; None when of none.
    """

    severity: ProblemSeverity
    message: str
    described_line: int | None = None
    kernel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedResult:
    """What became of a job.

    Attributes:
        job: what was asked.
        has_failed: the source does not compile: what was known before stays.
        launches: in their order.
        accesses: of the source's lines.
        branches: of the source's lines.
        faults: of all launches.
        problems: what could not be done.
        undescribed: mangled names of kernels without a launch.
        page: everything as text, Markdown.
        seconds: it took.
        failure: why there is nothing at all, a line; empty otherwise.
    """

    job: PredictedJob
    has_failed: bool = False
    launches: tuple[PredictedLaunch, ...] = ()
    accesses: "tuple[LaunchFact[AccessLineFact], ...]" = ()
    branches: "tuple[LaunchFact[BranchLineFact], ...]" = ()
    faults: tuple[PredictedFault, ...] = ()
    problems: tuple[PredictedProblem, ...] = ()
    undescribed: tuple[str, ...] = ()
    page: str = ""
    seconds: float = 0.0
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedTrial:
    """A block that is predicted to be faster, and the edit of the description that tries it.

    Attributes:
        launch: index of it.
        words: what is predicted.
        line: of the description, 1-based; the edit stays within it.
        old: text of that line.
        start: characters of it before the edit.
        end: and before what stays behind it.
        new: what takes the place of what is between.
    """

    launch: int
    words: str
    line: int
    old: str
    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsResult:
    """What became of looking for configurations.

    Attributes:
        job: what was predicted.
        trials: at most one per launch.
        remarks: for the log, a line each.
    """

    job: PredictedJob
    trials: tuple[PredictedTrial, ...] = ()
    remarks: tuple[str, ...] = ()
