"""Model that every profile reader produces and every later room consumes: :class:`Profile`.

A profile holds *launches* (one measured kernel execution each) and the *modules* (loaded device images) their code lives in. Stall samples
are columns over absolute instruction addresses; turning an address into a function and an offset is the ``kernel`` room's work.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct, field

from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.json_elements import Address, Capability
from gpa_lsp.foundation.records import ColumnRecord, SharedFacts
from gpa_lsp.profile.launch_configuration import LaunchConfiguration

_MOST_COUNTED = 1 << 53  # Of things: up to here a float tells one more from one less
_Count = Annotated[int, Meta(ge=0, le=_MOST_COUNTED - 1)]


class Sampling(Struct, frozen=True, kw_only=True):
    """Sampling parameters, and samples in no row, of a launch or the whole run. None is unknown, not zero."""

    # SM cycles between two samples of a scheduler
    period_cycles: Annotated[int, Meta(ge=1, le=_MOST_COUNTED - 1)] | None = None
    # taken and lost, by hardware or collector, at unknown instructions
    dropped_samples: _Count | None = None
    foreign_samples: _Count | None = None  # of code that belongs to no launch of the profile, known by number only
    total_samples: _Count | None = None  # the collector's own count of everything: in rows, foreign and dropped
    is_simulated: bool = False  # a model of the GPU says so, and nothing was measured
    # why no time that the model gives such launches was checked; empty where some were, and where it was measured
    unchecked: str = ""


class Aggregate(Struct, frozen=True, kw_only=True):
    """Launches of one kernel that a collector has added up into one record."""

    # how many, at least 1; None when the collector does not know
    launches: Annotated[int, Meta(ge=1)] | None


_Size = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
Dim3 = tuple[_Size, _Size, _Size]
MetricScalar = int | float | str

# Of what a profile says, in any unit: a counter holds 1.8e19, and no rate of today's machines comes near 1e24 a second
MOST_MEASURED = 1e24

LEAST_MEASURED = 1e-24  # Of what a profile says and is not zero, in any unit

_MOST_INTERVAL = 31  # Of Nsight Compute's sampling intervals; larger is damage


class Metric(Struct, frozen=True, kw_only=True):
    """One collected metric of one launch."""

    name: str  # the profiler's full name, e.g. ``gpu__time_duration.sum``.
    value: MetricScalar | None  # the aggregate; None when the report stores only instances
    # correlation ids, in file order: instruction addresses for per-instruction metrics, opcode names for opcode tables, time stamps in ns for time
    # series. Empty when there are none.
    instance_ids: tuple[int | str, ...] = ()
    instance_values: tuple[MetricScalar, ...] = ()  # the value of each instance; same length as ``instance_ids``
    over_time: bool = False  # the correlation ids are GPU time stamps, not addresses


class StallSamples(ColumnRecord, frozen=True, kw_only=True):
    """Warp-state samples of one launch by instruction address and stall reason.

    The sampled address is the *next instruction to issue* of the sampled warp.
    """

    addresses: npt.NDArray[np.uint64]  # uint64[n], absolute virtual addresses, ascending, unique
    # the k stall reasons in Nsight Compute's spelling, sorted; ``selected`` is a warp that issued
    reasons: tuple[str, ...]
    all_samples: npt.NDArray[np.int64]  # int64[n, k], every sample
    # int64[n, k], the subset taken in cycles in which the scheduler issued nothing (Nsight's "not issued"). Element by element at most
    # ``all_samples``. None when the collector cannot tell them from the others.
    latency_samples: npt.NDArray[np.int64] | None

    @property
    def total_samples(self) -> int:
        """All samples of the launch."""
        return int(self.all_samples.sum())


class LoadedFunction(Struct, frozen=True, kw_only=True):
    """A device function at its load address."""

    name: str  # mangled name
    address: int  # absolute virtual address of its first instruction
    symbol_index: int | None = None  # index in the image's ``.symtab``; None when not stored


class Module(Struct, SharedFacts, frozen=True, kw_only=True, dict=True, weakref=True):
    """A loaded device image."""

    module_id: int  # the profile's own id, unique in the profile
    image: bytes | None  # the cubin's bytes (ELF); None when the profile does not hold it
    compute_capability: tuple[int, int] | None  # (major, minor) the image was compiled for; None when not stored
    # functions with load addresses, ascending by address; empty in reports before 2022.2
    functions: tuple[LoadedFunction, ...] = ()
    # path as compiled → text of source files embedded in the profile
    sources: Mapping[str, str] = field(default_factory=dict)


class Device(Struct, frozen=True, kw_only=True):
    """The GPU a launch ran on."""

    name: str | None = None  # marketing name; None when not stored
    compute_capability: Capability | None = None  # (major, minor); None when not stored
    sm_count: int | None = None  # streaming multiprocessors; None when not stored
    # the device's nominal SM clock in Hz (a device attribute, not what the launch ran at); None when not stored
    sm_clock_hz: float | None = None
    # every attribute the profile stores, by the profiler's name (clock rates there are in kHz)
    attributes: Mapping[str, MetricScalar] = field(default_factory=dict)


class HostFrame(Struct, frozen=True, kw_only=True):
    """A frame of the CPU call stack a kernel was launched from."""

    function: str | None = None  # name; None when only the address is known
    module: str | None = None  # library or executable, base name only; None when not stored
    file: str | None = None  # source file; None when not stored
    line: int | None = None  # 1-based; None when not stored
    address: Address | None = None  # absolute host address; None when not stored

    def __str__(self) -> str:
        name = self.function or "?"
        if self.file is not None:
            return f"{name} at {self.file}:{self.line}" if self.line else f"{name} at {self.file}"
        return f"{name} ({self.module})" if self.module else name


class PlaceSamples(ColumnRecord, frozen=True, kw_only=True):
    """Samples of the launches from one place of the host program."""

    call_stack: tuple[str, ...]  # as of :class:`LaunchReport`
    rows: npt.NDArray[np.int64]  # int64[m], ascending: instructions with samples
    all_samples: npt.NDArray[np.int64]  # int64[m, k], of each, by the reasons of the instructions


class RuleSpeedup(Struct, frozen=True, kw_only=True):
    """NVIDIA's own estimate for one rule."""

    percent: float  # percent of run time saved, as the profiler prints it; not a factor
    is_global: bool  # of the whole kernel (True) or of the part the rule looks at (False)


