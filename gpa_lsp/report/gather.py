"""Assembly of joined kernels into a :class:`~gpa_lsp.report.model.Report`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.line_table import find_source_sizes
from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses, Limiter
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.figures import Spread, measure_spread, sum_known
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_duration_ns
from gpa_lsp.foundation.ownership import LINE_REMEDIES, find_language
from gpa_lsp.kernel.calls import estimate_called_samples
from gpa_lsp.kernel.model import OUTSIDE_MODULE, FunctionSamples, Kernel
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.kernel.scatter import group_contexts
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.profile.model import Launch, RuleResult
from gpa_lsp.report.count import (
    build_instruction_columns,
    build_kernel_code,
    count_reasons,
    list_lines,
    list_loops,
    number_routines,
    sum_all,
    sum_rows,
)
from gpa_lsp.report.model import (
    CodeFinding,
    DeviceReport,
    FunctionRole,
    FunctionRow,
    KernelReport,
    LaunchContext,
    LaunchReport,
    Report,
    RuleNote,
    measure_launch_spread,
)

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.static_model import StaticFinding


def list_functions(kernel: Kernel) -> tuple[FunctionRow, ...]:
    """One row per function and per local function inside another's section, most samples first. Rows do not overlap."""
    rows: list[FunctionRow] = []
    for function in kernel.functions:
        rows.extend(_rows_of_section(kernel, function))
    rows.sort(key=lambda row: (-row.samples, row.role is not FunctionRole.KERNEL, row.mangled_name))
    return tuple(rows)


def _rows_of_section(kernel: Kernel, function: FunctionSamples) -> list[FunctionRow]:
    rows = []
    for number, sub in enumerate(function.function.sub_functions if function.function is not None else (), start=1):
        row = _make_row(kernel, function, (sub.name, FunctionRole.SUB_FUNCTION), function.routine_index == number)
        rows.append(replace(row, start_offset=sub.start_offset))
    role = FunctionRole.DEVICE_FUNCTION
    if function.name == kernel.mangled_name:
        role = FunctionRole.KERNEL
    elif function.name == OUTSIDE_MODULE:
        role = FunctionRole.OUTSIDE_MODULE
    rows.append(_make_row(kernel, function, (function.name, role), function.routine_index == 0))
    return rows


def _make_row(
    kernel: Kernel, function: FunctionSamples, identity: tuple[str, FunctionRole], rows: npt.NDArray[np.bool_]
) -> FunctionRow:
    mangled_name, role = identity
    every, latency = function.all_samples[rows].sum(axis=0), sum_rows(function.latency_samples, rows)
    return FunctionRow(
        mangled_name=mangled_name,
        name=demangle(kernel.name if role is FunctionRole.KERNEL else mangled_name),
        role=role,
        instruction_count=int(rows.sum()) if function.function is not None else 0,
        has_lines=bool((function.chain_index[rows] >= 0).any()),
        samples=int(every.sum()),
        latency_samples=sum_all(latency),
        by_reason=count_reasons(kernel.reasons, every, latency),
        registers=function.function.registers if function.function is not None else None,
        section=function.name,
    )


_SHORT_NS = 1e6  # A longer launch that was sampled has samples, unless they were lost otherwise. Ours.

_RECORD_IT = "record with Nsight Compute to find out"
_MOST_NAMED = 3  # Kernels of a note


class AnalysedKernel(Struct, frozen=True, kw_only=True):
    """A kernel with the results of its analyses."""

    kernel: Kernel  # joined
    blame: KernelBlame | None = None  # None where nothing was sampled, or nobody asked
    advice: KernelAdvice | None = None  # None where nothing was sampled, or nobody asked
    analyses: KernelAnalyses | None = None  # None where nobody asked
    limiter: Limiter | None = None  # what limits it; None where nobody asked, or the search failed
    # what its code alone says where nothing measured says it; None where it could not be followed
    code_findings: "tuple[StaticFinding, ...] | None" = ()
    contexts: tuple["AnalysedKernel", ...] = ()  # its launch contexts that were judged by themselves, heaviest first


