"""The :class:`Report`: results free of the files they came from, ready to be shown, saved and indexed.

A report is self-contained: it can be written as JSON (``gpa-lsp/report/3``), read back on another machine without profile or cubin, and
rendered there. Rows per line and per function are objects; rows per instruction are columns, since there can be a hundred thousand.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.code.binary.model import ResourceLists
from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses, Limiter
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.figures import Share, Spread, measure_share, measure_weighted_spread, sum_known
from gpa_lsp.foundation.locations import InlineChain, SourceLine
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.foundation.records import ColumnRecord, PartlyCompared, SharedFacts
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.profile.model import Aggregate, PlaceSamples, Sampling
from gpa_lsp.report.changes import ReasonCounts


class KernelCode(Struct, SharedFacts, frozen=True, kw_only=True, eq=False, dict=True, weakref=True):
    """The n rows of a kernel's :class:`~gpa_lsp.report.model.InstructionColumns`, with b basic blocks in row order.

    Rows without code (foreign functions, no disassembler) read and write nothing and are in no block. Two objects are equal only when they are
    one, so that what is found out about code can be kept beside it.
    """

    # name in :data:`~gpa_lsp.kernel.place.COUNTERS` → int64[n], summed over launches; -1 where an instruction has no value. Counters that were not
    # collected at all are missing.
    counters: Mapping[str, npt.NDArray[np.int64]]
    mnemonics: tuple[str, ...]  # distinct opcodes with modifiers
    mnemonic_index: npt.NDArray[np.int32]  # int32[n] into ``mnemonics``; -1 without code
    reads: ResourceLists  # resources read, by row
    writes: ResourceLists  # resources written, by row
    guard: npt.NDArray[np.int16]  # int16[n], resource number of the guard predicate; -1 when unguarded
    # bool[n]; an instruction that is negated and has no guard is never executed (``@!PT``)
    guard_negated: npt.NDArray[np.bool_]
    flow: npt.NDArray[np.uint8]  # uint8[n] of :class:`~gpa_lsp.code.binary.model.Flow`
    # int32[n], row of the branch, call or reconvergence target in the same function; -1 when none or elsewhere
    target_row: npt.NDArray[np.int32]
    block_of_row: npt.NDArray[np.int32]  # int32[n]; -1 without code
    first_row: npt.NDArray[np.int32]  # int32[b]
    last_row: npt.NDArray[np.int32]  # int32[b], inclusive
    # int32[b + 1]; the predecessors of block i are ``predecessors[predecessor_starts[i]:predecessor_starts[i + 1]]``
    predecessor_starts: npt.NDArray[np.int32]
    predecessors: npt.NDArray[np.int32]  # int32[e]
    successor_starts: npt.NDArray[np.int32]  # int32[b + 1]; the same for ``successors``
    successors: npt.NDArray[np.int32]  # int32[e]
    # int32[b], index of the innermost loop around each block in ``KernelReport.loops``; -1 outside loops
    loop_of_block: npt.NDArray[np.int32]
    # int32[b], first block of the innermost loop around each block (:class:`~gpa_lsp.code.control_flow.model.Loop`); -1 outside loops
    header_of_block: npt.NDArray[np.int32]
    # int32[b], as in :class:`~gpa_lsp.code.control_flow.model.FlowGraph`; -1 when there is none
    immediate_dominator: npt.NDArray[np.int32]
    immediate_post_dominator: npt.NDArray[np.int32]  # int32[b]; -1 when there is none
    # int32[b], the p procedures are the functions and the local functions in them
    procedure_of_block: npt.NDArray[np.int32]
    procedure_entry: npt.NDArray[np.int32]  # int32[p], first block
    procedure_is_local: npt.NDArray[np.bool_]  # bool[p], called from its own section only
    is_reachable: npt.NDArray[np.bool_]  # bool[b], an entry leads here
    reaches_end: npt.NDArray[np.bool_]  # bool[b], a path leads from here to the end
    may_end: npt.NDArray[np.bool_]  # bool[b], the end can come right after the block


class DeviceReport(Struct, frozen=True, kw_only=True):
    """The GPU; facts the profile lacks are None."""

    name: str | None  # marketing name
    compute_capability: tuple[int, int] | None  # major and minor version
    sm_count: int | None  # streaming multiprocessors
    sm_clock_hz: float | None  # nominal SM clock


class RuleNote(Struct, frozen=True, kw_only=True):
    """A remark or an estimate of the profiler's own rules, kept apart from ours."""

    rule: str  # the rule's name
    kind: str  # ``ok``, ``info``, ``warning``, ``error`` or ``optimization``
    text: str  # the remark
    speedup_percent: float | None = None  # percent of run time NVIDIA thinks can be saved; None when it does not say
    # of the whole kernel, not only of the part looked at; None when there is no estimate
    speedup_is_global: bool | None = None


