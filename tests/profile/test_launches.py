"""Launch, device, modules, host context and rules of a report."""

import pytest
from msgspec.structs import asdict

from gpa_lsp.profile.model import HostFrame, RuleMessage, RuleSpeedup, SourceMarker
from gpa_lsp.profile.ncu.metrics import build_device, strip_markup
from gpa_lsp.profile.ncu.schema import MESSAGES
from tests.damage import bounded_memory
from tests.profile.report_builder import (
    BASE_ADDRESS,
    DEVICE_ATTRIBUTES,
    ReportBuilder,
    build_small_report,
    encode,
    encode_rule,
)


def test_the_launch_itself(report: ReportBuilder) -> None:
    report.build = build_small_report
    (launch,) = report.read().launches
    assert (launch.mangled_name, launch.plain_name, launch.demangled_name) == ("_Z4axpyPf", "axpy", "axpy(float *)")
    assert (launch.grid, launch.block) == ((128, 2, 1), (256, 1, 1))
    assert (launch.created_unix_s, launch.context_id, launch.stream_id) == (1_700_000_000, 1, 7)
    assert (launch.module_id, launch.function_addresses, launch.failure) == (1, (BASE_ADDRESS,), None)


def test_absent_fields_are_unknown(report: ReportBuilder) -> None:
    result = report.make_result(source_id=None)
    for name in ("created_unix_s", "context_id", "stream_id", "plain_name", "demangled_name"):
        result.ClearField(name)
    report.add_result(result)
    launch = report.read().launches[0]
    assert launch.created_unix_s is launch.context_id is launch.stream_id is launch.module_id is None
    assert launch.display_name == "_Z4axpyPf"
    assert launch.device.name is launch.device.compute_capability is launch.device.sm_count is None
    assert launch.nvtx_ranges == launch.call_stack == launch.rules == launch.function_addresses == ()


def test_the_device_of_the_session(report: ReportBuilder) -> None:
    for index in (0, 1):
        metric = report.encode_metric("device__attribute_device_index", index)
        report.add_result(report.make_result(metrics=[metric], source_id=None))
    report.add_session(devices=(1, 0))
    launches = report.read().launches
    assert [launch.device.name for launch in launches] == ["GPU 0", "GPU 1"]
    device = launches[1].device
    assert (device.compute_capability, device.sm_count, device.sm_clock_hz) == ((8, 6), 46, 1.725e9)
    assert device.attributes == DEVICE_ATTRIBUTES


def test_the_device_of_the_launchs_own_metrics_and_the_only_one_there_is(report: ReportBuilder) -> None:
    device = report.read_launch(*(report.encode_metric(*attribute) for attribute in DEVICE_ATTRIBUTES.items())).device
    assert (device.name, device.attributes) == ("Test GPU", DEVICE_ATTRIBUTES)
    report.blocks.clear()
    report.add_result(report.make_result(source_id=None))
    report.add_session(tool=None)
    profile = report.read()
    assert (profile.launches[0].device.name, profile.tool_version) == ("GPU 0", None)


def test_a_failed_kernel_says_so(report: ReportBuilder) -> None:
    nameless = report.read_launch(report.encode_metric("gpu__time_duration.sum", float("nan")))
    assert nameless.failure == "the profiler failed on this launch: its duration is not a number; measure it again"
    for sizes in ((0, 0, 0), (1 << 63, 1, 1)):  # no GPU takes the other
        failed = report.make_result(source_id=None)
        failed.grid.x, failed.grid.y, failed.grid.z = failed.block.x, failed.block.y, failed.block.z = sizes
        report.add_result(failed)
        launch = report.read().launches[-1]
        assert launch.grid == (0, 0, 0)
        assert "neither its grid nor its counters" in launch.failure


def test_negative_attributes_are_none() -> None:
    names = ("multiprocessor_count", "clock_rate", "x")
    device = build_device({f"device__attribute_{name}": -4 for name in names}, None)
    assert (device.sm_count, device.sm_clock_hz) == (None, None)


def test_several_launches_of_one_kernel_stay_apart(report: ReportBuilder) -> None:
    for duration in (100.0, 120.0):
        metric = report.encode_metric("gpu__time_duration.sum", duration)
        report.add_result(report.make_result(metrics=[metric], source_id=None))
    launches = report.read().launches
    assert [(one.index, one.read_number("gpu__time_duration.sum")) for one in launches] == [(0, 100.0), (1, 120.0)]


def test_source_entries_of_one_id_are_one_module(report: ReportBuilder) -> None:
    report.add_source(1, functions={"b": 0x2000, "a": 0x1000}, files={"x.cu": "1"})
    report.add_source(1, image=None, functions={"c": 0x1800, "a": 0x1000}, files={"x.cu": "2", "y.cu": "3"})
    report.add_source(2, image=None)
    modules = report.read().modules
    functions = [(function.name, function.address) for function in modules[1].functions]
    assert functions == [("a", 0x1000), ("c", 0x1800), ("b", 0x2000)]
    assert modules[1].functions[0].symbol_index == 1
    assert (modules[1].image, modules[1].compute_capability) == (b"\x7fELF image", (8, 6))
    assert modules[1].sources == {"x.cu": "1", "y.cu": "3"}
    assert (modules[2].image, modules[2].functions) == (None, ())