def gather_report(kernels: Iterable[AnalysedKernel], problems: Sequence[Problem] = ()) -> Report:
    """The report of some kernels, the user's own before those of libraries, each longest total time first.

    Args:
        kernels: kernels of any number of profiles.
        problems: met on the way here; doubts about the kernels themselves (truncated sampling, failed launches) are added.
    """
    return assemble_report([gather_kernel(analysed) for analysed in kernels], problems)


def assemble_report(reports: Sequence[KernelReport], problems: Sequence[Problem] = ()) -> Report:
    """The report of kernels that were gathered one by one."""
    doubts = [doubt for report in reports for doubt in _doubts(report)]
    unmeasured = dict.fromkeys(report.profile_path for report in reports if not report.launches)
    message, remedy = "code without a profile: nothing was measured", "add a profile of it to see stalls"
    doubts.extend(Problem.note(message, remedy, path=path) for path in unmeasured)
    doubts.extend(_note_unknowns(reports))
    ranked = sorted(reports, key=lambda report: report.rank)
    return Report(problems=(*problems, *doubts), kernels=tuple(ranked))


def gather_kernel(analysed: AnalysedKernel) -> KernelReport:
    """The report of a kernel."""
    kernel = analysed.kernel
    called = estimate_called_samples(kernel)
    columns = build_instruction_columns(kernel)
    launches = tuple(_gather_launch(launch) for launch in kernel.launches)
    duration = measure_launch_spread(launches, lambda launch: launch.duration_ns)
    lines = list_lines(columns, called, number_routines(kernel))
    return KernelReport(
        name=demangle(kernel.name),
        mangled_name=kernel.mangled_name,
        profile_path=kernel.profile_path,
        measured_unix_s=kernel.launches[0].created_unix_s if kernel.launches else None,
        configuration=_choose_configuration(kernel, launches),
        device=_gather_device(kernel),
        duration_ns=duration.mean if duration else None,
        duration_spread_ns=duration,
        samples_spread=_spread_samples(launches),
        total_samples=int(columns.all_samples.sum()),
        latency_samples=sum_all(columns.latency_samples),
        by_reason=count_reasons(columns.reasons, columns.all_samples.sum(axis=0), sum_rows(columns.latency_samples)),
        samples_truncated=any(launch.samples_truncated for launch in launches),
        launches=launches,
        library=kernel.library,
        functions=list_functions(kernel),
        lines=lines,
        loops=list_loops(kernel),
        instructions=columns,
        embedded_sources=_keep_sources(kernel, {line.file for line in lines if line.file is not None}),
        source_sizes=find_source_sizes(kernel.cubin),
        blame=analysed.blame,
        advice=analysed.advice,
        analyses=analysed.analyses,
        limiter=analysed.limiter,
        code_findings=None if analysed.code_findings is None else tuple(map(_keep_finding, analysed.code_findings)),
        code=build_kernel_code(kernel),
        places=kernel.rows.places,
        contexts=tuple(_gather_contexts(analysed, launches)),
        other_contexts=max(0, len(group_contexts(kernel.launches)) - len(analysed.contexts))
        if analysed.contexts
        else 0,
    )


def _gather_contexts(analysed: AnalysedKernel, launches: Sequence[LaunchReport]) -> Iterator[LaunchContext]:
    """Launch contexts with their parts of the whole."""
    groups = group_contexts(analysed.kernel.launches)
    for context, (group, ratio) in zip(analysed.contexts, groups, strict=False):
        numbers = {launch.index for launch in group}
        own = tuple(launch for launch in launches if launch.index in numbers)
        duration = measure_launch_spread(own, lambda launch: launch.duration_ns)
        yield LaunchContext(
            configuration=own[0].configuration,
            call_stack=own[0].call_stack,
            launches=tuple(launch.index for launch in own),
            launch_count=sum_known(launch.launch_count for launch in own),
            ratio=ratio,
            duration_ns=duration.mean if duration else None,
            total_samples=context.kernel.total_samples,
            limiter=context.limiter,
            advice=context.advice,
        )


def _keep_finding(finding: "StaticFinding") -> CodeFinding:
    return CodeFinding(
        check=finding.check,
        file=finding.file,
        line=finding.line,
        message=finding.message,
        remedy=finding.remedy,
        certainty=finding.certainty.value,
        is_in_loop=finding.loop_depth > 0,
        is_costly=finding.is_costly,
    )