class LaunchReport(Struct, frozen=True, kw_only=True):
    """One measured launch of a kernel."""

    index: int  # position in the profile, 0-based
    configuration: LaunchConfiguration  # its launch configuration
    duration_ns: float | None  # None when unknown
    total_samples: int  # all stall samples
    latency_samples: int | None  # samples without issue; None when unknown
    by_reason: ReasonCounts  # per stall reason
    samples_truncated: bool  # the sampling buffer was full; the samples cover only the start
    failure: str | None  # why it has no usable numbers; None when it has
    nvtx_ranges: tuple[str, ...] = ()  # outermost first
    # ``function (module)`` or ``function at file:line``, innermost first; host addresses are not kept
    call_stack: tuple[str, ...] = ()
    rules: tuple[RuleNote, ...] = ()  # what NVIDIA's own rules said
    elapsed_cycles: float | None = None  # SM cycles from start to end; None when not collected
    # the launches this one stands for, whose mean its duration and cycles are and whose samples are added up; None for one launch
    aggregate: Aggregate | None = None
    sampling: Sampling = field(default_factory=Sampling)  # how it was sampled, and samples that are in no row

    @property
    def launch_count(self) -> int | None:
        """Number of executions it stands for; None when unknown."""
        return 1 if self.aggregate is None else self.aggregate.launches

    @property
    def total_duration_ns(self) -> float:
        """Time of all executions it stands for; 0 when unknown."""
        return (self.duration_ns or 0.0) * (self.launch_count or 0)


def measure_launch_spread(
    launches: Sequence[LaunchReport], read: Callable[[LaunchReport], float | None]
) -> Spread | None:
    """Spread of a number over launches (aggregates contribute their mean); None where it is unknown."""
    known = [(read(launch), launch.launch_count) for launch in launches]
    return measure_weighted_spread(
        [(value, count) for value, count in known if value is not None and count is not None]
    )


class LaunchContext(Struct, frozen=True, kw_only=True):
    """The launches of a kernel with one configuration from one host path, judged by themselves."""

    configuration: LaunchConfiguration  # of these launches
    call_stack: tuple[str, ...]  # as of :class:`LaunchReport`
    launches: tuple[int, ...]  # their indices
    launch_count: int | None  # executions they stand for; None when that of an aggregate is unknown
    ratio: float  # part of the kernel's time; of its samples, or else launches, where the times are not known
    duration_ns: float | None  # mean over the launches; None when unknown
    total_samples: int  # of these launches
    limiter: Limiter | None  # what limits it; None where the search failed
    advice: KernelAdvice | None  # on it; None where nobody was asked


class FunctionRole(Enum):
    """Role of a function in its kernel."""

    KERNEL = "kernel"
    DEVICE_FUNCTION = "device_function"  # A section of its own in the same module
    SUB_FUNCTION = "sub_function"  # A local function inside another function's section
    OUTSIDE_MODULE = "outside_module"  # Code the module does not hold (the driver's printf, a system call)

    @property
    def words(self) -> str:
        """Readable name."""
        special = {FunctionRole.SUB_FUNCTION: "local function", FunctionRole.OUTSIDE_MODULE: "outside this module"}
        return special.get(self, self.value.replace("_", " "))


class FunctionRow(Struct, frozen=True, kw_only=True):
    """Samples of one function."""

    mangled_name: str  # linkage name; ``<outside this module>`` for foreign code
    name: str  # readable name
    role: FunctionRole  # what it is
    instruction_count: int  # 0 for foreign code
    has_lines: bool  # a line table covers it
    samples: int  # in its own instructions
    latency_samples: int | None  # of these, without issue; None when unknown
    by_reason: ReasonCounts  # per stall reason
    registers: int | None  # per thread; None when unknown
    # mangled name of the section its instructions are in; another function's for a local function. None when unknown.
    section: str | None = None
    start_offset: int = 0  # its first instruction, bytes from the section's start


