"""What every profile reader produces and every later room consumes: a :class:`Profile`.

A profile holds *launches* (one measured kernel execution each) and the *modules* (loaded device images) their code lives in. Stall samples
are columns over absolute instruction addresses; turning an address into a function and an offset is the ``kernel`` room's work.
"""

from collections.abc import Collection, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.shared_facts import SharedFacts
from gpa_lsp.profile.sampling import Aggregate, Sampling

Dim3 = tuple[int, int, int]
MetricScalar = int | float | str

MOST_MEASURED = 1e24
"""Of what a profile says, in any unit: a counter holds 1.8e19, and no rate of today's machines comes near 1e24 a second."""

LEAST_MEASURED = 1e-24
"""Of what a profile says and is not zero, in any unit."""

_MOST_INTERVAL = 31
"""Of Nsight Compute's sampling intervals; larger is damage."""

_MOST_COUNTED = 1 << 53
"""Of things: up to here a float tells one more from one less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One collected metric of one launch.

    Attributes:
        name: the profiler's full name, e.g. ``gpu__time_duration.sum``.
        value: the aggregate; None when the report stores only instances.
        instance_ids: correlation ids, in file order: instruction addresses for per-instruction metrics, opcode names for opcode tables, time
            stamps in ns for time series. Empty when there are none.
        instance_values: the value of each instance; same length as ``instance_ids``.
        over_time: the correlation ids are GPU time stamps, not addresses.
    """

    name: str
    value: MetricScalar | None
    instance_ids: tuple[int | str, ...] = ()
    instance_values: tuple[MetricScalar, ...] = ()
    over_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StallSamples:
    """Warp-state samples of one launch by instruction address and stall reason.

    The sampled address is the *next instruction to issue* of the sampled warp.

    Attributes:
        addresses: uint64[n], absolute virtual addresses, ascending, unique.
        reasons: the k stall reasons in Nsight Compute's spelling, sorted; ``selected`` is a warp that issued.
        all_samples: int64[n, k], every sample.
        latency_samples: int64[n, k], the subset taken in cycles in which the scheduler issued nothing (Nsight's "not issued"). Element by
            element at most ``all_samples``. None when the collector cannot tell them from the others.
    """

    addresses: npt.NDArray[np.uint64]
    reasons: tuple[str, ...]
    all_samples: npt.NDArray[np.int64]
    latency_samples: npt.NDArray[np.int64] | None

    @property
    def total_samples(self) -> int:
        """All samples of the launch."""
        return int(self.all_samples.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFunction:
    """A device function at its load address.

    Attributes:
        name: mangled name.
        address: absolute virtual address of its first instruction.
        symbol_index: index in the image's ``.symtab``; None when not stored.
    """

    name: str
    address: int
    symbol_index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Module(SharedFacts):
    """A loaded device image.

    Attributes:
        module_id: the profile's own id, unique in the profile.
        image: the cubin's bytes (ELF); None when the profile does not hold it.
        compute_capability: (major, minor) the image was compiled for; None when not stored.
        functions: functions with load addresses, ascending by address; empty in reports before 2022.2.
        sources: path as compiled → text of source files embedded in the profile.
    """

    module_id: int
    image: bytes | None
    compute_capability: tuple[int, int] | None
    functions: tuple[LoadedFunction, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The GPU a launch ran on.

    Attributes:
        name: marketing name; None when not stored.
        compute_capability: (major, minor); None when not stored.
        sm_count: streaming multiprocessors; None when not stored.
        sm_clock_hz: the device's nominal SM clock in Hz (a device attribute, not what the launch ran at); None when not stored.
        attributes: every attribute the profile stores, by the profiler's name (clock rates there are in kHz).
    """

    name: str | None
    compute_capability: tuple[int, int] | None
    sm_count: int | None
    sm_clock_hz: float | None
    attributes: Mapping[str, MetricScalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFrame:
    """A frame of the CPU call stack a kernel was launched from.

    Attributes:
        function: name; None when only the address is known.
        module: library or executable, base name only; None when not stored.
        file: source file; None when not stored.
        line: 1-based; None when not stored.
        address: absolute host address; None when not stored.
    """

    function: str | None
    module: str | None
    file: str | None
    line: int | None
    address: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSpeedup:
    """NVIDIA's own estimate for one rule.

    Attributes:
        percent: percent of run time saved, as the profiler prints it; not a factor.
        is_global: of the whole kernel (True) or of the part the rule looks at (False).
    """

    percent: float
    is_global: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusMetric:
    """A metric a rule bases its word on.

    Attributes:
        name: metric name.
        value: its value.
        severity: the profiler's number (0, 1, 2); its order is not documented.
        advice: what NVIDIA says to do with it; may be empty.
    """

    name: str
    value: float
    severity: int
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMessage:
    """One message of one rule.

    Attributes:
        kind: ``ok``, ``info``, ``warning``, ``error`` or ``optimization``.
        title: may be empty.
        text: with the profiler's link markup already removed.
    """

    kind: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMarker:
    """A rule's remark on one line or one instruction.

    Attributes:
        address: absolute instruction address; None for a source-line marker.
        file: path as compiled; None for an instruction marker.
        line: 1-based; None for an instruction marker.
        text: the remark.
        kind: as in :class:`RuleMessage`.
    """

    address: int | None
    file: str | None
    line: int | None
    text: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTableColumn:
    """One column of a rule's table.

    Attributes:
        name: its heading.
        values: top to bottom; text with the profiler's link markup already removed.
    """

    name: str
    values: tuple[float | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTable:
    """A table a rule prints under its message (Nsight Compute 2026.2 and later)."""

    title: str
    description: str
    columns: tuple[RuleTableColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What one of NVIDIA's own rules said about a launch.

    Attributes:
        identifier: the rule's own name, e.g. ``CPIStall``.
        name: as shown to people.
        section: identifier of the report section it belongs to.
        messages: in the rule's order; empty when the rule had nothing to say.
        speedups: NVIDIA's estimates (2023.2 and later).
        focus_metrics: metrics its word is based on.
        markers: remarks on lines and instructions (2023.2 and later).
        source_metrics: names of per-instruction metrics the rule tells to look at.
        tables: tables under its messages.
    """

    identifier: str
    name: str
    section: str
    messages: tuple[RuleMessage, ...] = ()
    speedups: tuple[RuleSpeedup, ...] = ()
    focus_metrics: tuple[FocusMetric, ...] = ()
    markers: tuple[SourceMarker, ...] = ()
    source_metrics: tuple[str, ...] = ()
    tables: tuple[RuleTable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One measured execution of one kernel, or many of them in one record (``aggregate``).

    Attributes:
        index: position in the profile, 0-based.
        mangled_name: linkage name.
        plain_name: function name without parameters; may be empty.
        demangled_name: as the profiler demangled it; may be empty.
        module_id: the :class:`Module` its code is in; None when the profile does not say.
        grid: blocks in x, y, z; (0, 0, 0) when profiling failed; None when the collector does not know.
        block: threads in x, y, z; None when the collector does not know.
        device: the GPU.
        created_unix_s: when the result was written, seconds since 1970; None when not stored.
        context_id: CUDA context; None when not stored.
        stream_id: CUDA stream; None when not stored.
        metrics: every metric by name (per-PC stall families included); a mapping that decodes on access. Of an aggregate the mean of its
            launches, the duration too.
        samples: stall samples, of all launches of an aggregate together; None when the report has none.
        samples_truncated: the sampling buffer ran full, so samples cover only the first part of the execution.
        function_addresses: load addresses of the kernel and the device functions it calls, ascending; empty when not stored. Names are in the
            module's function table, if there is one.
        nvtx_ranges: names of the NVTX ranges the launch was in, outermost first.
        call_stack: CPU frames, innermost first; empty when not collected.
        rules: NVIDIA's rule results.
        failure: why the launch has no usable numbers; None when it has.
        sampling: how its stalls were sampled.
        aggregate: the launches this record stands for; None when it is one.
    """

    index: int
    mangled_name: str
    plain_name: str
    demangled_name: str
    module_id: int | None
    grid: Dim3 | None
    block: Dim3 | None
    device: Device
    created_unix_s: int | None
    context_id: int | None
    stream_id: int | None
    metrics: Mapping[str, Metric]
    samples: StallSamples | None
    samples_truncated: bool
    function_addresses: tuple[int, ...] = ()
    nvtx_ranges: tuple[str, ...] = ()
    call_stack: tuple[HostFrame, ...] = ()
    rules: tuple[RuleResult, ...] = ()
    failure: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    aggregate: Aggregate | None = None

    @property
    def launch_count(self) -> int | None:
        """How many executions the record stands for; None when that is not known."""
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
    def display_name(self) -> str:
        """The most readable name there is."""
        return self.demangled_name or self.plain_name or self.mangled_name

    def read_number(self, metric_name: str) -> float | None:
        """The aggregate of a metric as a float; None when it was not collected, is text, or is nothing that can be measured.

        What no counter can hold (not finite, or beyond :data:`MOST_MEASURED`) is damage, and so is a fraction no two counters have; nobody
        who multiplies or divides two numbers of a profile has to fear an overflow.
        """
        metric = self.metrics.get(metric_name)
        if metric is None or metric.value is None or isinstance(metric.value, str):
            return None
        size = abs(metric.value)
        if size == 0:
            return 0.0
        return float(metric.value) if LEAST_MEASURED <= size <= MOST_MEASURED else None

    def read_count(self, metric_name: str) -> int | None:
        """The aggregate of a metric as a whole number; None when it has none, or one that counts nothing: negative, or of more than 53 bits."""
        value = self.read_number(metric_name)
        return round(value) if value is not None and 0 <= value <= _MOST_COUNTED else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything one profile file says.

    Attributes:
        path: the file; None for bytes from elsewhere.
        format_name: e.g. ``ncu-report`` or ``gpa-lsp/profile/2``.
        tool_version: the collector's version; None when not stored.
        modules: loaded images, by id.
        launches: in file order.
        problems: what could not be read while the rest could.
        other_files: the files beside this one that it names and that were read, by their paths from its folder.
        sampling: what is known of the sampling of the whole run and belongs to no launch of it: samples dropped or foreign, no matter when.
        samples_truncated: a buffer of the run ran full, so that what ran later was sampled less or not at all.
    """

    path: Path | None
    format_name: str
    tool_version: str | None
    modules: Mapping[int, Module]
    launches: tuple[Launch, ...]
    problems: tuple[Problem, ...] = ()
    other_files: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    samples_truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOutline:
    """What is known of a launch before it is read.

    Attributes:
        index: its position in the profile.
        mangled_name: of its kernel.
        duration_ns: None when not stored.
    """

    index: int
    mangled_name: str
    duration_ns: float | None


class OpenedProfile(Protocol):
    """A profile that can be read launch by launch: of a large one the launches that matter most come first."""

    @property
    def launches(self) -> tuple[LaunchOutline, ...]:
        """All of them, in file order."""
        ...

    def read(self, numbers: Collection[int]) -> Profile:
        """The profile with some of its launches only, by index; the modules are the same objects each time."""
        ...
