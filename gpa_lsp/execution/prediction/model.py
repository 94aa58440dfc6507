"""What is predicted of the kernels of a source: :class:`SourcePrediction` of :class:`KernelPrediction`; and how it is made:
:class:`PredictionSettings`. Nothing in here was measured.
"""

from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.emulator.model import Budget, Counts, Fault
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.measured_model import CountComparison
from gpa_lsp.execution.prediction.static_source import SourceStatics
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.execution.traces.statistics import Measure
from gpa_lsp.execution.volumes.expressions import KernelAccesses
from gpa_lsp.execution.volumes.model import Contradiction, VolumeMode, VolumePrediction
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.names import shorten_name


class Execution(Struct, frozen=True, kw_only=True):
    """How much of a launch was emulated."""

    grid_blocks: int  # blocks of the launch
    executed_blocks: int  # of them, those that ran
    is_complete: bool  # all of those ran to their end
    warp_instructions: int  # executed
    lane_instructions: int  # executed by lanes whose guard was true
    seconds: float  # of the emulator
    peak_bytes: int  # most memory it held at once, by its own account
    why: str  # why these blocks, a clause: ``all blocks``, ``one wave of the A100``
    printed: str = ""  # what the kernel printed; empty when nothing
    analysis_seconds: float = 0.0  # of the analyses, which read the trace while it is made


class KernelPrediction(ColumnRecord, frozen=True, kw_only=True):
    """One launch of one kernel."""

    mangled_name: str  # linkage name
    name: str  # for people
    launch: LaunchDescription  # that was emulated
    machine: str  # the GPU it is predicted for
    registers: int | None  # of a thread, as compiled; None when unknown
    shared_bytes: int  # of a block, static and dynamic
    warps_per_sm: int | None  # resident; None when unknown
    execution: Execution  # how much was emulated
    faults: tuple[Fault, ...]  # what the program did wrong, and what ended its emulation
    accesses: tuple[AccessLineFact, ...]  # what each line does to memory, by file and line
    branches: tuple[BranchLineFact, ...]  # conditional branches by file and line
    # data volumes and limiters; None when they could not be predicted, or contradict each other
    volumes: VolumePrediction | None
    recovered: KernelAccesses | None  # the accesses that volumes are predicted from; None without volumes
    answers: tuple[Answer, ...]  # what the analyses say, in the order to be read; all of it *emulated* or *predicted*
    problems: tuple[Problem, ...] = ()  # what could not be done, and why
    measures: tuple[Measure, ...] = ()  # what launches of one kernel are compared by; empty when nothing was traced
    # what in the predicted volumes cannot be true, in place of them: a defect
    contradictions: tuple[Contradiction, ...] = ()
    # executions of each static instruction over the executed blocks; None when they were not kept
    counts: Counts | None = None
    # what was measured of this launch beside what was emulated; None for launches that were not measured
    measured: CountComparison | None = None

    @property
    def short_name(self) -> str:
        """Without result and parameters, and short enough for a line."""
        return shorten_name(self.name)

    def find(self, analysis: str) -> Answer | None:
        """The answer of one analysis; None when it was not asked."""
        return next((answer for answer in self.answers if answer.analysis == analysis), None)


class LaunchComparison(Struct, frozen=True, kw_only=True):
    """Several launches of one kernel."""

    mangled_name: str  # of the kernel
    name: str  # for people
    launches: int  # how many
    answer: Answer  # mean, least, most and deviation of each measure


class SourcePrediction(Struct, frozen=True, kw_only=True):
    """A source, compiled and emulated."""

    path: Path  # of the source, absolute
    launches_path: Path | None  # the description of its launches; None when there is none
    statics: SourceStatics  # what its code says without being run, and the compiler's messages
    kernels: tuple[KernelPrediction, ...]  # launches in the order they are described
    undescribed: tuple[str, ...] = ()  # readable names of kernels of the source that no launch describes
    problems: tuple[Problem, ...] = ()  # met on the way, those of single kernels excepted
    comparisons: tuple[LaunchComparison, ...] = ()  # one for each kernel with several launches


class PredictionSettings(Struct, frozen=True, kw_only=True):
    """What is asked, and how much it may cost."""

    # name of the GPU to predict for; None for the first product of the compute capability that is compiled for
    machine: str | None = None
    mode: VolumeMode = VolumeMode.CORRECTED  # of the volume model
    budget: Budget = field(default_factory=Budget)  # of the emulator, for each launch
    traced_warp_instructions: int = 20_000_000  # a launch with more is sampled, by an estimate from a few blocks
    blocks: tuple[int, ...] = ()  # linear indexes of the blocks to execute; empty for a choice by their number
    checks_races: bool = True  # look for races on shared memory
    # record entries into basic blocks as well, which tells the divergence of each block of code
    traces_entries: bool = False
    is_paper: bool = False  # count by CUDAAdvisor's own definitions as well; records entries
    # launches that have not begun by then are left out, and said to be; None for no such limit
    all_seconds: float | None = None


DEFAULT_PREDICTION = PredictionSettings()

# On a save somebody waits
EDITOR_PREDICTION = PredictionSettings(
    budget=Budget(seconds=5.0, memory_bytes=1 << 30, trace_bytes=256 << 20), traced_warp_instructions=2_000_000
)