class LineRow(Struct, frozen=True, kw_only=True):
    """Samples of one source line, over all functions it was compiled into."""

    file: str | None  # as compiled; None for instructions without line information (one row per function)
    line: int | None  # 1-based; None for instructions without line information
    function: str  # mangled name of the function whose body holds the line; where several do (templates), the one with most samples
    samples: int  # of instructions whose innermost frame is this line (*self*)
    latency_samples: int | None  # of these, without issue; None when unknown
    inclusive_samples: int  # of instructions with this line in any frame of their inline chain; at least ``samples``
    inclusive_latency_samples: int | None  # of these, without issue; None when unknown
    # estimate of samples in functions *called* (not inlined) from this line, shared among the call sites by how often each executed; not contained in
    # ``inclusive_samples``
    called_samples: float
    by_reason: ReasonCounts  # self samples per stall reason
    inclusive_by_reason: ReasonCounts  # inclusive samples per stall reason

    @property
    def source_line(self) -> SourceLine | None:
        """The place; None for the row of a function without lines."""
        if self.file is None or self.line is None:
            return None
        return SourceLine(file=self.file, line=self.line)


class LoopRow(Struct, frozen=True, kw_only=True):
    """A natural loop of a function."""

    function: str  # mangled name of the section it is in
    header_pc_offset: int  # first instruction of the loop's header block
    # highest instruction address in the loop. Compilers put the rare parts of a loop behind the function's end, so what lies between header and last
    # instruction need not be in it: ``InstructionColumns.loop_depths`` tells.
    last_pc_offset: int
    depth: int  # 1 for an outermost loop
    file: str | None  # file of the loop's lines; None without line information
    first_line: int | None  # smallest line of the loop in ``file``; None without line information
    last_line: int | None  # largest line of the loop in ``file``; None without line information
    samples: int  # of all instructions in the loop, inner loops included
    latency_samples: int | None  # of these, without issue; None when unknown


class InstructionColumns(ColumnRecord, frozen=True, kw_only=True):
    """All instructions of a kernel's functions, in function order and address order within."""

    functions: tuple[str, ...]  # mangled names of the sections
    function_index: npt.NDArray[np.int32]  # int32[n] into ``functions``
    pc_offsets: npt.NDArray[np.int64]  # int64[n], bytes from the section's start; for foreign code the absolute address
    texts: tuple[str, ...]  # n disassembled instructions; empty strings where there is no disassembly
    chains: tuple[InlineChain, ...]  # distinct inline chains
    chain_index: npt.NDArray[np.int32]  # int32[n] into ``chains``; -1 without line
    reasons: tuple[str, ...]  # the k stall reasons
    all_samples: npt.NDArray[np.int64]  # int64[n, k]
    latency_samples: npt.NDArray[np.int64] | None  # int64[n, k]; None when unknown
    # int64[n], warp-level executions summed over launches (``inst_executed``); -1 where not collected. Of an aggregate those of a mean launch.
    executions: npt.NDArray[np.int64]
    # uint16[n], loops each instruction is in; 0 outside loops and where control flow is unknown
    loop_depths: npt.NDArray[np.uint16]
    # uint8[n]; with the other control columns all zero / 7 where unknown (``has_control`` False)
    stall_cycles: npt.NDArray[np.uint8]
    yield_flag: npt.NDArray[np.uint8]  # uint8[n]
    write_barrier: npt.NDArray[np.uint8]  # uint8[n], 7 = none
    read_barrier: npt.NDArray[np.uint8]  # uint8[n], 7 = none
    wait_mask: npt.NDArray[np.uint8]  # uint8[n]
    has_control: npt.NDArray[np.bool_]  # bool[n]

    def __len__(self) -> int:
        return len(self.texts)


class CodeFinding(Struct, frozen=True, kw_only=True):
    """Static finding on one line of a kernel, where no counter covers it."""

    check: str  # that found it
    file: str | None  # of the line, as compiled; None for code without lines
    line: int | None  # 1-based; None where the file is
    message: Sentence  # what there is
    remedy: Sentence  # what to do; may be empty
    certainty: str  # ``certain`` or ``likely``
    is_in_loop: bool  # the code of it runs in a loop
    is_costly: bool  # it matters outside loops too


