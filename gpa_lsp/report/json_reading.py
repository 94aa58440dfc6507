"""A report's parts from JSON values, each checked before it is believed."""

import re

from gpa_lsp.analyses.model import KernelAnalyses
from gpa_lsp.figures import Spread
from gpa_lsp.report.json_advice_reading import read_advice
from gpa_lsp.report.json_blame_reading import read_blame
from gpa_lsp.report.json_columns import read_instructions, read_reasons
from gpa_lsp.report.json_cursor import JsonCursor
from gpa_lsp.report.json_problem import read_path
from gpa_lsp.report.json_records import read_record
from gpa_lsp.report.model import (
    DeviceReport,
    Dim3,
    FunctionRole,
    FunctionRow,
    KernelReport,
    LaunchConfiguration,
    LaunchReport,
    LineRow,
    LoopRow,
    RuleNote,
)

_CAPABILITY = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_UNIX_TIME_LIMIT_S = 1 << 53


def read_kernel(at: JsonCursor) -> KernelReport:
    """A ``kernel`` object.

    Raises:
        InputError: it is not one.
    """
    samples = at.at("samples")
    total = samples.at("total").count()
    instructions = read_instructions(at, total)
    return KernelReport(
        name=at.at("name").text(),
        mangled_name=at.at("mangled_name").text(),
        profile_path=at.at("profile_path").maybe(read_path),
        measured_unix_s=at.at("measured_unix_s").maybe(
            lambda when: when.count(minimum=-_UNIX_TIME_LIMIT_S, maximum=_UNIX_TIME_LIMIT_S)
        ),
        configuration=_read_configuration(at.at("launch")),
        device=_read_device(at.at("device")),
        duration_ns=at.at("duration_ns").maybe(JsonCursor.number),
        duration_spread_ns=at.at("duration_spread_ns").maybe(_read_spread),
        samples_spread=at.at("samples_spread").maybe(_read_spread),
        total_samples=total,
        latency_samples=samples.at("latency").count(maximum=total),
        by_reason=read_reasons(samples.at("by_reason"), total),
        samples_truncated=samples.at("truncated").flag(),
        launches=tuple(_read_launch(launch) for launch in at.at("launches").items()),
        functions=tuple(_read_function(row, total) for row in at.at("functions").items()),
        lines=tuple(_read_line(row, total) for row in at.at("lines").items()),
        loops=tuple(_read_loop(row, total) for row in at.at("loops").items()),
        instructions=instructions,
        embedded_sources={path: text.text() for path, text in at.at("embedded_sources").entries()},
        blame=at.find("blame").maybe(lambda blame: read_blame(blame, instructions)),
        advice=read_advice(at, len(instructions)),
        analyses=at.find("analyses").maybe(lambda analyses: read_record(analyses, KernelAnalyses)),
    )


def _read_configuration(at: JsonCursor) -> LaunchConfiguration:
    return LaunchConfiguration(
        grid=_read_dim3(at.at("grid")),
        block=_read_dim3(at.at("block")),
        registers_per_thread=at.at("registers_per_thread").maybe(JsonCursor.count),
        shared_static_bytes=at.at("shared_static_bytes").maybe(JsonCursor.count),
        shared_dynamic_bytes=at.at("shared_dynamic_bytes").maybe(JsonCursor.count),
    )


def _read_dim3(at: JsonCursor) -> Dim3:
    sizes = [size.count() for size in at.items()]
    if len(sizes) != 3:
        at.fail(f"has {len(sizes)} numbers, not 3")
    return (sizes[0], sizes[1], sizes[2])


def _read_device(at: JsonCursor) -> DeviceReport:
    return DeviceReport(
        name=at.at("name").maybe(JsonCursor.text),
        compute_capability=at.at("compute_capability").maybe(_read_capability),
        sm_count=at.at("sm_count").maybe(JsonCursor.count),
        sm_clock_hz=at.at("sm_clock_hz").maybe(JsonCursor.number),
    )