MessageKind = Literal["ok", "info", "warning", "error", "optimization"]


class RuleMessage(Struct, frozen=True, kw_only=True):
    """One message of one rule."""

    kind: MessageKind
    title: str = ""  # may be empty
    text: str  # with the profiler's link markup already removed


class SourceMarker(Struct, frozen=True, kw_only=True):
    """A rule's remark on one line or one instruction."""

    address: Address | None = None  # absolute instruction address; None for a source-line marker
    file: str | None = None  # path as compiled; None for an instruction marker
    line: int | None = None  # 1-based; None for an instruction marker
    text: str  # the remark
    kind: MessageKind


class RuleResult(Struct, frozen=True, kw_only=True):
    """Result of one of NVIDIA's rules for a launch."""

    identifier: str  # the rule's own name, e.g. ``CPIStall``.
    name: str = ""  # as shown to people
    section: str = ""  # identifier of the report section it belongs to
    messages: tuple[RuleMessage, ...] = ()  # in the rule's order; empty when the rule had nothing to say
    speedups: tuple[RuleSpeedup, ...] = ()  # NVIDIA's estimates (2023.2 and later)
    markers: tuple[SourceMarker, ...] = ()  # remarks on lines and instructions (2023.2 and later)


class Launch(Struct, frozen=True, kw_only=True):
    """One measured execution of one kernel, or many of them in one record (``aggregate``)."""

    index: int  # position in the profile, 0-based
    mangled_name: str  # linkage name
    plain_name: str = ""  # function name without parameters; may be empty
    demangled_name: str = ""  # as the profiler demangled it; may be empty
    module_id: int | None = None  # the :class:`Module` its code is in; None when the profile does not say
    grid: Dim3 | None = None  # blocks in x, y, z; (0, 0, 0) if profiling failed; None if the collector does not know
    block: Dim3 | None = None  # threads in x, y, z; None when the collector does not know
    device: Device = field(default_factory=Device)  # the GPU
    created_unix_s: int | None = None  # when the result was written, seconds since 1970; None when not stored
    context_id: int | None = None  # CUDA context; None when not stored
    stream_id: int | None = None  # CUDA stream; None when not stored
    # every metric by name (per-PC stall families included); a mapping that decodes on access. Of an aggregate the mean of its launches, the duration
    # too.
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    # stall samples, of all launches of an aggregate together; None when the report has none
    samples: StallSamples | None = None
    samples_truncated: bool = False  # the sampling buffer ran full, so samples cover only the start of the execution
    # load addresses of the kernel and the device functions it calls, ascending; empty when not stored. Names are in the module's function table, if
    # there is one.
    function_addresses: tuple[int, ...] = ()
    nvtx_ranges: tuple[str, ...] = ()  # names of the NVTX ranges the launch was in, outermost first
    call_stack: tuple[HostFrame, ...] = ()  # CPU frames, innermost first; empty when not collected
    rules: tuple[RuleResult, ...] = ()  # NVIDIA's rule results
    failure: str | None = None  # why the launch has no usable numbers; None when it has
    sampling: Sampling = field(default_factory=Sampling)  # how its stalls were sampled
    aggregate: Aggregate | None = None  # the launches this record stands for; None when it is one

    @property
    def launch_count(self) -> int | None:
        """Number of executions the record stands for; None if unknown."""
        return 1 if self.aggregate is None else self.aggregate.launches

    @property
    def sampling_period_cycles(self) -> int | None:
        """SM cycles between two samples of a scheduler: as the collector says, else by Nsight Compute's metrics; None when unknown.

        Source: ``smsp__pcsamp_interval`` = n stands for 2^(5 + n) cycles, as ``smsp__pcsamp_interval_cycles`` says beside it.
        """
        if self.sampling.period_cycles is not None:
            return self.sampling.period_cycles
        exponent = self.read_count("smsp__pcsamp_interval")
        by_exponent = 1 << (5 + exponent) if exponent is not None and exponent <= _MOST_INTERVAL else None
        return self.read_count("smsp__pcsamp_interval_cycles") or by_exponent

    @property
    def configuration(self) -> LaunchConfiguration:
        """Grid, block, and what a thread and a block take."""
        return LaunchConfiguration(
            grid=self.grid,
            block=self.block,
            registers_per_thread=self.read_count("launch__registers_per_thread"),
            shared_static_bytes=self.read_count("launch__shared_mem_per_block_static"),
            shared_dynamic_bytes=self.read_count("launch__shared_mem_per_block_dynamic"),
        )

    @property
    def display_name(self) -> str:
        """Most readable name available."""
        return self.demangled_name or self.plain_name or self.mangled_name

    def read_number(self, metric_name: str) -> float | None:
        """Aggregate of a metric as a float; None if it was not collected, is text, or cannot be a measurement.

        Values beyond :data:`MOST_MEASURED` or below :data:`LEAST_MEASURED` are damage; products and quotients of two others do not overflow.
        """
        metric = self.metrics.get(metric_name)
        if metric is None or metric.value is None or isinstance(metric.value, str):
            return None
        size = abs(metric.value)
        if size == 0:
            return 0.0
        return float(metric.value) if LEAST_MEASURED <= size <= MOST_MEASURED else None

    def read_count(self, metric_name: str) -> int | None:
        """Aggregate of a metric as a whole number; None if there is none, or it is negative or of more than 53 bits."""
        value = self.read_number(metric_name)
        return round(value) if value is not None and 0 <= value <= _MOST_COUNTED else None