def _spread_samples(launches: Sequence[LaunchReport]) -> Spread | None:
    """Spread of samples per launch; None where some launches are known as an aggregate only."""
    if any(launch.aggregate is not None for launch in launches):
        return None
    return measure_spread([launch.total_samples for launch in launches if launch.total_samples])


def _choose_configuration(kernel: Kernel, launches: Sequence[LaunchReport]) -> LaunchConfiguration:
    """Configuration of the longest launch; for code without a profile, what the compiler fixed."""
    longest = kernel.longest_launch
    if launches:
        return next((one for one in launches if longest and one.index == longest.index), launches[0]).configuration
    function = kernel.functions[0].function
    return LaunchConfiguration(
        grid=(0, 0, 0),
        block=(0, 0, 0),
        registers_per_thread=function.registers if function is not None else None,
        shared_static_bytes=function.shared_static_bytes if function is not None else None,
        shared_dynamic_bytes=None,
    )


def _keep_sources(kernel: Kernel, files: set[str]) -> Mapping[str, str]:
    """Embedded sources with lines in this kernel."""
    if kernel.module is None:
        return {}
    return {path: text for path, text in kernel.module.sources.items() if path in files}


def _gather_device(kernel: Kernel) -> DeviceReport:
    device = kernel.device
    capability = device.compute_capability
    if capability is None and kernel.module is not None:
        capability = kernel.module.compute_capability
    return DeviceReport(
        name=device.name, compute_capability=capability, sm_count=device.sm_count, sm_clock_hz=device.sm_clock_hz
    )


