"""Predictions of the kernels of a source: :class:`SourcePrediction` of :class:`KernelPrediction`; settings: :class:`PredictionSettings`."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.emulator.model import Budget, Counts, Fault
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.static_source import SourceStatics
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.results import Measure, MeasureSpread
from gpa_lsp.execution.volumes.expressions import KernelAccesses
from gpa_lsp.execution.volumes.measured_volumes import VolumeComparison
from gpa_lsp.execution.volumes.model import Contradiction, VolumeMode, VolumePrediction
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.line_waits import LineWait
from gpa_lsp.kernel.names import shorten_name


class Execution(Struct, frozen=True, kw_only=True):
    """Extent and cost of an emulated launch."""

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


class CountPair(Struct, frozen=True, kw_only=True):
    """One count of a launch."""

    measured: float  # on the GPU
    emulated: float  # by us, for the whole launch

    @property
    def agrees(self) -> bool:
        """Whether they are the same within :data:`AGREED_RATIO`, by which counters differ from run to run."""
        return abs(self.measured - self.emulated) <= AGREED_RATIO * max(self.measured, 1.0)


class ComparedAccess(Struct, frozen=True, kw_only=True):
    """An access of the PTX and the machine instructions it became."""

    ptx: str  # the instruction
    ptx_line: int  # of the PTX in the image, from 1
    file: str | None  # of its source line, as compiled; None without a line
    line: int | None  # from 1; None without a line
    kind: AccessGroupKind  # loads, stores or atomics
    space: Space  # it goes to
    instructions: tuple[tuple[str, int], ...]  # function and offset in bytes of each machine instruction
    executions: CountPair  # by warps
    threads: CountPair | None  # that executed it with their guard true; None where that was not collected
    sectors: CountPair | None  # None where they were not collected, and for shared memory
    wavefronts: CountPair | None  # None where they were not collected, and for all but shared memory

    @property
    def pairs(self) -> Mapping[str, CountPair | None]:
        """All counts by name."""
        return {
            "executions": self.executions,
            "threads": self.threads,
            "sectors": self.sectors,
            "wavefronts": self.wavefronts,
        }

    @property
    def is_executed_alike(self) -> bool:
        """Whether warps, or threads, executed it as often: the compiler may guard what PTX branches around, or the reverse."""
        return self.executions.agrees or (self.threads is not None and self.threads.agrees)

    @property
    def agrees(self) -> bool:
        """Whether all counts agree."""
        others = (self.sectors, self.wavefronts)
        return self.is_executed_alike and all(one is None or one.agrees for one in others)


class CountComparison(Struct, frozen=True, kw_only=True):
    """All accesses of a launch."""

    launch: int  # its position in the report, from 0
    accesses: tuple[ComparedAccess, ...] = ()  # in the order of the PTX
    counted_blocks: int = 0  # of which the emulated counts are; 0 when none was counted to its end
    grid_blocks: int = 0  # of the launch
    added: int = 0  # machine instructions that access memory for no access of the PTX, such as spills
    merged: int = 0  # accesses of the PTX that were emulated and became no machine instruction of their own
    unmapped: int = 0  # machine instructions that access memory and have no line of the PTX
    why: str = ""  # nothing was compared; empty where something was


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
    # volumes that were measured of it beside those predicted; None where none were, or where it is predicted for another GPU
    measured_volumes: VolumeComparison | None = None
    # stalls on its lines, most first; None where they were not found
    waits: tuple[LineWait, ...] | None = None

    @property
    def short_name(self) -> str:
        """Name without result and parameters, short enough for a line."""
        return shorten_name(self.name)

    def find(self, analysis: str) -> Answer | None:
        """The answer of one analysis; None when it was not asked."""
        return next((answer for answer in self.answers if answer.analysis == analysis), None)


class LaunchComparison(Struct, frozen=True, kw_only=True):
    """Several launches of one kernel."""

    mangled_name: str  # of the kernel
    name: str  # for people
    launches: int  # how many
    spreads: tuple[MeasureSpread, ...]  # of each measure
    answer: Answer  # the same for people


class SourcePrediction(Struct, frozen=True, kw_only=True):
    """A source, compiled and emulated."""

    path: Path  # of the source, absolute
    launches_path: Path | None  # the description of its launches; None when there is none
    statics: SourceStatics  # what its code says without being run, and the compiler's messages
    kernels: tuple[KernelPrediction, ...]  # launches in the order they are described
    undescribed: tuple[str, ...] = ()  # mangled names of the kernels that no launch describes
    problems: tuple[Problem, ...] = ()  # met on the way, those of single kernels excepted
    comparisons: tuple[LaunchComparison, ...] = ()  # one for each kernel with several launches


class PredictionSettings(Struct, frozen=True, kw_only=True):
    """GPU, model and limits of a prediction."""

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

# A user waits on a save
EDITOR_PREDICTION = PredictionSettings(
    budget=Budget(seconds=5.0, memory_bytes=1 << 30, trace_bytes=256 << 20), traced_warp_instructions=2_000_000
)

AGREED_RATIO = 0.02  # Counts that differ by no more agree: counters that are read in several passes are of several runs