class Profile(Struct, frozen=True, kw_only=True):
    """Content of one profile file."""

    path: Path | None  # the file; None for bytes from elsewhere
    format_name: str  # e.g. ``ncu-report`` or ``gpa-lsp/profile/2``.
    tool_version: str | None  # the collector's version; None when not stored
    modules: Mapping[int, Module]  # loaded images, by id
    launches: tuple[Launch, ...]  # in file order
    problems: tuple[Problem, ...] = ()  # what could not be read while the rest could
    # the files beside this one that it names and that were read, by their paths from its folder
    other_files: tuple[str, ...] = ()
    # what is known of the sampling of the whole run and belongs to no launch of it: samples dropped or foreign, no matter when
    sampling: Sampling = field(default_factory=Sampling)
    # a buffer of the run ran full, so that what ran later was sampled less or not at all
    samples_truncated: bool = False


class LaunchOutline(Struct, frozen=True, kw_only=True):
    """Facts about a launch before it is read."""

    index: int  # its position in the profile
    mangled_name: str  # of its kernel
    duration_ns: float | None  # None when not stored


class OpenedProfile(Protocol):
    """Profile that can be read launch by launch, so that the most important come first."""

    @property
    def launches(self) -> tuple[LaunchOutline, ...]:
        """All launches, in file order."""
        ...

    def read(self, numbers: Collection[int]) -> Profile:
        """Profile with some of its launches, by index; modules are the same objects each time."""
        ...