class KernelReport(PartlyCompared, frozen=True, kw_only=True):
    """Results for one kernel, over all its launches in one profile."""

    UNCOMPARED = ("source_sizes", "code")

    name: str  # readable name
    mangled_name: str  # linkage name
    profile_path: Path | None  # the profile it was measured in; None when it came from no file
    measured_unix_s: int | None  # when; None when unknown
    # of its longest launch, in the heaviest of several launch contexts; without launches, grid and block are zeros. An aggregate whose launches
    # differ has neither.
    configuration: LaunchConfiguration
    device: DeviceReport  # the GPU
    duration_ns: float | None  # mean over launches; None when unknown
    duration_spread_ns: Spread | None  # mean, min, max, standard deviation; None when unknown
    samples_spread: Spread | None  # of total samples per launch; None without samples
    total_samples: int  # over all launches
    latency_samples: int | None  # of these, without issue; None when unknown
    by_reason: ReasonCounts  # per stall reason
    samples_truncated: bool  # at least one launch filled the sampling buffer
    launches: tuple[LaunchReport, ...]  # in profile order; empty for code without a profile
    functions: tuple[FunctionRow, ...]  # most samples first
    lines: tuple[LineRow, ...]  # most inclusive samples first
    loops: tuple[LoopRow, ...]  # by function and address
    instructions: InstructionColumns  # columns
    # path as compiled → text at the time of measuring, where the profile has it
    embedded_sources: Mapping[str, str] = field(default_factory=dict)
    # path as compiled → bytes of the source when it was compiled, where the compiler wrote them down. Not saved with a report.
    source_sizes: Mapping[str, int] = field(default_factory=dict)
    # samples moved to their causes, on the rows of ``instructions``; None for code without samples
    blame: KernelBlame | None = None
    # remedies, and why the others have none, weighted by time where there are several launch contexts; None where nobody was asked
    advice: KernelAdvice | None = None
    # the roofline and the answers to the other questions; None where nobody asked
    analyses: KernelAnalyses | None = None
    # what limits it, in the longest launch of its heaviest launch context; None where nobody asked
    limiter: Limiter | None = None
    # what the machine code alone says of requests to memory and branches that nobody counted, weightiest first; None where it could not be followed
    code_findings: tuple[CodeFinding, ...] | None = ()
    # what the instructions do, on the rows of ``instructions``; None in reports read from a file: it is not saved with a report
    code: KernelCode | None = None
    places: tuple[PlaceSamples, ...] = ()  # samples by the place that launched the kernel, where there are several
    # its launches by configuration and host path, heaviest first; empty where all are of one context
    contexts: tuple[LaunchContext, ...] = ()
    other_contexts: int = 0  # contexts of less time that were not judged by themselves
    library: str = ""  # it belongs to; empty for the user's own and for one of which nothing is known

    def mark(self, name: str) -> str:
        """A name of the kernel, marked with its library."""
        return f"{name} ({self.library} library kernel)" if self.library else name

    @property
    def rank(self) -> tuple[bool, float, str]:
        """Sorting key of lists of kernels: the user's own before those of libraries, longest total time first."""
        return bool(self.library), -self.total_duration_ns, self.mangled_name

    @property
    def total_duration_ns(self) -> float:
        """Time of all launches together; launches of unknown duration count nothing."""
        return sum(launch.total_duration_ns for launch in self.launches)

    @property
    def launch_count(self) -> int | None:
        """Executions the launches stand for; None when that of an aggregate is unknown."""
        return sum_known(launch.launch_count for launch in self.launches)

    @property
    def sampling(self) -> Sampling:
        """Sampling facts of all launches with samples together; a fact unknown of one launch, and a period in which they differ, is unknown."""
        found = [launch.sampling for launch in self.launches if launch.total_samples]
        if not found:
            return Sampling()
        periods = {one.period_cycles for one in found}
        return Sampling(
            period_cycles=periods.pop() if len(periods) == 1 else None,
            dropped_samples=sum_known(one.dropped_samples for one in found),
            foreign_samples=sum_known(one.foreign_samples for one in found),
            total_samples=sum_known(one.total_samples for one in found),
            is_simulated=any(one.is_simulated for one in found),
            unchecked=next(filter(None, (one.unchecked for one in found)), ""),
        )

    @property
    def is_simulated(self) -> bool:
        """Whether time, samples and counters come from a model."""
        return any(launch.sampling.is_simulated for launch in self.launches)

    @property
    def lacks_sass(self) -> bool:
        """Whether instructions of the kernel or functions it calls have no text, so causes and instruction advice are incomplete."""
        columns = self.instructions
        if "" not in columns.texts:
            return False
        foreign = {row.mangled_name for row in self.functions if row.role is FunctionRole.OUTSIDE_MODULE}
        is_own = [name not in foreign for name in columns.functions]
        return any(
            not text and is_own[index]
            for text, index in zip(columns.texts, columns.function_index.tolist(), strict=True)
        )

    def share_of(self, samples: int) -> Share:
        """``samples`` as a share of all of the kernel's samples, with its 95 % interval, which dropped samples widen."""
        return measure_share(samples, self.total_samples, self.sampling.dropped_samples or 0)


class Report(Struct, frozen=True, kw_only=True):
    """Results for one or more profiles."""

    problems: tuple[Problem, ...]  # what could not be read or is in doubt
    kernels: tuple[KernelReport, ...]  # in order of their rank
