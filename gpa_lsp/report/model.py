"""The :class:`Report`: what was found, free of any file it came from, ready to be shown, saved and indexed.

A report is self-contained: it can be written as JSON (``gpa-lsp/report/3``), read back on another machine without profile or cubin, and
rendered there. Rows per line and per function are objects; rows per instruction are columns, since there can be a hundred thousand.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.model import KernelAdvice
from gpa_lsp.analyses.limiter.model import Limiter
from gpa_lsp.analyses.model import KernelAnalyses
from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.figures import Share, Spread, measure_share, sum_known
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import InlineChain, SourceLine
from gpa_lsp.basis.prose import Sentence
from gpa_lsp.binary.model import SourceStamp
from gpa_lsp.blame.model import KernelBlame
from gpa_lsp.profile.sampling import Aggregate, Sampling
from gpa_lsp.report.code import KernelCode

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCount:
    """Samples with one stall reason.

    Attributes:
        all_samples: every sample.
        latency_samples: those taken when the scheduler issued nothing ("not issued"); None when unknown.
    """

    all_samples: int
    latency_samples: int | None


ReasonCounts = Mapping[str, ReasonCount]
"""Stall reason (Nsight's spelling) → its samples, only reasons with at least one sample, most samples first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchConfiguration:
    """How a kernel was launched.

    Attributes:
        grid: blocks in x, y, z; None when unknown.
        block: threads in x, y, z; None when unknown.
        registers_per_thread: None when unknown.
        shared_static_bytes: per block; None when unknown.
        shared_dynamic_bytes: per block; None when unknown.
    """

    grid: Dim3 | None
    block: Dim3 | None
    registers_per_thread: int | None
    shared_static_bytes: int | None
    shared_dynamic_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """The GPU; what the profile does not say is None.

    Attributes:
        name: marketing name.
        compute_capability: major and minor version.
        sm_count: streaming multiprocessors.
        sm_clock_hz: nominal SM clock.
    """

    name: str | None
    compute_capability: tuple[int, int] | None
    sm_count: int | None
    sm_clock_hz: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleNote:
    """A remark or an estimate of the profiler's own rules, kept apart from ours.

    Attributes:
        rule: the rule's name.
        kind: ``ok``, ``info``, ``warning``, ``error`` or ``optimization``.
        text: the remark.
        speedup_percent: percent of run time NVIDIA thinks can be saved; None when it does not say.
        speedup_is_global: of the whole kernel, not only of the part looked at; None when there is no estimate.
    """

    rule: str
    kind: str
    text: str
    speedup_percent: float | None = None
    speedup_is_global: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchReport:
    """One measured launch of a kernel.

    Attributes:
        index: position in the profile, 0-based.
        configuration: its launch configuration.
        duration_ns: None when unknown.
        total_samples: all stall samples.
        latency_samples: samples without issue; None when unknown.
        by_reason: per stall reason.
        samples_truncated: the sampling buffer was full; the samples cover only the start.
        failure: why it has no usable numbers; None when it has.
        nvtx_ranges: outermost first.
        call_stack: ``function (module)`` or ``function at file:line``, innermost first; host addresses are not kept.
        rules: what NVIDIA's own rules said.
        elapsed_cycles: SM cycles from start to end; None when not collected.
        aggregate: the launches this one stands for, whose mean its duration and cycles are and whose samples are added up; None for one launch.
        sampling: how it was sampled, and samples that are in no row.
    """

    index: int
    configuration: LaunchConfiguration
    duration_ns: float | None
    total_samples: int
    latency_samples: int | None
    by_reason: ReasonCounts
    samples_truncated: bool
    failure: str | None
    nvtx_ranges: tuple[str, ...] = ()
    call_stack: tuple[str, ...] = ()
    rules: tuple[RuleNote, ...] = ()
    elapsed_cycles: float | None = None
    aggregate: Aggregate | None = None
    sampling: Sampling = field(default_factory=Sampling)

    @property
    def launch_count(self) -> int | None:
        """How many executions it stands for; None when unknown."""
        return 1 if self.aggregate is None else self.aggregate.launches

    @property
    def total_duration_ns(self) -> float:
        """Time of all it stands for; 0 when unknown."""
        return (self.duration_ns or 0.0) * (self.launch_count or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchContext:
    """The launches of a kernel with one configuration from one host path, judged by themselves.

    Attributes:
        configuration: of these launches.
        call_stack: as of :class:`LaunchReport`.
        launches: their indices.
        launch_count: executions they stand for; None when that of an aggregate is unknown.
        ratio: part of the kernel's time; of its samples, or else launches, where the times are not known.
        duration_ns: mean over the launches; None when unknown.
        total_samples: of these launches.
        limiter: what limits it; None where the search failed.
        advice: on it; None where nobody was asked.
    """

    configuration: LaunchConfiguration
    call_stack: tuple[str, ...]
    launches: tuple[int, ...]
    launch_count: int | None
    ratio: float
    duration_ns: float | None
    total_samples: int
    limiter: Limiter | None
    advice: KernelAdvice | None


class FunctionRole(Enum):
    """What a function is to its kernel."""

    KERNEL = "kernel"
    DEVICE_FUNCTION = "device_function"
    """A section of its own in the same module."""
    SUB_FUNCTION = "sub_function"
    """A local function inside another function's section."""
    OUTSIDE_MODULE = "outside_module"
    """Code the module does not hold (the driver's printf, a system call)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """Samples of one function.

    Attributes:
        mangled_name: linkage name; ``<outside this module>`` for foreign code.
        name: readable name.
        role: what it is.
        instruction_count: 0 for foreign code.
        has_lines: a line table covers it.
        samples: in its own instructions.
        latency_samples: of these, without issue; None when unknown.
        by_reason: per stall reason.
        registers: per thread; None when unknown.
        section: mangled name of the section its instructions are in; another function's for a local function. None when unknown.
        start_offset: its first instruction, bytes from the section's start.
    """

    mangled_name: str
    name: str
    role: FunctionRole
    instruction_count: int
    has_lines: bool
    samples: int
    latency_samples: int | None
    by_reason: ReasonCounts
    registers: int | None
    section: str | None = None
    start_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """Samples of one source line, over all functions it was compiled into.

    Attributes:
        file: as compiled; None for instructions without line information (one row per function).
        line: 1-based; None for instructions without line information.
        function: mangled name of the function whose body holds the line; where several do (templates), the one with most samples.
        samples: of instructions whose innermost frame is this line (*self*).
        latency_samples: of these, without issue; None when unknown.
        inclusive_samples: of instructions with this line in any frame of their inline chain; at least ``samples``.
        inclusive_latency_samples: of these, without issue; None when unknown.
        called_samples: estimate of samples in functions *called* (not inlined) from this line, shared among the call sites by how often each
            executed; not contained in ``inclusive_samples``.
        by_reason: self samples per stall reason.
        inclusive_by_reason: inclusive samples per stall reason.
    """

    file: str | None
    line: int | None
    function: str
    samples: int
    latency_samples: int | None
    inclusive_samples: int
    inclusive_latency_samples: int | None
    called_samples: float
    by_reason: ReasonCounts
    inclusive_by_reason: ReasonCounts

    @property
    def source_line(self) -> SourceLine | None:
        """The place; None for the row of a function without lines."""
        if self.file is None or self.line is None:
            return None
        return SourceLine(file=self.file, line=self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRow:
    """A natural loop of a function.

    Attributes:
        function: mangled name of the section it is in.
        header_pc_offset: first instruction of the loop's header block.
        last_pc_offset: highest instruction address in the loop. Compilers put the rare parts of a loop behind the function's end, so what
            lies between header and last instruction need not be in it: ``InstructionColumns.loop_depths`` tells.
        depth: 1 for an outermost loop.
        file: file of the loop's lines; None without line information.
        first_line: smallest line of the loop in ``file``; None without line information.
        last_line: largest line of the loop in ``file``; None without line information.
        samples: of all instructions in the loop, inner loops included.
        latency_samples: of these, without issue; None when unknown.
    """

    function: str
    header_pc_offset: int
    last_pc_offset: int
    depth: int
    file: str | None
    first_line: int | None
    last_line: int | None
    samples: int
    latency_samples: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionColumns:
    """All instructions of a kernel's functions, in function order and address order within.

    Attributes:
        functions: mangled names of the sections.
        function_index: int32[n] into ``functions``.
        pc_offsets: int64[n], bytes from the section's start; for foreign code the absolute address.
        texts: n disassembled instructions; empty strings where there is no disassembly.
        chains: distinct inline chains.
        chain_index: int32[n] into ``chains``; -1 without line.
        reasons: the k stall reasons.
        all_samples: int64[n, k].
        latency_samples: int64[n, k]; None when unknown.
        executions: int64[n], warp-level executions summed over launches (``inst_executed``); -1 where not collected. Of an aggregate those of a
            mean launch.
        loop_depths: uint16[n], loops each instruction is in; 0 outside loops and where control flow is unknown.
        stall_cycles: uint8[n]; with the other control columns all zero / 7 where unknown (``has_control`` False).
        yield_flag: uint8[n].
        write_barrier: uint8[n], 7 = none.
        read_barrier: uint8[n], 7 = none.
        wait_mask: uint8[n].
        has_control: bool[n].
    """

    functions: tuple[str, ...]
    function_index: npt.NDArray[np.int32]
    pc_offsets: npt.NDArray[np.int64]
    texts: tuple[str, ...]
    chains: tuple[InlineChain, ...]
    chain_index: npt.NDArray[np.int32]
    reasons: tuple[str, ...]
    all_samples: npt.NDArray[np.int64]
    latency_samples: npt.NDArray[np.int64] | None
    executions: npt.NDArray[np.int64]
    loop_depths: npt.NDArray[np.uint16]
    stall_cycles: npt.NDArray[np.uint8]
    yield_flag: npt.NDArray[np.uint8]
    write_barrier: npt.NDArray[np.uint8]
    read_barrier: npt.NDArray[np.uint8]
    wait_mask: npt.NDArray[np.uint8]
    has_control: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFinding:
    """What the code of a kernel says of one line where nothing measured says it.

    Attributes:
        check: that found it.
        file: of the line, as compiled; None for code without lines.
        line: 1-based; None where the file is.
        message: what there is.
        remedy: what to do; may be empty.
        certainty: ``certain`` or ``likely``.
        is_in_loop: the code of it runs in a loop.
        is_costly: it matters outside loops too.
    """

    check: str
    file: str | None
    line: int | None
    message: Sentence
    remedy: Sentence
    certainty: str
    is_in_loop: bool
    is_costly: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSamples:
    """Samples of the launches from one place of the host program.

    Attributes:
        call_stack: as of :class:`LaunchReport`.
        rows: int64[m], ascending: instructions with samples.
        all_samples: int64[m, k], of each, by the reasons of the instructions.
    """

    call_stack: tuple[str, ...]
    rows: npt.NDArray[np.int64]
    all_samples: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """Everything about one kernel, over all its launches in one profile.

    Attributes:
        name: readable name.
        mangled_name: linkage name.
        profile_path: the profile it was measured in; None when it came from no file.
        measured_unix_s: when; None when unknown.
        configuration: of its longest launch, in the heaviest of several launch contexts; without launches, grid and block are zeros. An
            aggregate whose launches differ has neither.
        device: the GPU.
        duration_ns: mean over launches; None when unknown.
        duration_spread_ns: mean, min, max, standard deviation; None when unknown.
        samples_spread: of total samples per launch; None without samples.
        total_samples: over all launches.
        latency_samples: of these, without issue; None when unknown.
        by_reason: per stall reason.
        samples_truncated: at least one launch filled the sampling buffer.
        launches: in profile order; empty for code without a profile.
        functions: most samples first.
        lines: most inclusive samples first.
        loops: by function and address.
        instructions: columns.
        embedded_sources: path as compiled → text at the time of measuring, where the profile has it.
        source_stamps: path as compiled → what the source looked like to the compiler, where it wrote that down. Not saved with a report.
        blame: samples moved to their causes, on the rows of ``instructions``; None for code without samples.
        advice: remedies, and why the others have none, weighted by time where there are several launch contexts; None where nobody was asked.
        analyses: the roofline and the answers to the other questions; None where nobody asked.
        limiter: what limits it, in the longest launch of its heaviest launch context; None where nobody asked.
        contexts: its launches by configuration and host path, heaviest first; empty where all are of one context.
        other_contexts: contexts of less time that were not judged by themselves.
        code_findings: what the machine code alone says of requests to memory and branches that nobody counted, weightiest first; None where it
            could not be followed.
        code: what the instructions do, on the rows of ``instructions``; None in reports read from a file: it is not saved with a report.
        places: samples by the place that launched the kernel, where there are several.
        library: it belongs to; empty for the user's own and for one of which nothing is known.
    """

    name: str
    mangled_name: str
    profile_path: Path | None
    measured_unix_s: int | None
    configuration: LaunchConfiguration
    device: DeviceReport
    duration_ns: float | None
    duration_spread_ns: Spread | None
    samples_spread: Spread | None
    total_samples: int
    latency_samples: int | None
    by_reason: ReasonCounts
    samples_truncated: bool
    launches: tuple[LaunchReport, ...]
    functions: tuple[FunctionRow, ...]
    lines: tuple[LineRow, ...]
    loops: tuple[LoopRow, ...]
    instructions: InstructionColumns
    embedded_sources: Mapping[str, str] = field(default_factory=dict)
    source_stamps: Mapping[str, SourceStamp] = field(default_factory=dict, compare=False)
    blame: KernelBlame | None = None
    advice: KernelAdvice | None = None
    analyses: KernelAnalyses | None = None
    limiter: Limiter | None = None
    code_findings: tuple[CodeFinding, ...] | None = ()
    code: KernelCode | None = field(default=None, compare=False)
    places: tuple[PlaceSamples, ...] = ()
    contexts: tuple[LaunchContext, ...] = ()
    other_contexts: int = 0
    library: str = ""

    def mark(self, name: str) -> str:
        """A name of the kernel with the library that it belongs to."""
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
        """That of all launches with samples together: what one of them does not know is unknown, and so is a period in which they differ."""
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
        """Time, samples and counters are those of a model: nothing of them was measured."""
        return any(launch.sampling.is_simulated for launch in self.launches)

    @property
    def lacks_sass(self) -> bool:
        """Instructions of its own, or of functions it calls, have no text: causes, and whatever else looks at instructions, are not whole."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found in one or more profiles.

    Attributes:
        problems: what could not be read or is in doubt.
        kernels: in order of their rank.
    """

    problems: tuple[Problem, ...]
    kernels: tuple[KernelReport, ...]