def _gather_launch(launch: Launch) -> LaunchReport:
    samples = launch.samples
    total, latency = 0, 0 if samples is None else sum_all(samples.latency_samples)
    by_reason = count_reasons((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    if samples is not None:
        all_sums = samples.all_samples.sum(axis=0)
        total = int(all_sums.sum())
        by_reason = count_reasons(samples.reasons, all_sums, sum_rows(samples.latency_samples))
    return LaunchReport(
        index=launch.index,
        configuration=launch.configuration,
        duration_ns=launch.read_number("gpu__time_duration.sum"),
        total_samples=total,
        latency_samples=latency,
        by_reason=by_reason,
        samples_truncated=launch.samples_truncated,
        failure=launch.failure,
        nvtx_ranges=launch.nvtx_ranges,
        call_stack=tuple(map(str, launch.call_stack)),
        rules=tuple(note for rule in launch.rules for note in _note_rule(rule)),
        elapsed_cycles=_count_cycles(launch),
        aggregate=launch.aggregate,
        sampling=replace(launch.sampling, period_cycles=launch.sampling_period_cycles),
    )


def _count_cycles(launch: Launch) -> float | None:
    """SM cycles of a launch, counted, or from duration and clock; None when unknown."""
    counted = launch.read_number("sm__cycles_elapsed.max")
    duration_ns = launch.read_number("gpu__time_duration.sum")
    rate_hz = launch.read_number("smsp__cycles_elapsed.avg.per_second")
    if counted is not None or duration_ns is None or rate_hz is None:
        return counted
    return duration_ns * rate_hz / 1e9


def _note_rule(rule: RuleResult) -> list[RuleNote]:
    """One note per message; the first holds the rule's estimate."""
    speedup = max(rule.speedups, key=lambda estimate: estimate.percent, default=None)
    notes = []
    for position, message in enumerate(rule.messages):
        own = speedup if position == 0 else None
        text = f"{message.title}: {message.text}" if message.title else message.text
        notes.append(
            RuleNote(
                rule=rule.name,
                kind=message.kind,
                text=text,
                speedup_percent=own.percent if own else None,
                speedup_is_global=own.is_global if own else None,
            )
        )
    return notes


def _doubts(report: KernelReport) -> list[Problem]:
    found = [
        _doubt(report, ProblemSeverity.WARNING, f"launch {launch.index} has no numbers: {launch.failure}", None)
        for launch in report.launches
        if launch.failure is not None
    ]
    if report.samples_truncated:
        message = "the sampling buffer overflowed, so the samples cover only the first part of the kernel's run"
        remedy = "record with a larger --sampling-buffer-size or a larger --sampling-interval"
        found.append(_doubt(report, ProblemSeverity.WARNING, message, remedy))
    if report.lacks_sass:
        message = "its SASS was not read, so causes of stalls and advice on instructions are missing"
        remedy = "try again with a profile that contains the code, and a working nvdisasm (gpa-lsp doctor)"
        found.append(_doubt(report, ProblemSeverity.WARNING, message, remedy))
    if not report.launches:
        return found
    if dropped := report.sampling.dropped_samples:
        message = (
            f"besides the {format_count_of(report.total_samples, 'sample')} kept, {format_count(dropped)} were dropped, at unknown instructions, "
            "so shares are less certain"
        )
        found.append(_doubt(report, ProblemSeverity.WARNING, message, "record with a longer sampling period"))
    if report.total_samples == 0 and all(launch.failure is None for launch in report.launches):
        found.append(_doubt(report, ProblemSeverity.WARNING, *explain_no_samples(report)))
    elif report.total_samples and not any(row.has_lines for row in report.functions):
        message = "the cubin has no line table, so samples can only be shown on instructions"
        language = find_language(report.name, report.mangled_name, ())
        how = None if report.library else LINE_REMEDIES[language]
        found.append(_doubt(report, ProblemSeverity.NOTE, message, how))
    return found


def explain_no_samples(report: KernelReport) -> tuple[str, str]:
    """Message and remedy for a measured kernel without samples: too short for a sample, or not sampled."""
    longest = max((launch.duration_ns or 0.0 for launch in report.launches), default=0.0)
    periods = [launch.sampling.period_cycles for launch in report.launches]
    period = next((one for one in periods if one is not None), None)
    if period is not None and 0 < longest < _SHORT_NS:
        message = (
            f"the kernel was sampled every {format_count_of(period, 'cycle')}, but no sample fell into its {format_duration_ns(longest)}: it is "
            "too short"
        )
        return (
            message,
            "record with a smaller --sampling-interval (0 is the shortest), more launches, or a larger input",
        )
    return (
        "the report has no stall samples of this kernel",
        "record again with `gpa-lsp profile` (or `ncu --set full --import-source yes`)",
    )


def _note_unknowns(reports: Sequence[KernelReport]) -> list[Problem]:
    """Notes on what collectors could not know and what depends on it, one per file and kind."""
    found = []
    unsplit = [report.profile_path for report in reports if report.total_samples and report.latency_samples is None]
    for path in dict.fromkeys(unsplit):
        message = "the profile does not mark not-issued samples, so what latency hiding would gain is unknown"
        found.append(Problem.note(message, _RECORD_IT, path=path))
    shapes = [(report.profile_path, report.configuration) for report in reports]
    for path in dict.fromkeys(path for path, shape in shapes if shape.grid is None or shape.block is None):
        message = (
            "the profile does not state the grid and block sizes of the launches, so how they fill the GPU is unknown"
        )
        found.append(Problem.note(message, _RECORD_IT, path=path))
    return [*found, *_note_unfollowed(reports)]


def _note_unfollowed(reports: Sequence[KernelReport]) -> Iterator[Problem]:
    """Notes on kernels whose memory requests were not counted and cannot be derived from their code, one per file."""
    unknown = [report for report in reports if report.code_findings is None]
    for path in dict.fromkeys(report.profile_path for report in unknown):
        names = [shorten_name(report.name) for report in unknown if report.profile_path == path]
        rest = f" and {format_count(len(names) - _MOST_NAMED)} more" if len(names) > _MOST_NAMED else ""
        message = (
            f"unknown how many sectors each memory request of {', '.join(names[:_MOST_NAMED])}{rest} touches: not collected, and not "
            "derivable from the SASS (it may call functions)"
        )
        yield Problem.note(message, path=path)


def _doubt(report: KernelReport, severity: ProblemSeverity, message: str, remedy: str | None) -> Problem:
    return Problem(
        severity=severity, message=message, path=report.profile_path, remedy=remedy, kernel=report.mangled_name
    )
