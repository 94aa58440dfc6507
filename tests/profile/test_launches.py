"""Launch, device, modules, host context and rules of a report."""

import tracemalloc
from collections.abc import Callable

import pytest

from gpa_lsp.profile.model import (
    FocusMetric,
    HostFrame,
    LoadedFunction,
    Profile,
    RuleMessage,
    RuleSpeedup,
    RuleTable,
    RuleTableColumn,
    SourceMarker,
)
from gpa_lsp.profile.ncu.metrics import build_device
from gpa_lsp.profile.ncu.rules import strip_markup
from gpa_lsp.profile.ncu.schema import MESSAGES
from tests.profile.load_addresses import find_kernel_address, find_loaded_functions
from tests.profile.report_builder import (
    BASE_ADDRESS,
    DEVICE_ATTRIBUTES,
    ReportBuilder,
    build_small_report,
    encode,
    encode_rule,
)

Read = Callable[..., Profile]


def test_the_launch_itself(read_bytes: Read) -> None:
    launch = read_bytes(build_small_report()).launches[0]
    assert (launch.mangled_name, launch.plain_name, launch.demangled_name) == ("_Z4axpyPf", "axpy", "axpy(float *)")
    assert launch.grid == (128, 2, 1)
    assert launch.block == (256, 1, 1)
    assert launch.created_unix_s == 1_700_000_000
    assert (launch.context_id, launch.stream_id) == (1, 7)
    assert launch.module_id == 1
    assert launch.function_addresses == (BASE_ADDRESS,)
    assert launch.failure is None


def test_absent_fields_are_unknown(read_bytes: Read) -> None:
    builder = ReportBuilder()
    result = builder.make_result(source_id=None)
    for name in ("created_unix_s", "context_id", "stream_id", "plain_name", "demangled_name"):
        result.ClearField(name)
    builder.add_result(result)
    launch = read_bytes(builder.build()).launches[0]
    assert launch.created_unix_s is launch.context_id is launch.stream_id is launch.module_id is None
    assert launch.display_name == "_Z4axpyPf"
    assert launch.device.name is launch.device.compute_capability is launch.device.sm_count is None
    assert launch.nvtx_ranges == launch.call_stack == launch.rules == launch.function_addresses == ()


def test_the_device_of_the_session(read_bytes: Read) -> None:
    builder = ReportBuilder()
    for index in (0, 1):
        metric = builder.encode_metric("device__attribute_device_index", index)
        builder.add_result(builder.make_result(metrics=[metric], source_id=None))
    builder.add_session(devices=(1, 0))
    launches = read_bytes(builder.build()).launches
    assert [launch.device.name for launch in launches] == ["GPU 0", "GPU 1"]
    device = launches[1].device
    assert device.compute_capability == (8, 6)
    assert device.sm_count == 46
    assert device.sm_clock_hz == 1.725e9
    assert device.attributes == DEVICE_ATTRIBUTES


def test_the_device_of_the_launchs_own_metrics(read_bytes: Read) -> None:
    builder = ReportBuilder()
    metrics = [builder.encode_metric(name, value) for name, value in DEVICE_ATTRIBUTES.items()]
    builder.add_result(builder.make_result(metrics=metrics, source_id=None))
    device = read_bytes(builder.build()).launches[0].device
    assert device.name == "Test GPU"
    assert device.attributes == DEVICE_ATTRIBUTES