def test_two_images_of_one_module_are_a_problem_and_one_id_in_two_processes_is_none(report: ReportBuilder) -> None:
    for image in (b"\x7fELF one", b"\x7fELF two"):
        report.add_source(1, image=image)
    profile = report.read()
    assert profile.modules[1].image == b"\x7fELF one"
    said = [problem.message for problem in profile.problems]
    assert said == ["module 1 comes with 2 different images; the first is used"]
    report.blocks.clear()
    for report.process_id, image in ((7, b"\x7fELF one"), (8, b"\x7fELF two")):
        report.add_source(1, image=image)
        report.add_result(report.make_result())
    profile = report.read()
    assert [profile.modules[one.module_id].image for one in profile.launches] == [b"\x7fELF one", b"\x7fELF two"]
    assert profile.problems == ()


def test_the_addresses_of_a_launchs_functions(report: ReportBuilder) -> None:
    for addresses in ([0x9000], [0x9000, 0x8000], []):
        metric = report.encode_metric("launch__function_pcs", 1.0, list(enumerate(addresses)))
        report.add_result(report.make_result(metrics=[metric], source_id=None))
    assert [launch.function_addresses for launch in report.read().launches] == [(0x9000,), (0x8000, 0x9000), ()]


def test_the_call_stack(report: ReportBuilder) -> None:
    result = report.make_result(source_id=None)
    frames = [
        encode("Frame", module=b"/usr/lib/libcudart.so.12", address=0x10, function=b"", file=b"", line=0),
        encode("Frame", module=b"C:\\app\\a.exe", address=0x20, function=b"main", file=b"/src/a.cu", line=5),
    ]
    result.call_stack.frames.extend(frames)
    report.add_result(result)
    assert report.read().launches[0].call_stack == (
        HostFrame(function=None, module="libcudart.so.12", file=None, line=None, address=0x10),
        HostFrame(function="main", module="a.exe", file="/src/a.cu", line=5, address=0x20),
    )


def test_nvtx_ranges_of_the_launching_thread(report: ReportBuilder) -> None:
    result = report.make_result(source_id=None)
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
    report.add_result(result)
    assert report.read().launches[0].nvtx_ranges == ("outer", "inner", "lib@gemm")


def test_rules(report: ReportBuilder) -> None:
    result = report.make_result(source_id=None)
    item = MESSAGES["RuleItem"]()
    item.message.text, item.message.kind, item.message.title = b" text @section:A:B@ ", 2, b"title"
    item.speedup.scope, item.speedup.percent = 1, 12.5
    other = MESSAGES["RuleItem"]()
    other.message.text, other.message.kind = b"odd", 99
    markers = [
        encode("RuleMarker", kind=0, address=0x1010, text=b"hot", message_kind=4, file=b""),
        encode("RuleMarker", kind=1, line=16, text=b"warm", message_kind=1, file=b"/src/a.cu"),
    ]
    result.rules.extend([encode_rule("R", items=[item, other], markers=markers), encode_rule("Silent")])
    report.add_result(result)
    found, silent = report.read().launches[0].rules
    assert asdict(found) == {
        "identifier": "R",
        "name": "Rule",
        "section": "S",
        "messages": (
            RuleMessage(kind="warning", title="title", text="text B"),
            RuleMessage(kind="info", title="", text="odd"),
        ),
        "speedups": (RuleSpeedup(percent=12.5, is_global=False),),
        "markers": (
            SourceMarker(address=0x1010, file=None, line=None, text="hot", kind="optimization"),
            SourceMarker(address=None, file="/src/a.cu", line=16, text="warm", kind="info"),
        ),
    }
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


def test_a_broken_part_costs_only_itself(report: ReportBuilder) -> None:
    result = report.make_result(source_id=None)
    result.rules.extend([encode_rule("first"), b"\x0a\xff\xff", encode_rule("third")])
    report.add_result(result)
    profile = report.read()
    assert [rule.identifier for rule in profile.launches[0].rules] == ["first", "third"]
    assert [problem.message for problem in profile.problems] == ["1 parts cannot be decoded and are left out"]


@pytest.mark.parametrize("kind", ["rules", "frames", "instances", "ranges", "functions", "items"])
def test_parts_made_to_fill_memory_are_left_out(report: ReportBuilder, kind: str) -> None:
    count = 200_000
    result = report.make_result(source_id=None)
    nvtx, rule, source = MESSAGES["NvtxState"](), MESSAGES["Rule"](), MESSAGES["Source"](source_id=1)
    if kind == "rules":
        result.rules.extend([b""] * count)
    elif kind == "items":
        rule.body.items.extend([b""] * count)
        result.rules.append(rule.SerializeToString())
    elif kind == "frames":
        result.call_stack.frames.extend([b""] * count)
    elif kind == "instances":
        report.name_id("m")
        result.metrics.append(b"\x08\x00" + b"\x1a\x00" * count)
    elif kind == "ranges":
        nvtx.threads.add(thread_id=11).stacks.add(domain_id=0)
        result.nvtx = nvtx.SerializeToString() + b"\x12\x00" * count
    else:
        source.addresses.functions.extend([encode("Symbol", address=1)] * count)
        report.add_block(sources=[source])
    report.add_result(result)
    with bounded_memory(32 * 2 * count):
        profile = report.read()
    (problem,) = profile.problems
    assert "left out" in problem.message
