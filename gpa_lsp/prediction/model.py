"""What is predicted of the kernels of a source: :class:`SourcePrediction` of :class:`KernelPrediction`; and how it is made:
:class:`PredictionSettings`. Nothing in here was measured.
"""

from dataclasses import field
from pathlib import Path

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.model import Budget, Counts, Fault
from gpa_lsp.launches.launch import LaunchDescription
from gpa_lsp.prediction.measured_model import CountComparison
from gpa_lsp.prediction.static_source import SourceStatics
from gpa_lsp.report.names import shorten_name
from gpa_lsp.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.traces.statistics import Measure
from gpa_lsp.volumes.expressions import KernelAccesses
from gpa_lsp.volumes.model import Contradiction, VolumeMode, VolumePrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How much of a launch was emulated.

    Attributes:
        grid_blocks: blocks of the launch.
        executed_blocks: of them, those that ran.
        is_complete: all of those ran to their end.
        warp_instructions: executed.
        lane_instructions: executed by lanes whose guard was true.
        seconds: of the emulator.
        peak_bytes: most memory it held at once, by its own account.
        why: why these blocks, a clause: ``all blocks``, ``one wave of the A100``.
        printed: what the kernel printed; empty when nothing.
        analysis_seconds: of the analyses, which read the trace while it is made.
    """

    grid_blocks: int
    executed_blocks: int
    is_complete: bool
    warp_instructions: int
    lane_instructions: int
    seconds: float
    peak_bytes: int
    why: str
    printed: str = ""
    analysis_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPrediction:
    """One launch of one kernel.

    Attributes:
        mangled_name: linkage name.
        name: for people.
        launch: that was emulated.
        machine: the GPU it is predicted for.
        registers: of a thread, as compiled; None when unknown.
        shared_bytes: of a block, static and dynamic.
        warps_per_sm: resident; None when unknown.
        execution: how much was emulated.
        faults: what the program did wrong, and what ended its emulation.
        accesses: what each line does to memory, by file and line.
        branches: conditional branches by file and line.
        volumes: data volumes and limiters; None when they could not be predicted, or contradict each other.
        recovered: the accesses that volumes are predicted from; None without volumes.
        answers: what the analyses say, in the order to be read; all of it *emulated* or *predicted*.
        problems: what could not be done, and why.
        measures: what launches of one kernel are compared by; empty when nothing was traced.
        contradictions: what in the predicted volumes cannot be true, in place of them: a defect.
        counts: executions of each static instruction over the executed blocks; None when they were not kept.
        measured: what was measured of this launch beside what was emulated; None for launches that were not measured.
    """

    mangled_name: str
    name: str
    launch: LaunchDescription
    machine: str
    registers: int | None
    shared_bytes: int
    warps_per_sm: int | None
    execution: Execution
    faults: tuple[Fault, ...]
    accesses: tuple[AccessLineFact, ...] = field(repr=False)
    branches: tuple[BranchLineFact, ...] = field(repr=False)
    volumes: VolumePrediction | None = field(repr=False)
    recovered: KernelAccesses | None = field(repr=False)
    answers: tuple[Answer, ...] = field(repr=False)
    problems: tuple[Problem, ...] = ()
    measures: tuple[Measure, ...] = field(default=(), repr=False)
    contradictions: tuple[Contradiction, ...] = ()
    counts: Counts | None = field(default=None, repr=False)
    measured: CountComparison | None = field(default=None, repr=False)

    @property
    def short_name(self) -> str:
        """Without result and parameters, and short enough for a line."""
        return shorten_name(self.name)

    def find(self, analysis: str) -> Answer | None:
        """The answer of one analysis; None when it was not asked."""
        return next((answer for answer in self.answers if answer.analysis == analysis), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchComparison:
    """Several launches of one kernel.

    Attributes:
        mangled_name: of the kernel.
        name: for people.
        launches: how many.
        answer: mean, least, most and deviation of each measure.
    """

    mangled_name: str
    name: str
    launches: int
    answer: Answer = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePrediction:
    """A source, compiled and emulated.

    Attributes:
        path: of the source, absolute.
        launches_path: the description of its launches; None when there is none.
        statics: what its code says without being run, and the compiler's messages.
        kernels: launches in the order they are described.
        undescribed: readable names of kernels of the source that no launch describes.
        problems: met on the way, those of single kernels excepted.
        comparisons: one for each kernel with several launches.
    """

    path: Path
    launches_path: Path | None
    statics: SourceStatics
    kernels: tuple[KernelPrediction, ...]
    undescribed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    comparisons: tuple[LaunchComparison, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionSettings:
    """What is asked, and how much it may cost.

    Attributes:
        machine: name of the GPU to predict for; None for the first product of the compute capability that is compiled for.
        mode: of the volume model.
        budget: of the emulator, for each launch.
        traced_warp_instructions: a launch with more is sampled, by an estimate from a few blocks.
        blocks: linear indexes of the blocks to execute; empty for a choice by their number.
        checks_races: look for races on shared memory.
        traces_entries: record entries into basic blocks as well, which tells the divergence of each block of code.
        is_paper: count by CUDAAdvisor's own definitions as well; records entries.
        all_seconds: launches that have not begun by then are left out, and said to be; None for no such limit.
    """

    machine: str | None = None
    mode: VolumeMode = VolumeMode.CORRECTED
    budget: Budget = field(default_factory=Budget)
    traced_warp_instructions: int = 20_000_000
    blocks: tuple[int, ...] = ()
    checks_races: bool = True
    traces_entries: bool = False
    is_paper: bool = False
    all_seconds: float | None = None


DEFAULT_PREDICTION = PredictionSettings()

EDITOR_PREDICTION = PredictionSettings(
    budget=Budget(seconds=5.0, memory_bytes=1 << 30, trace_bytes=256 << 20), traced_warp_instructions=2_000_000
)
"""On a save somebody waits."""