def _read_capability(at: JsonCursor) -> tuple[int, int]:
    found = _CAPABILITY.fullmatch(at.text())
    if found is None:
        at.fail('is no compute capability such as "8.6"')
    return int(found[1]), int(found[2])


def _read_spread(at: JsonCursor) -> Spread:
    return Spread(
        count=at.at("count").count(minimum=1),
        mean=at.at("mean").number(),
        minimum=at.at("minimum").number(),
        maximum=at.at("maximum").number(),
        standard_deviation=at.at("standard_deviation").maybe(JsonCursor.number),
    )


def _read_launch(at: JsonCursor) -> LaunchReport:
    samples = at.at("samples")
    total = samples.at("total").count()
    return LaunchReport(
        index=at.at("index").count(),
        configuration=_read_configuration(at.at("launch")),
        duration_ns=at.at("duration_ns").maybe(JsonCursor.number),
        elapsed_cycles=at.find("elapsed_cycles").maybe(JsonCursor.number),
        total_samples=total,
        latency_samples=samples.at("latency").count(maximum=total),
        by_reason=read_reasons(samples.at("by_reason"), total),
        samples_truncated=samples.at("truncated").flag(),
        failure=at.at("failure").maybe(JsonCursor.text),
        nvtx_ranges=tuple(name.text() for name in at.at("nvtx_ranges").items()),
        call_stack=tuple(name.text() for name in at.at("call_stack").items()),
        rules=tuple(_read_rule(note) for note in at.at("rules").items()),
    )


def _read_rule(at: JsonCursor) -> RuleNote:
    return RuleNote(
        rule=at.at("rule").text(),
        kind=at.at("kind").text(),
        text=at.at("text").text(),
        speedup_percent=at.at("speedup_percent").maybe(JsonCursor.number),
        speedup_is_global=at.at("speedup_is_global").maybe(JsonCursor.flag),
    )


def _read_function(at: JsonCursor, total: int) -> FunctionRow:
    samples = at.at("samples").count(maximum=total)
    return FunctionRow(
        mangled_name=at.at("mangled_name").text(),
        name=at.at("name").text(),
        role=at.at("role").choice(FunctionRole),
        instruction_count=at.at("instruction_count").count(),
        has_lines=at.at("has_lines").flag(),
        samples=samples,
        latency_samples=at.at("latency_samples").count(maximum=samples),
        by_reason=read_reasons(at.at("by_reason"), samples),
        registers=at.at("registers").maybe(JsonCursor.count),
        section=at.at("section").maybe(JsonCursor.text),
        start_offset=at.at("start_offset").count(),
    )


def _read_line(at: JsonCursor, total: int) -> LineRow:
    inclusive = at.at("inclusive_samples").count(maximum=total)
    samples = at.at("samples").count(maximum=inclusive)
    called = at.at("called_samples").number()
    if called < 0:
        at.at("called_samples").fail("is negative")
    return LineRow(
        file=at.at("file").maybe(JsonCursor.text),
        line=at.at("line").maybe(JsonCursor.count),
        function=at.at("function").text(),
        samples=samples,
        latency_samples=at.at("latency_samples").count(maximum=samples),
        inclusive_samples=inclusive,
        inclusive_latency_samples=at.at("inclusive_latency_samples").count(maximum=inclusive),
        called_samples=called,
        by_reason=read_reasons(at.at("by_reason"), samples),
        inclusive_by_reason=read_reasons(at.at("inclusive_by_reason"), inclusive),
    )


def _read_loop(at: JsonCursor, total: int) -> LoopRow:
    samples = at.at("samples").count(maximum=total)
    return LoopRow(
        function=at.at("function").text(),
        header_pc_offset=at.at("header_pc_offset").count(),
        last_pc_offset=at.at("last_pc_offset").count(),
        depth=at.at("depth").count(minimum=1),
        file=at.at("file").maybe(JsonCursor.text),
        first_line=at.at("first_line").maybe(JsonCursor.count),
        last_line=at.at("last_line").maybe(JsonCursor.count),
        samples=samples,
        latency_samples=at.at("latency_samples").count(maximum=samples),
    )