def test_the_only_device_there_is(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_result(builder.make_result(source_id=None))
    builder.add_session(tool=None)
    profile = read_bytes(builder.build())
    assert profile.launches[0].device.name == "GPU 0"
    assert profile.tool_version is None


def test_a_failed_kernel_says_so(read_bytes: Read) -> None:
    builder = ReportBuilder()
    result = builder.make_result(
        metrics=[builder.encode_metric("gpu__time_duration.sum", float("nan"))], source_id=None
    )
    builder.add_result(result)
    failed = builder.make_result(source_id=None)
    for dim3 in (failed.grid, failed.block):
        dim3.x = dim3.y = dim3.z = 0
    builder.add_result(failed)
    launches = read_bytes(builder.build()).launches
    assert launches[0].failure == "the profiler failed on this launch: its duration is not a number"
    assert launches[1].grid == (0, 0, 0)
    assert launches[1].failure is not None
    assert "neither its grid nor its counters" in launches[1].failure


def test_a_grid_that_no_gpu_takes_is_none(read_bytes: Read) -> None:
    builder = ReportBuilder()
    result = builder.make_result()
    result.grid.x = 1 << 63
    builder.add_result(result)
    launch = read_bytes(builder.build()).launches[0]
    assert launch.grid == (0, 0, 0)
    assert launch.failure is not None


def test_negative_attributes_are_none() -> None:
    device = build_device(
        {"device__attribute_multiprocessor_count": -4, "device__attribute_clock_rate": -1, "device__attribute_x": 1},
        None,
    )
    assert (device.sm_count, device.sm_clock_hz) == (None, None)


def test_several_launches_of_one_kernel_stay_apart(read_bytes: Read) -> None:
    builder = ReportBuilder()
    for duration in (100.0, 120.0):
        metric = builder.encode_metric("gpu__time_duration.sum", duration)
        builder.add_result(builder.make_result(metrics=[metric], source_id=None))
    launches = read_bytes(builder.build()).launches
    assert [launch.index for launch in launches] == [0, 1]
    assert [launch.read_number("gpu__time_duration.sum") for launch in launches] == [100.0, 120.0]


def test_source_entries_of_one_id_are_one_module(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_source(1, functions={"b": 0x2000, "a": 0x1000}, files={"x.cu": "1"})
    builder.add_source(1, image=None, functions={"c": 0x1800, "a": 0x1000}, files={"x.cu": "2", "y.cu": "3"})
    builder.add_source(2, image=None)
    modules = read_bytes(builder.build()).modules
    assert [(function.name, function.address) for function in modules[1].functions] == [
        ("a", 0x1000),
        ("c", 0x1800),
        ("b", 0x2000),
    ]
    assert modules[1].functions[0].symbol_index == 1
    assert modules[1].image == b"\x7fELF image"
    assert modules[1].sources == {"x.cu": "1", "y.cu": "3"}
    assert modules[1].compute_capability == (8, 6)
    assert modules[2].image is None
    assert modules[2].functions == ()


def test_two_images_of_one_module_are_a_problem(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_source(1, image=b"\x7fELF one")
    builder.add_source(1, image=b"\x7fELF two")
    profile = read_bytes(builder.build())
    assert profile.modules[1].image == b"\x7fELF one"
    assert [problem.message for problem in profile.problems] == [
        "module 1 comes with 2 different images; the first is used"
    ]


def test_one_id_in_two_processes_is_two_modules(read_bytes: Read) -> None:
    builder = ReportBuilder()
    for process_id, image in ((7, b"\x7fELF one"), (8, b"\x7fELF two")):
        builder.process_id = process_id
        builder.add_source(1, image=image)
        builder.add_result(builder.make_result())
    profile = read_bytes(builder.build())
    images = [profile.modules[launch.module_id or 0].image for launch in profile.launches]
    assert images == [b"\x7fELF one", b"\x7fELF two"]
    assert profile.problems == ()


def test_a_kernels_address_comes_from_the_table_or_from_the_launch(read_bytes: Read) -> None:
    profile = read_bytes(build_small_report())
    assert find_kernel_address(profile, profile.launches[0]) == BASE_ADDRESS

    old = ReportBuilder()
    old.add_source()
    for addresses in ([0x9000], [0x9000, 0x8000], []):
        metric = old.encode_metric("launch__function_pcs", 1.0, list(enumerate(addresses)))
        old.add_result(old.make_result(metrics=[metric]))
    profile = read_bytes(old.build())
    assert [launch.function_addresses for launch in profile.launches] == [(0x9000,), (0x8000, 0x9000), ()]
    assert [find_kernel_address(profile, launch) for launch in profile.launches] == [0x9000, None, None]
    assert find_loaded_functions(profile, profile.launches[0]) == (LoadedFunction(name="_Z4axpyPf", address=0x9000),)


def test_of_two_addresses_of_one_name_the_launchs_own_counts(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_source(1, functions={"_Z4axpyPf": 0x1000})
    builder.add_source(1, image=None, functions={"_Z4axpyPf": 0x5000})
    metric = builder.encode_metric("launch__function_pcs", 1, [(0, 0x5000)])
    builder.add_result(builder.make_result(metrics=[metric]))
    profile = read_bytes(builder.build())
    assert find_kernel_address(profile, profile.launches[0]) == 0x5000


def test_the_call_stack(read_bytes: Read) -> None:
    builder = ReportBuilder()
    result = builder.make_result(source_id=None)
    frames = [
        encode("Frame", module=b"/usr/lib/libcudart.so.12", address=0x10, function=b"", file=b"", line=0),
        encode("Frame", module=b"C:\\app\\a.exe", address=0x20, function=b"main", file=b"/src/a.cu", line=5),
    ]
    result.call_stack.frames.extend(frames)
    builder.add_result(result)
    assert read_bytes(builder.build()).launches[0].call_stack == (
        HostFrame(function=None, module="libcudart.so.12", file=None, line=None, address=0x10),
        HostFrame(function="main", module="a.exe", file="/src/a.cu", line=5, address=0x20),
    )


def test_nvtx_ranges_of_the_launching_thread(read_bytes: Read) -> None:
    builder = ReportBuilder()
    result = builder.make_result(source_id=None)
    nvtx = MESSAGES["NvtxState"]()
    nvtx.domains.add(domain_id=0, name=b"<default domain>")
    nvtx.domains.add(domain_id=3, name=b"lib")
    own = nvtx.threads.add(thread_id=11)
    stack = own.stacks.add(domain_id=0)
    stack.ranges.add(name=b"outer")
    stack.ranges.add(name=b"inner")
    own.stacks.add(domain_id=3).ranges.add(name=b"gemm")
    nvtx.threads.add(thread_id=12).stacks.add(domain_id=0).ranges.add(name=b"of another thread")
    result.nvtx = nvtx.SerializeToString()
    builder.add_result(result)
    assert read_bytes(builder.build()).launches[0].nvtx_ranges == ("outer", "inner", "lib@gemm")


def test_rules(read_bytes: Read) -> None:
    builder = ReportBuilder()
    result = builder.make_result(source_id=None)
    item = MESSAGES["RuleItem"]()
    item.message.text, item.message.kind, item.message.title = b" text @section:A:B@ ", 2, b"title"
    item.focus_metrics.add(name=b"m", value=0.5, severity=2, advice=b"more")
    item.speedup.scope, item.speedup.percent = 1, 12.5
    item.source_table.title = b"t"
    item.source_table.metrics.add(name=b"derived__x")
    other = MESSAGES["RuleItem"]()
    other.message.text, other.message.kind = b"odd", 99
    table = other.tables.add()
    table.heading.title, table.heading.description = b"T", b"D"
    table.columns.add(name=b"Location", texts=[b"@source:a.cu:15:a.cu, line 16@"])
    table.columns.add(name=b"Executed", numbers=[3.0])
    markers = [
        encode("RuleMarker", kind=0, address=0x1010, text=b"hot", message_kind=4, file=b""),
        encode("RuleMarker", kind=1, line=16, text=b"warm", message_kind=1, file=b"/src/a.cu"),
    ]
    result.rules.extend([encode_rule("R", items=[item, other], markers=markers), encode_rule("Silent")])
    builder.add_result(result)
    found, silent = read_bytes(builder.build()).launches[0].rules
    assert (found.identifier, found.name, found.section) == ("R", "Rule", "S")
    assert found.messages == (
        RuleMessage(kind="warning", title="title", text="text B"),
        RuleMessage(kind="info", title="", text="odd"),
    )
    assert found.speedups == (RuleSpeedup(percent=12.5, is_global=False),)
    assert found.focus_metrics == (FocusMetric(name="m", value=0.5, severity=2, advice="more"),)
    assert found.source_metrics == ("derived__x",)
    assert found.tables == (
        RuleTable(
            title="T",
            description="D",
            columns=(
                RuleTableColumn(name="Location", values=("a.cu, line 16",)),
                RuleTableColumn(name="Executed", values=(3.0,)),
            ),
        ),
    )
    assert found.markers == (
        SourceMarker(address=0x1010, file=None, line=None, text="hot", kind="optimization"),
        SourceMarker(address=None, file="/src/a.cu", line=16, text="warm", kind="info"),
    )
    assert silent.messages == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at PC @source:14a9a94cf630:0x14a9a94cf630@", "at PC 0x14a9a94cf630"),
        ("@url:fused:https://docs.nvidia.com/a/#b@ ops", "fused ops"),
        ("@section:SourceCounters:Warp Stall Sampling (All Samples)@", "Warp Stall Sampling (All Samples)"),
        ("mail a@b and @decorator", "mail a@b and @decorator"),
        ("@source:C:\\x\\a.cu:3:a.cu, line 4@", "a.cu, line 4"),
        ("@section:odd@", "odd"),
    ],
)
def test_markup_becomes_the_words_it_shows(text: str, shown: str) -> None:
    assert strip_markup(text) == shown


def test_a_broken_part_costs_only_itself(read_bytes: Read) -> None:
    builder = ReportBuilder()
    result = builder.make_result(source_id=None)
    result.rules.extend([encode_rule("first"), b"\x0a\xff\xff", encode_rule("third")])
    builder.add_result(result)
    profile = read_bytes(builder.build())
    assert [rule.identifier for rule in profile.launches[0].rules] == ["first", "third"]
    assert [problem.message for problem in profile.problems] == ["1 parts cannot be decoded and are left out"]


@pytest.mark.parametrize("kind", ["rules", "frames", "instances", "ranges", "functions", "items"])
def test_parts_made_to_fill_memory_are_left_out(read_bytes: Read, kind: str) -> None:
    count = 200_000
    builder = ReportBuilder()
    result = builder.make_result(source_id=None)
    if kind == "rules":
        result.rules.extend([b""] * count)
    elif kind == "items":
        rule = MESSAGES["Rule"]()
        rule.body.items.extend([b""] * count)
        result.rules.append(rule.SerializeToString())
    elif kind == "frames":
        result.call_stack.frames.extend([b""] * count)
    elif kind == "instances":
        builder.name_id("m")
        result.metrics.append(b"\x08\x00" + b"\x1a\x00" * count)
    elif kind == "ranges":
        nvtx = MESSAGES["NvtxState"]()
        nvtx.threads.add(thread_id=11).stacks.add(domain_id=0)
        data = nvtx.SerializeToString()
        result.nvtx = data + b"\x12\x00" * count
    else:
        source = MESSAGES["Source"](source_id=1)
        source.addresses.functions.extend([encode("Symbol", address=1)] * count)
        builder.add_block(sources=[source])
    builder.add_result(result)
    tracemalloc.start()
    try:
        profile = read_bytes(builder.build())
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(profile.problems) == 1
    assert "left out" in profile.problems[0].message
    assert peak_bytes < 32 * 2 * count


def test_a_hundred_problems_are_enough(read_bytes: Read) -> None:
    builder = ReportBuilder()
    builder.add_block(results=[b"\x0a\xff\xff" + bytes(60)] * 150)
    problems = read_bytes(builder.build()).problems
    assert len(problems) == 101
    assert problems[-1].message == "50 more problems are not listed"
